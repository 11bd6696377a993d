#include "weir/web/cookies/memory_session_store.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <list>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "weir/loop/loop.hpp"

namespace weir::http {
namespace {

constexpr std::size_t parts_max = 16;
constexpr std::size_t sessions_of_part_min = 1024;  // fewer sessions lie in one part

Instant now() {
  assert(Loop::current() != nullptr);
  return Loop::current()->now();
}

}  // namespace

/// A part of the sessions with its own mutex and its share of the limits.
class MemorySessionStore::Part {
 public:
  explicit Part(const MemorySessionLimits& limits) noexcept : limits_(limits) {}

  std::optional<std::string> load(const std::string& id, Duration lifetime) {
    const Instant time = now();
    const std::lock_guard lock(mutex_);
    const auto found = find(id, time);
    if (found == sessions_.end()) return std::nullopt;
    found->second->ends = after(time, lifetime);
    order_.splice(order_.begin(), order_, found->second);
    return found->second->data;
  }

  Result<> save(std::string id, std::string data, Duration lifetime, SessionSave how) {
    const Instant time = now();
    id.shrink_to_fit();  // the limits count sizes, not capacities
    data.shrink_to_fit();
    std::list<Entry> added;
    added.push_front({std::move(id), std::move(data), after(time, lifetime)});
    const Entry& entry = added.front();
    const std::lock_guard lock(mutex_);
    const auto found = find(entry.id, time);
    if (found == sessions_.end() && how == SessionSave::replace) return fail(Errc::not_found);
    if (entry.size() > limits_.bytes_max || limits_.sessions_max == 0) {
      return fail(Errc::limit_reached);
    }
    if (found == sessions_.end()) {
      sessions_.emplace(entry.id, added.begin());  // nothing has changed if it throws
    } else {
      replace(found, added.begin());
    }
    bytes_ += entry.size();
    order_.splice(order_.begin(), added);
    make_room(time);
    return {};
  }

  void remove(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(id);
    if (found != sessions_.end()) erase(found);
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return sessions_.size();
  }
  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  std::uint64_t evicted() const {
    const std::lock_guard lock(mutex_);
    return evicted_;
  }

 private:
  struct Entry {
    std::string id;
    std::string data;
    Instant ends;
    std::size_t size() const noexcept { return entry_bytes + id.size() + data.size(); }
  };
  using Sessions = std::unordered_map<std::string_view, std::list<Entry>::iterator>;

  /// Returns the entry of a session that has not ended; drops one that has.
  Sessions::iterator find(const std::string& id, Instant time) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end() || found->second->ends > time) return found;
    erase(found);
    return sessions_.end();
  }
  void erase(Sessions::iterator session) {
    const auto entry = session->second;
    bytes_ -= entry->size();
    sessions_.erase(session);
    order_.erase(entry);
  }
  /// Lets a session have another entry. It allocates nothing: the map has as many as before.
  void replace(Sessions::iterator session, std::list<Entry>::iterator entry) {
    auto node = sessions_.extract(session);
    const auto former = std::exchange(node.mapped(), entry);
    node.key() = entry->id;
    sessions_.insert(std::move(node));
    bytes_ -= former->size();
    order_.erase(former);
  }
  /// Drops sessions that have ended from the end of the order, then those least recently used,
  /// until the limits hold. The first one of the order fits.
  void make_room(Instant time) {
    while (!order_.empty()) {
      const bool ended = order_.back().ends <= time;
      const bool full = sessions_.size() > limits_.sessions_max || bytes_ > limits_.bytes_max;
      if (!ended && !full) return;
      if (!ended) ++evicted_;
      erase(sessions_.find(order_.back().id));
    }
  }

  MemorySessionLimits limits_;
  mutable std::mutex mutex_;
  std::list<Entry> order_;  // the most recently used first
  Sessions sessions_;       // the keys are views of the entries
  std::size_t bytes_ = 0;
  std::uint64_t evicted_ = 0;
};

MemorySessionStore::MemorySessionStore(const MemorySessionLimits& limits) {
  const std::size_t parts =
      std::clamp<std::size_t>(limits.sessions_max / sessions_of_part_min, 1, parts_max);
  const MemorySessionLimits share{.sessions_max = limits.sessions_max / parts,
                                  .bytes_max = limits.bytes_max / parts};
  for (std::size_t each = 0; each < parts; ++each) parts_.push_back(std::make_unique<Part>(share));
}

MemorySessionStore::~MemorySessionStore() = default;

MemorySessionStore::Part& MemorySessionStore::part_of(const std::string& id) const noexcept {
  return *parts_[std::hash<std::string>()(id) % parts_.size()];
}

Task<Result<std::optional<std::string>>> MemorySessionStore::load(std::string id,
                                                                  Duration lifetime) {
  co_return part_of(id).load(id, lifetime);
}

Task<Result<>> MemorySessionStore::save(std::string id, std::string data, Duration lifetime,
                                        SessionSave how) {
  Part& part = part_of(id);
  co_return part.save(std::move(id), std::move(data), lifetime, how);
}

Task<Result<>> MemorySessionStore::remove(std::string id) {
  part_of(id).remove(id);
  co_return {};
}

std::size_t MemorySessionStore::size() const {
  std::size_t sum = 0;
  for (const auto& each : parts_) sum += each->size();
  return sum;
}

std::size_t MemorySessionStore::bytes() const {
  std::size_t sum = 0;
  for (const auto& each : parts_) sum += each->bytes();
  return sum;
}

std::uint64_t MemorySessionStore::evicted() const {
  std::uint64_t sum = 0;
  for (const auto& each : parts_) sum += each->evicted();
  return sum;
}

std::uint64_t memory_bound(const MemorySessionLimits& limits) noexcept {
  return limits.bytes_max;
}

}  // namespace weir::http
