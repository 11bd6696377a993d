// The handlers that answer a route on each core, and the waits for a missing handler.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "weir/base/time.hpp"
#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::http {

// The requests that an owner of routes has on each core.

/// The waiting requests of all routes of one owner on one core.
struct OwnerInFlight final : InFlightRequests {
  ManualResetEvent empty{true};  ///< reset by the task that waits for the last request

  void on_request_ended() override {
    if (requests.empty()) empty.set();
  }
};

/// The waiting requests of one owner on the cores where it answers.
/// Threads: on(): any; an OwnerInFlight: its core's.
/// Lifetime: outlives its requests.
class OwnerInFlightPerCore {
 public:
  /// `cores` is 1 for an owner on one core, else the number of all cores.
  OwnerInFlightPerCore(std::string owner, std::size_t cores)
      : owner_(std::move(owner)),
        size_(cores),
        in_flight_(std::make_unique<OwnerInFlight[]>(cores)) {}

  OwnerInFlight& on(const Loop& loop) noexcept { return in_flight_[size_ == 1 ? 0 : loop.core()]; }
  /// Returns the owner's name, for messages.
  const std::string& owner() const noexcept { return owner_; }

 private:
  std::string owner_;
  std::size_t size_;
  std::unique_ptr<OwnerInFlight[]> in_flight_;
};

struct Route;

/// The handler of one route on one core. The active route is the route, of some owner, whose
/// handler answers.
/// Threads: its core's.
class CoreHandler {
 public:
  /// Returns the active route, or nullptr if there is none.
  const Route* active() const noexcept { return active_; }
  /// Returns true if no route is active but one is expected soon. Requests wait for that route.
  bool is_replacement_expected() const noexcept { return replacement_expected_; }

  /// Installs `active`; it may replace another route. New requests are then its requests.
  void install(const Route& active) {
    active_ = &active;
    settle();
  }
  void remove(bool replacement_expected) {
    active_ = nullptr;
    replacement_expected_ = replacement_expected;
    if (replacement_expected) replacement_settled_.reset();
  }
  /// Ends the wait for a replacement that will not come.
  void stop_waiting_for_replacement() {
    if (replacement_expected_) settle();
  }

  /// Waits until no replacement is expected: `co_await core_handler.replacement_settled()`. A
  /// route has been installed or none will be, so the caller checks active() again.
  /// Errors: Errc::cancelled.
  /// Cancel: resumes from the loop's ready queue.
  auto replacement_settled() noexcept { return replacement_settled_.wait(); }

 private:
  friend class CoreHandlers;
  void settle() {
    replacement_expected_ = false;
    replacement_settled_.set();
  }

  const Loop* loop_ = nullptr;
  const Route* active_ = nullptr;
  bool replacement_expected_ = false;
  ManualResetEvent replacement_settled_{true};
};

/// The handlers of one route on all cores.
/// Threads: on(): any; a CoreHandler: its core's.
/// Lifetime: outlives the requests that wait for a replacement.
class CoreHandlers {
 public:
  /// `loops` are the loops of one group; a loop's core() is its index in `loops`. Requests wait
  /// for a replacement for at most `wait_timeout`.
  CoreHandlers(std::span<Loop* const> loops, Duration wait_timeout)
      : size_(loops.size()),
        wait_timeout_(wait_timeout),
        core_handlers_(std::make_unique<CoreHandler[]>(size_)) {
    for (std::size_t core = 0; core < size_; ++core) core_handlers_[core].loop_ = loops[core];
  }

  /// Returns the handler of the loop's core. Returns nullptr for a loop outside `loops`, for
  /// example a loop of another runtime that serves the router too.
  CoreHandler* on(const Loop& loop) noexcept {
    const std::size_t core = loop.core();
    if (core >= size_ || core_handlers_[core].loop_ != &loop) return nullptr;
    return &core_handlers_[core];
  }
  Duration wait_timeout() const noexcept { return wait_timeout_; }

 private:
  std::size_t size_;
  Duration wait_timeout_;
  std::unique_ptr<CoreHandler[]> core_handlers_;
};

}  // namespace weir::http
