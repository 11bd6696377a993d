// What is known of names, for as long as it is true.
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

namespace weir::names {

/// What can be asked for.
struct NameQuestion {
  HostName name;
  Family family;

  friend bool operator<(const NameQuestion& left, const NameQuestion& right) noexcept {
    if (const auto order = left.name.text <=> right.name.text; order != 0) return order < 0;
    if (left.family != right.family) return left.family < right.family;
    return left.name.absolute < right.name.absolute;
  }
};

/// What came of it: addresses, at least one, or an error.
struct NameAnswer {
  std::error_code error;
  std::vector<Endpoint> addresses;  ///< port 0
  Duration lifetime{};              ///< for how long it is true
};

/// Of the answers that are kept, those that were used last; what is too old is none any more.
/// Threads: its loop's.
class NameCache {
 public:
  explicit NameCache(std::size_t entries_max) noexcept : entries_max_(entries_max) {}
  NameCache(const NameCache&) = delete;
  NameCache& operator=(const NameCache&) = delete;

  /// nullptr: it is not known. What is given stays valid, also when it is forgotten here.
  std::shared_ptr<const NameAnswer> find(const NameQuestion& question, Instant now);
  /// For `answer->lifetime` from now on; not at all, if that is zero.
  void keep(const NameQuestion& question, std::shared_ptr<const NameAnswer> answer, Instant now);
  void clear() noexcept;
  /// With those that are too old and that nobody has asked for since.
  std::size_t size() const noexcept { return index_.size(); }

 private:
  struct Entry {
    std::shared_ptr<const NameAnswer> answer;
    Instant expires;
    std::list<const NameQuestion*>::iterator place;  // in used_
  };
  using Index = std::map<NameQuestion, Entry>;
  void forget(Index::iterator entry);

  std::size_t entries_max_;
  Index index_;
  std::list<const NameQuestion*> used_;  // the last one first; they are the index's keys
};

}  // namespace weir::names
