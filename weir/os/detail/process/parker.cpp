#include "weir/os/detail/process/parker.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "weir/os/detail/io/clock.hpp"

namespace weir::os {

void Parker::park(Instant until) noexcept {
  // acquire, where a call is taken: what the caller did before is seen by this thread.
  std::uint32_t expected = awake;
  if (state_.compare_exchange_strong(expected, asleep, std::memory_order_acquire)) {
    const timespec deadline = to_timespec(until.time_since_epoch());
    // An absolute moment on CLOCK_MONOTONIC. Sleeps only while the state is still `asleep`, which
    // the kernel checks under its own lock, so that no call is missed.
    ::syscall(SYS_futex, &state_, FUTEX_WAIT_BITSET_PRIVATE, asleep,
              until == never ? nullptr : &deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
  }
  state_.exchange(awake, std::memory_order_acquire);
}

void Parker::unpark() noexcept {
  // release pairs with the acquire above.
  if (state_.exchange(called, std::memory_order_release) != asleep) return;
  ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace weir::os
