// The main function of a simulated host. It waits inside Platform::run() while the World runs.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace weir::sim {

/// A HostMain is a function with a stack of its own. Either the function or the thread of the
/// World runs at any time, never both. Each runs on when the other one yields. No loop is ever
/// turned here.
/// Threads: the World's thread calls resume() and the destructor; the function calls
/// yield_to_world().
class HostMain {
 public:
  explicit HostMain(std::function<void()> body) : body_(std::move(body)) {}
  HostMain(const HostMain&) = delete;
  HostMain& operator=(const HostMain&) = delete;
  /// The function must have returned, or must never have been resumed.
  ~HostMain();

  /// Resumes the function until it yields or returns.
  void resume();
  /// Returns control to the World and waits until the next resume().
  void yield_to_world();
  bool is_started() const noexcept { return thread_.joinable(); }
  bool returned() const noexcept { return returned_; }

 private:
  void run();

  std::function<void()> body_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable switched_;
  bool running_ = false;
  bool returned_ = false;
  std::thread thread_;
};

}  // namespace weir::sim
