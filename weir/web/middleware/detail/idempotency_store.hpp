// The responses to requests with an Idempotency-Key, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
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
  /// Returns true for a streamed body without bytes, as a reverse proxy passes it on.
  static bool has_empty_stream(const Response& response) noexcept;
  /// `response` has a whole body.
  explicit StoredResponse(const Response& response);
  /// Returns a response with the same status, headers and content.
  Response replay() const;
  std::size_t bytes() const noexcept;

  Status status;
  Headers headers;
  std::string body;
  bool is_empty_stream;            ///< the server must not describe an error in the empty body
  std::optional<Problem> problem;  ///< of a response whose body the server writes
};

/// The limits of an IdempotencyStore.
struct IdempotencyLimits {
  Duration lifetime;
  std::size_t entries_max;
  std::size_t bytes_max;
};

/// An IdempotencyStore remembers keys, each with the fingerprint of its request. A key runs, and
/// then it ends with a response or without one. It stays for its lifetime in both cases.
///
///     claim() -> running -- finish() --> answered -- too many bytes --> unknown
///                        -- lose()   --> unknown
///                        -- release()--> (forgotten)
///
/// If there are too many keys, an owner with more keys than that of the new one makes room: the one
/// with the most of those that have an ended key loses its oldest ended key. Otherwise the owner of
/// the new key makes room itself. If there are too many bytes, the same rule takes the oldest
/// response of an owner, and the key stays.
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
    Hash128 owner;        ///< the one that the key and its response count for
    Hash128 key;          ///< of all that tells keys apart
    Hash128 fingerprint;  ///< of the content of the request
  };

  explicit IdempotencyStore(const IdempotencyLimits& limits) : limits_(limits) {}

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
  struct Owner;
  /// The number of keys or bytes of an owner.
  struct Share {
    std::size_t amount;
    std::uint64_t since;  // the number of the change to this amount
    Owner* owner;
    /// Returns true if this owner makes room before the other one.
    bool operator<(const Share& other) const noexcept {
      return amount != other.amount ? amount > other.amount : since < other.since;
    }
  };
  using Shares = std::set<Share>;
  /// The Share of an owner, from its begin to its end. A change allocates nothing.
  class ShareOf {
   public:
    ShareOf(Shares& shares, Owner& owner, std::uint64_t since)
        : shares_(shares), place_(shares.insert({0, since, &owner}).first) {}
    ShareOf(const ShareOf&) = delete;
    ShareOf& operator=(const ShareOf&) = delete;
    ~ShareOf() { shares_.erase(place_); }
    std::size_t amount() const noexcept { return place_->amount; }
    void set(std::size_t amount, std::uint64_t since) noexcept;

   private:
    Shares& shares_;
    Shares::iterator place_;
  };
  /// The keys of one owner, by their progress.
  struct Owner {
    Owner(IdempotencyStore& store, const Hash128& hash)
        : id(hash),
          entries(store.entry_shares_, *this, ++store.changes_),
          bytes(store.byte_shares_, *this, ++store.changes_) {}
    bool has_ended_keys() const noexcept { return !answered.empty() || !unknown.empty(); }
    const Hash128 id;
    Keys running;
    Keys answered;
    Keys unknown;
    ShareOf entries;
    ShareOf bytes;
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
  void set_bytes(Owner& owner, std::size_t bytes) noexcept;

  const IdempotencyLimits limits_;
  std::once_flag seeded_;
  std::uint64_t seed_ = 0;
  mutable std::mutex mutex_;
  Entries entries_;
  Shares entry_shares_;
  Shares byte_shares_;
  std::uint64_t changes_ = 0;
  std::unordered_map<Hash128, Owner, KeyHash> owners_;
  Keys running_;
  Keys ended_;
  std::size_t bytes_ = 0;
};

}  // namespace weir::http
