#include "weir/http/server/detail/server_connection_count.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace weir::http {
namespace {

/// The counts of the servers of a group. It is a slot of the group.
struct ServerConnectionCounts {
  struct Entry {
    const Router* router;
    Endpoint endpoint;
    std::weak_ptr<ServerConnectionCount> count;
  };
  std::mutex mutex;  // guards the entries
  std::vector<Entry> entries;
};

}  // namespace

std::shared_ptr<ServerConnectionCount> ServerConnectionCount::of(Loop& loop, const Router& router,
                                                                 const Endpoint& endpoint) {
  auto& counts = loop.group().slots().get<ServerConnectionCounts>();
  const std::lock_guard lock(counts.mutex);
  std::erase_if(counts.entries, [](const auto& each) { return each.count.expired(); });
  for (const auto& each : counts.entries) {
    if (each.router != &router || each.endpoint != endpoint) continue;
    if (auto count = each.count.lock()) return count;
  }
  auto made = std::make_shared<ServerConnectionCount>();
  counts.entries.push_back({&router, endpoint, made});
  return made;
}

}  // namespace weir::http
