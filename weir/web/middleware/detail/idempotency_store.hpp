// The responses to requests with an Idempotency-Key, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "weir/base/text/detail/hash.hpp"
#include "weir/base/time.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/message/problem.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/status.hpp"

namespace weir {
class Loop;
}  // namespace weir

namespace weir::http {

/// A copy of a whole response without its cookies.
struct StoredResponse {
  /// `response` has a whole body.
  explicit StoredResponse(const Response& response);
  /// Returns a response with the same status, headers and content.
  Response replay() const;
  std::size_t bytes() const noexcept;

  Status status;
  Headers headers;
  std::string body;
  std::optional<Problem> problem;  ///< of a response whose body the server writes
};

/// The limits of an IdempotencyStore.
struct IdempotencyLimits {
  Duration lifetime;
  std::size_t entries_max;
  std::size_t bytes_max;
};

/// An IdempotencyStore remembers keys, each with the fingerprint of its request, while the request
/// runs and then with its response. The oldest responses are forgotten if there are too many
/// entries or bytes.
/// Threads: any.
class IdempotencyStore {
 public:
  using Stored = std::shared_ptr<const StoredResponse>;
  enum class State : std::uint8_t {
    claimed,        ///< The key is new. The caller answers, and calls finish() or release().
    in_progress,    ///< A request with this key runs.
    other_request,  ///< The key belongs to another request.
    known,          ///< There is a response.
    full,           ///< All entries belong to requests that run.
  };
  struct Claim {
    State state;
    Stored response = nullptr;
  };

  explicit IdempotencyStore(const IdempotencyLimits& limits) noexcept : limits_(limits) {}

  /// Returns the secret seed of the hashes. The first call draws it.
  std::uint64_t seed(Loop& loop);
  Claim claim(const Hash128& key, const Hash128& fingerprint, Instant now);
  void finish(const Hash128& key, Stored response, Instant now);
  void release(const Hash128& key) noexcept;

  std::size_t entries() const;
  std::size_t bytes() const;

 private:
  struct KeyHash {
    std::size_t operator()(const Hash128& key) const noexcept { return key.low; }
  };
  struct Done {
    Hash128 key;
    Instant until;
  };
  struct Entry {
    Hash128 fingerprint;
    Stored response;  // nullptr while the request runs
    std::list<Done>::iterator done;
  };
  void forget_oldest() noexcept;

  const IdempotencyLimits limits_;
  std::once_flag seeded_;
  std::uint64_t seed_ = 0;
  mutable std::mutex mutex_;
  std::unordered_map<Hash128, Entry, KeyHash> entries_;
  std::list<Done> done_;  // the oldest first
  std::size_t bytes_ = 0;
};

}  // namespace weir::http
