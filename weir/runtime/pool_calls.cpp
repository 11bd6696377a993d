#include "weir/runtime/pool_calls.hpp"

namespace weir {

void PoolCalls::end() noexcept {
  // relaxed: it is only a guess, which the exchange checks.
  unsigned before = count_.load(std::memory_order_relaxed);
  while ((before & awaited) == 0) {
    // release: with the acquire of whoever sees none left, nothing is freed before. In one step
    // with the look at `awaited`: somebody who begins to wait later sees the count that is left.
    if (count_.compare_exchange_weak(before, before - 1, std::memory_order_release,
                                     std::memory_order_relaxed)) {
      return;
    }
  }
  // Who waits takes the mutex before it returns, so this object is there until it is released.
  const std::lock_guard lock(mutex_);
  count_.fetch_sub(1, std::memory_order_release);  // as above
  count_.notify_all();
}

void PoolCalls::await_none() noexcept {
  // acquire, here and below: see none().
  unsigned now = count_.fetch_or(awaited, std::memory_order_acquire) | awaited;
  while (now != awaited) {
    count_.wait(now, std::memory_order_acquire);
    now = count_.load(std::memory_order_acquire);
  }
  const std::lock_guard lock(mutex_);  // the last one is out of end()
}

}  // namespace weir
