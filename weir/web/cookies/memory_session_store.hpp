// MemorySessionStore: the sessions of one process, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/task/task.hpp"
#include "weir/web/cookies/session_store.hpp"

namespace weir::http {

/// The limits of a MemorySessionStore. Beyond one, the store drops sessions that have ended, and
/// then the session that was not used for the longest time.
struct MemorySessionLimits {
  std::size_t sessions_max = 100'000;
  /// Bytes of all sessions: data, ids, and MemorySessionStore::entry_bytes for each.
  std::size_t bytes_max = 64 * 1024 * 1024;
};

/// Returns the most memory in bytes that the sessions of a store hold.
std::uint64_t memory_bound(const MemorySessionLimits& limits) noexcept;

/// Keeps sessions in the memory of this process, for all its cores. They end with the process, and
/// other processes do not see them.
/// Threads: any. Cores share the store by mutexes, each for a part of the sessions.
/// Lifetime: outlives the calls.
class MemorySessionStore final : public SessionStore {
 public:
  /// Bytes that a session holds in addition to its id and its data.
  static constexpr std::size_t entry_bytes = 192;

  explicit MemorySessionStore(const MemorySessionLimits& limits = {});
  ~MemorySessionStore() override;

  /// Cancel: has no effect; the call does not wait.
  Task<Result<std::optional<std::string>>> load(std::string id, Duration lifetime) override;
  /// Errors: not_found; limit_reached for a session that is larger than its part of the store.
  /// Cancel: has no effect; the call does not wait.
  Task<Result<>> save(std::string id, std::string data, Duration lifetime,
                      SessionSave how) override;
  /// Cancel: has no effect; the call does not wait.
  Task<Result<>> remove(std::string id) override;

  /// Returns the number of sessions, including those that have ended and are not dropped yet.
  std::size_t size() const;
  /// Returns the bytes that the sessions hold.
  std::size_t bytes() const;
  /// Returns the number of sessions that were dropped before their end, because a limit was
  /// reached.
  std::uint64_t evicted() const;

 private:
  class Part;
  Part& part_of(const std::string& id) const noexcept;

  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace weir::http
