#include "weir/profile/detail/recording.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/profile/detail/route_labels.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/detail/next_turn.hpp"
#include "weir/task/sleep.hpp"

namespace weir::profile {
namespace {

using loop::PlatformProfiler;

std::unexpected<loop::ProfileError> refuse(std::error_code error, std::string reason) {
  return std::unexpected(loop::ProfileError{error, std::move(reason)});
}

/// A profile while it is recorded. A loop drains it, and a thread of a pool names it.
class Recording {
 public:
  Recording(PlatformProfiler& profiler, RecordingOptions options, std::size_t cores,
            const TraceContext* request)
      : profiler_(profiler),
        options_(std::move(options)),
        labels_(cores + loop::CpuProfileOptions::other_threads_max, request),
        stacks_(options_.route) {}

  std::expected<void, loop::ProfileError> start(std::span<Loop* const> loops) {
    auto started =
        profiler_.start_cpu_profile(loops, {.hertz = options_.hertz, .labels = &labels_});
    if (!started) return std::unexpected(std::move(started.error()));
    samples_ = std::move(*started);
    return {};
  }
  /// Adds some samples, which takes less than 100 microseconds.
  /// Returns: true if more may be waiting.
  bool drain_some() {
    constexpr std::size_t at_once = 16;
    return samples_->drain(at_once, [this](const loop::CpuSample& sample) {
      stacks_.add(sample, labels_.text(sample.thread, sample.label));
    });
  }
  void stop() noexcept { samples_->stop(); }
  bool free_some() noexcept { return stacks_.free_some(); }
  /// Ends the samples. It may run on any thread, since it waits for signal handlers.
  Profile finish(WallTime started, Duration length) {
    samples_->stop();
    while (drain_some()) {
    }
    Profile profile;
    profile.addresses = stacks_.addresses();
    profile.symbols = profiler_.symbolize(profile.addresses);
    profile.stacks = stacks_.take_stacks();
    profile.hertz = options_.hertz;
    profile.started = started;
    profile.length = length;
    profile.dropped = samples_->dropped() + stacks_.dropped();
    return profile;
  }

 private:
  PlatformProfiler& profiler_;
  RecordingOptions options_;
  RouteLabels labels_;
  StackCollection stacks_;
  std::unique_ptr<loop::CpuProfile> samples_;  // destroyed first: its signals use the labels
};

Profile finish(Recording& recording, WallTime started, Duration length) {
  return recording.finish(started, length);
}

/// Starts the profile. The loops of a runtime begin one after the other, so the last ones may need
/// some time.
Task<std::expected<void, loop::ProfileError>> start(Recording& recording,
                                                    std::span<Loop* const> loops) {
  constexpr Duration step = std::chrono::milliseconds(5);
  constexpr int steps_max = 200;
  auto begun = recording.start(loops);
  for (int steps = 0; !begun && begun.error().code == system_error(EAGAIN); ++steps) {
    if (steps == steps_max) break;
    if (auto slept = co_await sleep(step); !slept) {
      co_return refuse(slept.error(), "the profile was cancelled");
    }
    begun = recording.start(loops);
  }
  co_return begun;
}

/// Drains the samples until the end of the profile, a few in each turn of the loop.
Task<Result<>> drain_until(Recording& recording, Instant end) {
  constexpr Duration step = std::chrono::milliseconds(100);
  const Context own = co_await this_context();
  Loop& loop = *own.loop;
  const auto goes_on = [&] { return loop.now() < end && !loop.draining(); };
  while (goes_on()) {
    WEIR_CO_TRY(co_await sleep(std::min(step, Duration(end - loop.now()))));
    // Busy cores may add samples as fast as the turns of this loop drain them.
    while (goes_on() && !own.cancelled() && recording.drain_some()) {
      co_await detail::NextTurn(loop);
    }
  }
  co_return Result<>();
}

}  // namespace

Task<Recorded> record(RecordingOptions options) {
  const Context context = co_await this_context();
  Loop& loop = *context.loop;
  auto* const profiler = dynamic_cast<PlatformProfiler*>(&loop.platform());
  if (profiler == nullptr) {
    co_return refuse(Errc::unsupported, "this platform takes no CPU profiles");
  }
  Loop* const alone = &loop;
  std::span<Loop* const> loops = loop.group().loops();
  if (loops.empty()) loops = {&alone, 1};
  const Duration length = options.length;
  auto recording =
      std::make_unique<Recording>(*profiler, std::move(options), loops.size(), context.trace());
  if (auto begun = co_await start(*recording, loops); !begun) {
    co_return std::unexpected(std::move(begun.error()));
  }
  const WallTime started = loop.platform().wall_time();
  const Instant begin = loop.platform().now();
  const auto drained = co_await drain_until(*recording, after(begin, length));
  const Duration took = loop.platform().now() - begin;
  Result<Profile> profile = fail(Errc::cancelled);
  std::string reason = "the profile was cancelled";
  if (drained) {
    auto& pool = shared_pool(loop).pool();
    profile = co_await pool.run(&finish, borrow(*recording), started, took);
    if (!profile) reason = "the blocking pool: " + profile.error().message();
  }
  recording->stop();
  while (recording->free_some()) co_await detail::NextTurn(loop);
  if (!profile) co_return refuse(profile.error(), std::move(reason));
  co_return std::move(*profile);
}

}  // namespace weir::profile
