// A cache of look-up results with expiry times.
#pragma once

#include <compare>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/net/dns/detail/host_name.hpp"
#include "weir/os/address.hpp"

namespace weir::dns {

/// A name and the address family to look up.
struct Question {
  HostName name;
  Family family;

  friend bool operator<(const Question& left, const Question& right) noexcept {
    if (const auto order = left.name.text <=> right.name.text; order != 0) return order < 0;
    if (left.family != right.family) return left.family < right.family;
    return left.name.absolute < right.name.absolute;
  }
};

/// The result of a look-up: at least one address, or an error.
struct LookupResult {
  std::error_code error;
  std::vector<Endpoint> addresses;  ///< found addresses, with port 0
  Duration lifetime{};              ///< time for which the result is valid
};

/// Keeps the most recently used results. It does not return expired ones.
/// Threads: its loop's.
class NameCache {
 public:
  explicit NameCache(std::size_t entries_max) noexcept : entries_max_(entries_max) {}
  NameCache(const NameCache&) = delete;
  NameCache& operator=(const NameCache&) = delete;

  /// Returns the cached result; nullptr if none is cached or it has expired. The result stays valid
  /// after its removal from the cache.
  std::shared_ptr<const LookupResult> find(const Question& question, Instant now);
  /// Caches the result for `answer->lifetime` from `now` on. Does not cache it if that is zero.
  void insert(const Question& question, std::shared_ptr<const LookupResult> answer, Instant now);
  void clear() noexcept;
  /// Returns the number of results, including expired ones that no find() has removed yet.
  std::size_t size() const noexcept { return index_.size(); }

 private:
  struct Entry {
    std::shared_ptr<const LookupResult> answer;
    Instant expires;
    std::list<const Question*>::iterator lru_position;
  };
  using Index = std::map<Question, Entry>;
  void erase(Index::iterator entry);

  std::size_t entries_max_;
  Index index_;
  std::list<const Question*> lru_;  // keys of index_, most recently used first
};

}  // namespace weir::dns
