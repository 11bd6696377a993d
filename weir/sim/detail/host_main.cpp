#include "weir/sim/detail/host_main.hpp"

#include <cassert>

namespace weir {

WorldMain::~WorldMain() {
  assert(!begun() || returned_);
  if (begun()) thread_.join();
}

void WorldMain::go_on() {
  assert(!returned_);
  std::unique_lock lock(mutex_);
  its_turn_ = true;
  if (begun()) {
    handed_over_.notify_all();
  } else {
    thread_ = std::thread([this] { run(); });
  }
  handed_over_.wait(lock, [this] { return !its_turn_; });
}

void WorldMain::run() {
  body_();
  const std::lock_guard lock(mutex_);
  returned_ = true;
  its_turn_ = false;
  handed_over_.notify_all();
}

void WorldMain::hand_back() {
  std::unique_lock lock(mutex_);
  its_turn_ = false;
  handed_over_.notify_all();
  handed_over_.wait(lock, [this] { return its_turn_; });
}

}  // namespace weir
