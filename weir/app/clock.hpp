// The clock as a service, which a test can replace by a fake.
#pragma once

#include <memory>

#include "weir/base/time.hpp"
#include "weir/loop/loop.hpp"

namespace weir {

/// A Clock returns the current time. Services take `const Clock&`; a program registers a
/// SystemClock, and a test registers a fake (see App::fake()). Services wait with sleep() and
/// timeout(), which follow the platform's time, and virtual time in tests.
/// Threads: those of the service that implements it.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Returns the monotonic time; only differences are meaningful.
  virtual Instant now() const noexcept = 0;
  /// Returns the date and the time of day. The user may set that clock forwards or backwards.
  virtual WallTime wall_time() const noexcept = 0;
};

/// The platform's clock: `app.per_core<SystemClock, Clock>();`.
class SystemClock final : public Clock {
 public:
  explicit SystemClock(Loop& loop) noexcept : clock_(loop.platform()) {}
  Instant now() const noexcept override { return clock_.now(); }
  WallTime wall_time() const noexcept override { return clock_.wall_time(); }

 private:
  loop::PlatformClock& clock_;
};

/// A clock for tests, which advances only by advance(). Copies share their time: one copy can be
/// the service and another can be the test's control.
/// Threads: one.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(WallTime at = WallTime()) : state_(std::make_shared<State>()) {
    state_->wall_time = at;
  }
  Instant now() const noexcept override { return state_->now; }
  WallTime wall_time() const noexcept override { return state_->wall_time; }
  void advance(Duration length) noexcept {
    state_->now += length;
    state_->wall_time += length;
  }

 private:
  struct State {
    Instant now{};
    WallTime wall_time{};
  };
  std::shared_ptr<State> state_;
};

}  // namespace weir
