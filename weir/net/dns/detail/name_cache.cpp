#include "weir/net/dns/detail/name_cache.hpp"

#include <utility>

namespace weir::names {

std::shared_ptr<const NameAnswer> NameCache::find(const NameQuestion& question, Instant now) {
  const auto found = index_.find(question);
  if (found == index_.end()) return nullptr;
  Entry& entry = found->second;
  if (entry.expires <= now) {
    forget(found);
    return nullptr;
  }
  used_.splice(used_.begin(), used_, entry.place);
  return entry.answer;
}

void NameCache::keep(const NameQuestion& question, std::shared_ptr<const NameAnswer> answer,
                     Instant now) {
  if (entries_max_ == 0 || answer->lifetime <= Duration::zero()) return;
  if (const auto known = index_.find(question); known != index_.end()) forget(known);
  if (index_.size() == entries_max_) forget(index_.find(*used_.back()));
  const Instant expires = after(now, answer->lifetime);
  const auto made = index_.emplace(question, Entry{std::move(answer), expires, used_.end()}).first;
  used_.push_front(&made->first);
  made->second.place = used_.begin();
}

void NameCache::clear() noexcept {
  index_.clear();
  used_.clear();
}

void NameCache::forget(Index::iterator entry) {
  used_.erase(entry->second.place);
  index_.erase(entry);
}

}  // namespace weir::names
