// The watchdog of loops on threads: gives those that are in a turn their ticks.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/turn_watch.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir {

/// See TurnWatch. It wakes 50 times a second while loops have anything to do, and not at all when
/// none has had for a second.
/// Threads: one, that of who looks. Lifetime: the loops run after it was made and end before it is
/// destroyed.
class Watchdog {
 public:
  /// Errors: the kernel has no descriptor for it.
  static Result<Watchdog> make(Host& host, std::span<const LoopPlace> places);
  Watchdog(Watchdog&&) noexcept = default;
  Watchdog& operator=(Watchdog&&) = delete;
  ~Watchdog();

  /// Before the loops run. They know it by its address from now on.
  void start();
  /// When look() is to be called next; `never` while it sleeps.
  Instant next() const noexcept { return next_; }
  void look();
  /// A descriptor that is readable when a loop wakes it; then wake() is to be called.
  int woken() const noexcept { return woken_.get(); }
  void wake();

 private:
  struct Watched {
    Loop* loop;
    std::uint64_t turns = 0;  // at the last look
  };
  // 1 s: a loop that sleeps less than that at a time never has to wake it.
  static constexpr unsigned quiet_looks_max = 50;

  Watchdog(Host& host, os::Fd woken) noexcept : host_(&host), woken_(std::move(woken)) {}
  void rest() { next_ = after(host_->now(), TurnWatch::tick_length); }
  static void wake_up(void* self);
  bool look_at(Watched& watched);
  void tell_of_sleep(bool sleeps);

  Host* host_;
  os::Fd woken_;
  std::vector<Watched> watched_;
  Instant next_ = never;
  unsigned quiet_looks_ = 0;
};

}  // namespace weir
