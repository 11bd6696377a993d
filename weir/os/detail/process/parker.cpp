#include "weir/os/detail/process/parker.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "weir/os/detail/io/clock.hpp"

namespace weir::os {

void Parker::park(Instant until) noexcept {
  // acquire: the earlier writes of the thread that called unpark() are visible to this thread.
  std::uint32_t expected = awake;
  if (state_.compare_exchange_strong(expected, asleep, std::memory_order_acquire)) {
    const timespec deadline = to_timespec(until.time_since_epoch());
    // `deadline` is absolute on CLOCK_MONOTONIC. The thread sleeps only if the state is still
    // `asleep`. The kernel checks this under its own lock, so that no unpark() is missed.
    ::syscall(SYS_futex, &state_, FUTEX_WAIT_BITSET_PRIVATE, asleep,
              until == never ? nullptr : &deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
  }
  state_.exchange(awake, std::memory_order_acquire);
}

void Parker::unpark() noexcept {
  // release pairs with the acquire above.
  if (state_.exchange(notified, std::memory_order_release) != asleep) return;
  ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace weir::os
