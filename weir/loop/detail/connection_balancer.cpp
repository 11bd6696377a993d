#include "weir/loop/balance.hpp"

#include <cassert>
#include <new>
#include <utility>

#include "weir/loop/loop.hpp"

namespace weir {

bool BalanceRule::hands_over(std::size_t own, std::size_t all, std::size_t cores) noexcept {
  if (own < connections_min || own * cores <= all) {
    begun_ = false;
  } else if (4 * own * cores >= 5 * all) {
    begun_ = true;
  }
  return begun_;
}

std::size_t Intake::load() const noexcept {
  const std::uint64_t open = loop_.counters().connections.value();
  return static_cast<std::size_t>(open) + waiting_.load(std::memory_order_relaxed);
}

bool Intake::give(Descriptor& connection) {
  bool ring = false;
  {
    const std::lock_guard lock(mutex_);
    if (!is_open()) return false;
    try {
      given_.push_back(std::move(connection));
    } catch (const std::bad_alloc&) {
      return false;
    }
    waiting_.fetch_add(1, std::memory_order_relaxed);
    ring = !std::exchange(rung_, true);
  }
  if (ring) loop_.post(*this);
  return true;
}

bool Intake::open(Receiver& receiver) {
  if (receiver_ != nullptr) return false;
  receiver_ = &receiver;
  const std::lock_guard lock(mutex_);
  open_.store(true, std::memory_order_relaxed);
  return true;
}

void Intake::shut() {
  const std::lock_guard lock(mutex_);
  open_.store(false, std::memory_order_relaxed);
}

void Intake::close() {
  shut();
  receiver_ = nullptr;
  while (take()) {
  }
}

Descriptor Intake::take() {
  if (empty()) return {};
  const std::lock_guard lock(mutex_);
  assert(!given_.empty());
  Descriptor oldest = std::move(given_.front());
  given_.pop_front();
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  return oldest;
}

void Intake::rang(Runnable& self) {
  auto& intake = static_cast<Intake&>(self);
  {
    const std::lock_guard lock(intake.mutex_);
    intake.rung_ = false;
  }
  if (intake.receiver_ != nullptr && !intake.empty()) intake.receiver_->connections_came();
}

Balance::Balance(std::span<Loop* const> loops) {
  for (Loop* const loop : loops) intakes_.push_back(std::make_unique<Intake>(*loop));
}

bool Balance::hand_over(unsigned core, Descriptor& connection) {
  Intake& own = *intakes_[core];
  const std::size_t mine = own.load();
  if (mine < BalanceRule::connections_min) {
    own.rule_ = {};
    return false;  // without a look at what other cores write all the time
  }
  std::size_t all = mine;
  std::size_t cores = 1;
  Intake* lightest = nullptr;
  std::size_t least = mine;
  for (const auto& each : intakes_) {
    if (each.get() == &own || !each->is_open()) continue;
    const std::size_t load = each->load();
    all += load;
    ++cores;
    if (load >= least) continue;
    least = load;
    lightest = each.get();
  }
  const bool hands_over = own.rule_.hands_over(mine, all, cores);
  return hands_over && lightest != nullptr && lightest->give(connection);
}

}  // namespace weir
