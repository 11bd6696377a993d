#include "weir/runtime/pool/detail/pool_list.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "weir/runtime/pool/detail/pool_threads.hpp"

namespace weir {
namespace {

/// All pools of the process. Code with a mutex of a pool does not take this one.
struct Pools {
  struct Entry {
    const PoolThreads* pool;
    const loop::Platform* platform;
    std::string name;
  };
  std::mutex mutex;  // guards the entries, and keeps their pools alive
  std::vector<Entry> entries;

  static Pools& all() {
    static Pools& pools = *new Pools;  // pools may end after the static objects
    return pools;
  }
};

}  // namespace

void add_to_pools(const PoolThreads& pool, const loop::Platform& platform,
                  const std::string& name) {
  Pools& pools = Pools::all();
  const std::lock_guard lock(pools.mutex);
  const auto is_used = [&](const std::string& text) {
    return std::ranges::any_of(pools.entries, [&](const Pools::Entry& each) {
      return each.platform == &platform && each.name == text;
    });
  };
  std::string own = name;
  for (int number = 2; is_used(own); ++number) own = name + " " + std::to_string(number);
  pools.entries.push_back({&pool, &platform, std::move(own)});
}

void remove_from_pools(const PoolThreads& pool) noexcept {
  Pools& pools = Pools::all();
  const std::lock_guard lock(pools.mutex);
  std::erase_if(pools.entries, [&pool](const Pools::Entry& each) { return each.pool == &pool; });
}

std::vector<NamedPoolReport> report_on_pools(const loop::Platform& platform) {
  std::vector<NamedPoolReport> reports;
  Pools& pools = Pools::all();
  const std::lock_guard lock(pools.mutex);
  for (const Pools::Entry& each : pools.entries) {
    if (each.platform != &platform) continue;
    reports.push_back({each.name, each.pool->report()});
  }
  return reports;
}

}  // namespace weir
