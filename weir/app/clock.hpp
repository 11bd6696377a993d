// The clock as a service: what takes it can be tested with any other.
#pragma once

#include <memory>

#include "weir/base/time.hpp"
#include "weir/loop/loop.hpp"

namespace weir {

/// What time it is. Services ask for `const Clock&`; a program registers a HostClock, a test fakes
/// it (see App::fake()). For waiting there are sleep() and timeout(), which follow the host's time,
/// and so virtual time in tests.
/// Threads: those of the service that implements it.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Never goes back; only differences mean something.
  virtual Instant now() const noexcept = 0;
  /// The date and the time of day; may be set.
  virtual WallTime wall_time() const noexcept = 0;
};

/// The host's: `app.per_core<HostClock, Clock>();`.
class HostClock final : public Clock {
 public:
  explicit HostClock(Loop& loop) noexcept : host_(loop.host()) {}
  Instant now() const noexcept override { return host_.now(); }
  WallTime wall_time() const noexcept override { return host_.wall_time(); }

 private:
  Host& host_;
};

/// A test's own: it stands still but for what it is told. Copies show the same time, so one may be
/// a service and another the test's hand on it. Threads: one.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(WallTime at = WallTime()) : shared_(std::make_shared<Shown>()) {
    shared_->wall_time = at;
  }
  Instant now() const noexcept override { return shared_->now; }
  WallTime wall_time() const noexcept override { return shared_->wall_time; }
  void advance(Duration length) noexcept {
    shared_->now += length;
    shared_->wall_time += length;
  }

 private:
  struct Shown {
    Instant now{};
    WallTime wall_time{};
  };
  std::shared_ptr<Shown> shared_;
};

}  // namespace weir
