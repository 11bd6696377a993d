#include "weir/net/dns/detail/name_cache.hpp"

#include <utility>

namespace weir::dns {

std::shared_ptr<const LookupResult> NameCache::find(const Question& question, Instant now) {
  const auto found = index_.find(question);
  if (found == index_.end()) return nullptr;
  Entry& entry = found->second;
  if (entry.expires <= now) {
    erase(found);
    return nullptr;
  }
  lru_.splice(lru_.begin(), lru_, entry.lru_position);
  return entry.answer;
}

void NameCache::insert(const Question& question, std::shared_ptr<const LookupResult> answer,
                       Instant now) {
  if (entries_max_ == 0 || answer->lifetime <= Duration::zero()) return;
  if (const auto known = index_.find(question); known != index_.end()) erase(known);
  if (index_.size() == entries_max_) erase(index_.find(*lru_.back()));
  const Instant expires = after(now, answer->lifetime);
  const auto made = index_.emplace(question, Entry{std::move(answer), expires, lru_.end()}).first;
  lru_.push_front(&made->first);
  made->second.lru_position = lru_.begin();
}

void NameCache::clear() noexcept {
  index_.clear();
  lru_.clear();
}

void NameCache::erase(Index::iterator entry) {
  lru_.erase(entry->second.lru_position);
  index_.erase(entry);
}

}  // namespace weir::dns
