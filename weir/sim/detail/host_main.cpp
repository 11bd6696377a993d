// The switch between the World's thread and the main function of a host.
#include "weir/sim/detail/host_main.hpp"

#include <cassert>

namespace weir::sim {

HostMain::~HostMain() {
  assert(!is_started() || returned_);
  if (is_started()) thread_.join();
}

void HostMain::resume() {
  assert(!returned_);
  std::unique_lock lock(mutex_);
  running_ = true;
  if (is_started()) {
    switched_.notify_all();
  } else {
    thread_ = std::thread([this] { run(); });
  }
  switched_.wait(lock, [this] { return !running_; });
}

void HostMain::run() {
  body_();
  const std::lock_guard lock(mutex_);
  returned_ = true;
  running_ = false;
  switched_.notify_all();
}

void HostMain::yield_to_world() {
  std::unique_lock lock(mutex_);
  running_ = false;
  switched_.notify_all();
  switched_.wait(lock, [this] { return running_; });
}

}  // namespace weir::sim
