// A table of token buckets of bounded size, one bucket for each key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "weir/base/text/detail/hash.hpp"
#include "weir/base/time.hpp"
#include "weir/task/sync/rate_limiter.hpp"

namespace weir::http {

/// The state of a bucket after a request.
struct RateDecision {
  bool allowed = true;
  std::uint64_t remaining = 0;  ///< whole tokens that are left
  Duration retry_after{0};      ///< time until the next token, if the request was not allowed
  Duration until_full{0};       ///< time until the bucket is full
};

/// A RateTable has a bucket for each of the keys seen last. A bucket is the time at which it is
/// full again (the generic cell rate algorithm), so it needs 16 bytes. A full bucket is forgotten
/// at no loss. A key for which there is no room replaces the fullest of eight other buckets.
/// Threads: one at a time.
class RateTable {
 public:
  static constexpr std::size_t ways = 8;

  /// Takes a limit that RateLimiter::check() accepts.
  RateTable(const RateLimit& limit, std::size_t keys_max);

  /// Takes a token out of the bucket of `key`, if there is one.
  RateDecision take(const Hash128& key, Instant now) noexcept;

  /// Returns the number of keys that the table can hold, and the bytes that it occupies.
  std::size_t capacity() const noexcept { return buckets_.size(); }
  std::size_t bytes() const noexcept { return buckets_.size() * sizeof(Bucket); }

 private:
  struct Bucket {
    std::uint64_t key = 0;
    std::int64_t full_at = 0;  // in nanoseconds since the first request
  };
  Bucket& find(const Hash128& key, std::int64_t now) noexcept;

  std::int64_t interval_;  // nanoseconds for one token, rounded up
  std::int64_t capacity_;  // nanoseconds for a whole bucket
  Instant start_ = Instant::min();
  std::vector<Bucket> buckets_;
};

}  // namespace weir::http
