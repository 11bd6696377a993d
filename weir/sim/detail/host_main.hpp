// The main function of a simulated host: it waits inside Host::run() while the World goes on.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace weir {

/// A function with a stack of its own. At any time either it or the World's thread runs, never
/// both: each goes on when the other hands over. No loop is ever turned here.
/// Threads: go_on() and the destructor the World's; hand_back() the function's.
class WorldMain {
 public:
  explicit WorldMain(std::function<void()> body) : body_(std::move(body)) {}
  WorldMain(const WorldMain&) = delete;
  WorldMain& operator=(const WorldMain&) = delete;
  /// It has returned, or has never been let go on.
  ~WorldMain();

  /// Lets it run until it hands back or returns.
  void go_on();
  /// Waits until it may go on.
  void hand_back();
  bool begun() const noexcept { return thread_.joinable(); }
  bool returned() const noexcept { return returned_; }

 private:
  void run();

  std::function<void()> body_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable handed_over_;
  bool its_turn_ = false;
  bool returned_ = false;
  std::thread thread_;
};

}  // namespace weir
