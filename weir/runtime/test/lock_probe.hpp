// A probe that shows if a critical section is one. Only tests include it.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

namespace weir {

/// A LockProbe calls a function on another thread while the code under test holds the lock that
/// the function needs. The function cannot return before the lock is released. If the lock is
/// missing, it almost certainly returns too early.
class LockProbe {
 public:
  explicit LockProbe(std::function<void()> attempt) : attempt_(std::move(attempt)) {}
  LockProbe(const LockProbe&) = delete;
  LockProbe& operator=(const LockProbe&) = delete;
  ~LockProbe() { join(); }

  /// Call it inside the critical section. Only the first call has an effect.
  void probe() {
    if (thread_.joinable()) return;
    thread_ = std::thread([this] {
      began_ = true;
      attempt_();
      returned_ = true;
    });
    while (!began_) std::this_thread::yield();
    for (int turn = 0; turn < 2000 && !returned_; ++turn) std::this_thread::yield();
    returned_inside_ = returned_.load();
  }
  /// Waits for the function, after the critical section.
  /// Returns: true if probe() was called and the function had to wait.
  bool was_blocked() {
    const bool called = thread_.joinable();
    join();
    return called && !returned_inside_;
  }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  std::function<void()> attempt_;
  std::atomic<bool> began_ = false;
  std::atomic<bool> returned_ = false;
  bool returned_inside_ = false;
  std::thread thread_;
};

}  // namespace weir
