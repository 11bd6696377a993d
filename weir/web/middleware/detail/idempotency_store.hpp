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
#include <vector>

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
  /// The number of owners that have a guaranteed share: each may have entries_max / shares keys and
  /// responses of bytes_max / shares bytes, whatever others do.
  std::size_t shares;
};

/// An IdempotencyStore remembers keys, each with the fingerprint of its request. A key runs, and
/// then it ends with a response or without one. It stays for its lifetime in both cases.
///
///     claim() -> running -- finish() --> answered -- too many bytes --> unknown
///                        -- lose()   --> unknown
///                        -- release()--> (forgotten)
///
/// If there are too many keys, an owner beyond its share loses its oldest ended one. If there are
/// too many bytes, it loses its oldest response, and the key stays. So no owner within its share
/// loses anything to others.
/// Threads: any.
class IdempotencyStore {
 public:
  using Stored = std::shared_ptr<const StoredResponse>;
  enum class State : std::uint8_t {
    claimed,        ///< The key is new. The caller answers; finish(), lose() or release() follows.
    in_progress,    ///< A request with this key runs.
    other_request,  ///< The key belongs to another request.
    known,          ///< There is a response.
    unknown,        ///< A request with this key has ended, and there is no response.
    full,           ///< There is no room for the key of this owner.
  };
  struct Claim {
    State state;
    Stored response = nullptr;
  };
  /// What the store knows of a request.
  struct KeyedRequest {
    Hash128 owner;
    Hash128 key;          ///< of the owner and the name of the key
    Hash128 fingerprint;  ///< of the content of the request
  };

  explicit IdempotencyStore(const IdempotencyLimits& limits);

  /// Returns the secret seed of the hashes. The first call draws it.
  std::uint64_t seed(Loop& loop);
  Claim claim(const KeyedRequest& request, Instant now);
  /// Ends a claimed key with its response. The response is not kept if there is no room for it.
  void finish(const Hash128& key, Stored response, Instant now) noexcept;
  /// Ends a claimed key without a response: its effect is unknown until its lifetime has passed.
  void lose(const Hash128& key, Instant now) noexcept;
  /// Forgets a claimed key, because its request had no effect.
  void release(const Hash128& key) noexcept;

  std::size_t entries() const;
  std::size_t bytes() const;

 private:
  struct KeyHash {
    std::size_t operator()(const Hash128& key) const noexcept { return key.low; }
  };
  using Keys = std::list<Hash128>;  // the oldest first
  enum class Progress : std::uint8_t { running, answered, unknown };
  /// The keys of one owner, by their progress.
  struct Owner {
    Hash128 id;
    Keys running;
    Keys answered;
    Keys unknown;
    std::size_t entries = 0;
    std::size_t bytes = 0;
  };
  struct Entry {
    Hash128 fingerprint;
    Owner* owner = nullptr;
    Progress progress = Progress::running;
    Stored response = nullptr;  // of an answered one
    Instant until{};            // the end of an ended one
    Keys::iterator of_owner;    // in the list of its progress
    Keys::iterator of_all;      // in running_ or ended_
  };
  using Entries = std::unordered_map<Hash128, Entry, KeyHash>;

  static Keys& keys_of(Owner& owner, Progress progress) noexcept;
  void set_progress(Entry& entry, Progress progress) noexcept;
  void end(Entry& entry, Progress progress, Instant now) noexcept;
  void forget(Entries::iterator entry) noexcept;
  void drop_response(Entry& entry) noexcept;
  bool make_room(const Hash128& owner) noexcept;
  bool forget_oldest_of(Owner& owner) noexcept;
  bool make_room_for_bytes(Owner& owner, std::size_t bytes) noexcept;
  void add_bytes(Owner& owner, std::size_t bytes) noexcept;
  void remove_bytes(Owner& owner, std::size_t bytes) noexcept;

  const IdempotencyLimits limits_;
  const std::size_t entries_share_;
  const std::size_t bytes_share_;
  std::once_flag seeded_;
  std::uint64_t seed_ = 0;
  mutable std::mutex mutex_;
  Entries entries_;
  std::unordered_map<Hash128, Owner, KeyHash> owners_;
  std::vector<Owner*> with_many_entries_;  // beyond their share; at most `shares`
  std::vector<Owner*> with_many_bytes_;
  Keys running_;
  Keys ended_;
  std::size_t bytes_ = 0;
};

}  // namespace weir::http
