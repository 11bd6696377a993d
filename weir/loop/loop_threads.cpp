// Threads for loops: started, pinned, waited for; and the signals that meanwhile arrive.
#include "weir/loop/loop_threads.hpp"

#include <poll.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/os/affinity.hpp"
#include "weir/os/fd.hpp"
#include "weir/os/signals.hpp"

namespace weir {
namespace {

/// Threads that run loops. Joins them when destroyed.
class LoopThreads {
 public:
  LoopThreads(Host& host, os::Fd all_ended) : host_(host), all_ended_(std::move(all_ended)) {}
  LoopThreads(const LoopThreads&) = delete;
  LoopThreads& operator=(const LoopThreads&) = delete;
  ~LoopThreads() { join(); }

  /// Errors: a thread could not be started. The others have been stopped and joined then.
  Result<> start(std::span<const LoopPlace> places);
  /// An eventfd that becomes readable when the last loop has returned.
  int all_ended() const noexcept { return all_ended_.get(); }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void run(LoopPlace place);

  Host& host_;
  os::Fd all_ended_;
  std::atomic<std::size_t> running_{0};
  std::vector<std::thread> threads_;
};

Result<> LoopThreads::start(std::span<const LoopPlace> places) {
  running_ = places.size();
  try {
    threads_.reserve(places.size());
    for (const LoopPlace& place : places) threads_.emplace_back(&LoopThreads::run, this, place);
    return {};
  } catch (const std::system_error& error) {
    for (std::size_t index = 0; index < threads_.size(); ++index) places[index].loop->stop();
    join();
    return fail(system_error(error.code().value()));
  }
}

void LoopThreads::run(LoopPlace place) {
  os::name_this_thread("weir-" + std::to_string(place.loop->core()));
  if (place.cpu >= 0) {
    const auto pinned = os::pin_this_thread(place.cpu);
    if (!pinned) {
      host_.log("core " + std::to_string(place.loop->core()) + " is not pinned to CPU " +
                std::to_string(place.cpu) + ": " + pinned.error().message());
    }
  }
  place.loop->run();
  // acq_rel: whoever reads the event sees what every loop has done.
  if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) os::signal_event(all_ended_.get());
}

void pass_on(os::SignalFd& signals, RunControl& control) {
  while (const auto signal = signals.read()) {
    control.signalled(*signal == os::StopSignal::interrupt ? Signal::interrupt : Signal::terminate);
  }
}

/// Tells `control` of every signal until the event is signalled.
void watch_signals(os::SignalFd& signals, RunControl& control, int until_event) {
  std::array<pollfd, 2> watched{{{signals.get(), POLLIN, 0}, {until_event, POLLIN, 0}}};
  for (;;) {
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;  // EINTR, or no memory just now
    if (watched[0].revents != 0) pass_on(signals, control);
    if (watched[1].revents != 0) return;
  }
}

}  // namespace

Result<> run_on_threads(Host& host, std::span<const LoopPlace> places, RunControl* control) {
  if (places.empty()) return {};
  auto all_ended = os::open_event();
  if (!all_ended) return fail(all_ended.error());
  // Before the threads, which inherit the mask; and it is restored only after they are joined.
  std::optional<os::SignalFd> signals;
  if (control != nullptr) {
    auto opened = os::SignalFd::open();
    if (!opened) return fail(opened.error());
    signals.emplace(std::move(*opened));
  }
  LoopThreads threads(host, std::move(*all_ended));
  if (auto started = threads.start(places); !started) return started;
  if (signals) watch_signals(*signals, *control, threads.all_ended());
  threads.join();
  return {};
}

}  // namespace weir
