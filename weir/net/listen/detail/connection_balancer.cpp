#include "weir/net/listen/detail/connection_balancer.hpp"

#include <cassert>
#include <cstdint>
#include <new>
#include <utility>

namespace weir {
namespace {

/// The balancers of a group, by address. None is removed, because other loops may use it.
class GroupBalancers {
 public:
  ConnectionBalancer& find_or_make(const os::Address& bound, std::span<Loop* const> loops) {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, balancer] : balancers_) {
      if (address == bound) return *balancer;
    }
    return *balancers_.emplace_back(bound, std::make_unique<ConnectionBalancer>(loops)).second;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<os::Address, std::unique_ptr<ConnectionBalancer>>> balancers_;
};

}  // namespace

bool BalancePolicy::should_hand_over(std::size_t own, std::size_t all, std::size_t cores) noexcept {
  if (own < connections_min || own * cores <= all) {
    active_ = false;
  } else if (4 * own * cores >= 5 * all) {
    active_ = true;
  }
  return active_;
}

std::size_t HandoffQueue::load() const noexcept {
  const std::uint64_t open = counters_.open.value();
  return static_cast<std::size_t>(open) + size_.load(std::memory_order_relaxed);
}

bool HandoffQueue::try_push(Descriptor& connection) {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (!is_open()) return false;
    try {
      connections_.push_back(std::move(connection));
    } catch (const std::bad_alloc&) {
      return false;
    }
    size_.fetch_add(1, std::memory_order_relaxed);
    notify = !std::exchange(notified_, true);
  }
  if (notify) loop_.post(*this);
  return true;
}

bool HandoffQueue::open(Receiver& receiver) {
  if (receiver_ != nullptr) return false;
  receiver_ = &receiver;
  const std::lock_guard lock(mutex_);
  open_.store(true, std::memory_order_relaxed);
  return true;
}

void HandoffQueue::stop_receiving() {
  const std::lock_guard lock(mutex_);
  open_.store(false, std::memory_order_relaxed);
}

void HandoffQueue::close() {
  stop_receiving();
  receiver_ = nullptr;
  while (take()) {
  }
}

Descriptor HandoffQueue::take() {
  if (empty()) return {};
  const std::lock_guard lock(mutex_);
  assert(!connections_.empty());
  Descriptor oldest = std::move(connections_.front());
  connections_.pop_front();
  size_.fetch_sub(1, std::memory_order_relaxed);
  return oldest;
}

void HandoffQueue::on_notified(Runnable& self) {
  auto& queue = static_cast<HandoffQueue&>(self);
  {
    const std::lock_guard lock(queue.mutex_);
    queue.notified_ = false;
  }
  if (queue.receiver_ != nullptr && !queue.empty()) queue.receiver_->on_connections();
}

ConnectionBalancer::ConnectionBalancer(std::span<Loop* const> loops) {
  for (Loop* const loop : loops) queues_.push_back(std::make_unique<HandoffQueue>(*loop));
}

ConnectionBalancer* ConnectionBalancer::of(Loop& loop, const os::Address& bound) {
  const std::span<Loop* const> loops = loop.group().loops();
  if (loops.size() < 2) return nullptr;
  return &loop.group().slots().get<GroupBalancers>().find_or_make(bound, loops);
}

bool ConnectionBalancer::hand_over(unsigned core, Descriptor& connection) {
  HandoffQueue& own = *queues_[core];
  const std::size_t mine = own.load();
  if (mine < BalancePolicy::connections_min) {
    own.policy_ = {};
    return false;  // avoids reading data that other cores write all the time
  }
  std::size_t all = mine;
  std::size_t cores = 1;
  HandoffQueue* least_loaded = nullptr;
  std::size_t least = mine;
  for (const auto& each : queues_) {
    if (each.get() == &own || !each->is_open()) continue;
    const std::size_t load = each->load();
    all += load;
    ++cores;
    if (load >= least) continue;
    least = load;
    least_loaded = each.get();
  }
  const bool hands_over = own.policy_.should_hand_over(mine, all, cores);
  return hands_over && least_loaded != nullptr && least_loaded->try_push(connection);
}

}  // namespace weir
