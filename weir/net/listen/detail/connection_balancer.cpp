#include "weir/net/listen/detail/connection_balancer.hpp"

#include <cassert>
#include <cstdint>
#include <mutex>
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

HandoffQueue::HandoffQueue(Loop& loop)
    : loop_(loop),
      counters_(ConnectionCounters::of(loop)),
      connections_(
          [](void* self, Loop&) {
            auto& queue = *static_cast<HandoffQueue*>(self);
            if (queue.receiver_ != nullptr && !queue.empty()) queue.receiver_->on_connections();
          },
          this) {
  connections_.close();  // until open()
}

std::size_t HandoffQueue::load() const noexcept {
  const std::uint64_t open = counters_.open.value();
  return static_cast<std::size_t>(open) + size_.load(std::memory_order_relaxed);
}

bool HandoffQueue::try_push(loop::Descriptor& connection) {
  if (!is_open()) return false;
  std::unique_ptr<Item> item(new (std::nothrow) Item);
  if (item == nullptr) return false;
  item->connection = std::move(connection);
  // Before the push, so that the loop never subtracts first.
  size_.fetch_add(1, std::memory_order_relaxed);
  if (connections_.push(*item, loop_)) {
    static_cast<void>(item.release());
    return true;
  }
  size_.fetch_sub(1, std::memory_order_relaxed);
  connection = std::move(item->connection);
  return false;
}

bool HandoffQueue::open(Receiver& receiver) {
  if (receiver_ != nullptr) return false;
  receiver_ = &receiver;
  connections_.reopen();
  open_.store(true, std::memory_order_relaxed);
  return true;
}

void HandoffQueue::stop_receiving() {
  open_.store(false, std::memory_order_relaxed);
  connections_.close();
}

void HandoffQueue::close() {
  stop_receiving();
  receiver_ = nullptr;
  while (take()) {
  }
}

loop::Descriptor HandoffQueue::take() {
  if (connections_.front() == nullptr) connections_.collect();
  const std::unique_ptr<Item> oldest(connections_.pop());
  if (oldest == nullptr) return {};
  size_.fetch_sub(1, std::memory_order_relaxed);
  return std::move(oldest->connection);
}

ConnectionBalancer::ConnectionBalancer(std::span<Loop* const> loops) {
  for (Loop* const loop : loops) queues_.push_back(std::make_unique<HandoffQueue>(*loop));
}

ConnectionBalancer* ConnectionBalancer::of(Loop& loop, const os::Address& bound) {
  const std::span<Loop* const> loops = loop.group().loops();
  if (loops.size() < 2) return nullptr;
  return &loop.group().slots().get<GroupBalancers>().find_or_make(bound, loops);
}

bool ConnectionBalancer::hand_over(unsigned core, loop::Descriptor& connection) {
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
