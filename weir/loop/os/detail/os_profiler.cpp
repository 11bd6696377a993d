#include "weir/loop/os/detail/os_profiler.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"

namespace weir::loop {

LoopThreadTable::Running::Running(Loop& loop) noexcept : loop_(loop) {
  try {
    auto& table = loop.group().slots().get<LoopThreadTable>();
    const std::lock_guard lock(table.mutex_);
    table.entries_.push_back({&loop, os::SampledThread::of_this_thread()});
    table_ = &table;
  } catch (const std::bad_alloc&) {
    // A profile then says that the loop has no thread.
  }
}

LoopThreadTable::Running::~Running() {
  if (table_ == nullptr) return;
  const std::lock_guard lock(table_->mutex_);
  std::erase_if(table_->entries_, [this](const Entry& each) { return each.loop == &loop_; });
}

std::optional<os::SampledThread> LoopThreadTable::thread_of(Loop& loop) {
  auto* const table = loop.group().slots().find<LoopThreadTable>();
  if (table == nullptr) return std::nullopt;
  const std::lock_guard lock(table->mutex_);
  const auto found = std::ranges::find(table->entries_, &loop, &Entry::loop);
  if (found == table->entries_.end()) return std::nullopt;
  return found->thread;
}

namespace {

/// A profile of threads by a CpuSampler.
class OsCpuProfile final : public CpuProfile {
 public:
  explicit OsCpuProfile(LabelReader* labels) noexcept : labels_(labels) {}

  Result<> start(std::span<const os::SampledThread> threads, unsigned hertz) {
    auto sampler =
        os::CpuSampler::start(threads, {.hertz = hertz, .hook = &read_facts, .hook_context = this});
    if (!sampler) return fail(sampler.error());
    sampler_ = std::move(*sampler);
    return {};
  }

  void drain(const std::function<void(const CpuSample&)>& use) override {
    sampler_->drain([&use](const os::CpuSampler::Sample& sample) {
      use({.core = sample.thread,
           .weight = sample.weight,
           .activity = sample.facts.activity,
           .label = sample.facts.label,
           .frames = sample.frames});
    });
  }
  void stop() noexcept override { sampler_->stop(); }
  std::uint64_t dropped() const noexcept override { return sampler_->dropped(); }

 private:
  /// Runs in the signal handler. It reads two variables of the interrupted thread.
  static os::CpuSampler::Facts read_facts(void* self, std::size_t core) noexcept {
    os::CpuSampler::Facts facts;
    facts.activity = reinterpret_cast<std::uintptr_t>(CurrentActivity::function());
    LabelReader* const labels = static_cast<OsCpuProfile*>(self)->labels_;
    const TraceContext* const trace = CurrentActivity::trace();
    if (labels != nullptr && trace != nullptr) facts.label = labels->read(core, trace);
    return facts;
  }

  LabelReader* labels_;
  std::unique_ptr<os::CpuSampler> sampler_;
};

std::string reason_of(std::error_code error) {
  if (error == Errc::conflict) return "another profile runs in this process (wait for its end)";
  if (error == Errc::unsupported) {
    return "a thread of a loop blocks SIGPROF (unblock it before the loops start)";
  }
  return "timer_create: " + error.message();
}

}  // namespace

std::expected<std::unique_ptr<CpuProfile>, ProfileError> start_os_cpu_profile(
    std::span<Loop* const> loops, const CpuProfileOptions& options) {
  std::vector<os::SampledThread> threads;
  for (Loop* const each : loops) {
    const auto thread = LoopThreadTable::thread_of(*each);
    if (!thread) {
      return std::unexpected(
          ProfileError{Errc::unsupported, "a loop does not run on a thread of the runtime"});
    }
    threads.push_back(*thread);
  }
  auto profile = std::make_unique<OsCpuProfile>(options.labels);
  if (const auto started = profile->start(threads, options.hertz); !started) {
    return std::unexpected(ProfileError{started.error(), reason_of(started.error())});
  }
  return profile;
}

}  // namespace weir::loop
