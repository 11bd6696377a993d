#include "weir/web/middleware/detail/idempotency_store.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "weir/loop/loop.hpp"

namespace weir::http {
namespace {

std::size_t share_of(std::size_t all, std::size_t shares) noexcept {
  return std::max<std::size_t>(all / std::max<std::size_t>(shares, 1), 1);
}

}  // namespace

StoredResponse::StoredResponse(const Response& response)
    : status(response.status()), headers(response.headers()), body(response.body().text()) {
  headers.remove("Set-Cookie");  // it belongs to the client that got it
  if (response.needs_error_page()) problem = response.problem();
  if (!response.content_type().empty() && !headers.contains("Content-Type")) {
    std::ignore = headers.add("Content-Type", response.content_type());
  }
}

Response StoredResponse::replay() const {
  Response response(status);
  for (const HeaderField each : headers) response.add_header(each.name, each.value);
  if (problem) {
    response.set_problem(*problem);
  } else {
    response.body() = Body(body);
  }
  return response;
}

std::size_t StoredResponse::bytes() const noexcept {
  std::size_t sum = sizeof(StoredResponse) + headers.lines().size() + body.size();
  if (!problem) return sum;
  sum += problem->detail.size() + problem->type.size();
  for (const Violation& each : problem->violations) {
    sum += sizeof each + each.name.size() + each.detail.size();
  }
  return sum;
}

std::uint64_t IdempotencyStore::seed(Loop& loop) {
  std::call_once(seeded_, [&] { seed_ = loop.platform().random(); });
  return seed_;
}

IdempotencyStore::IdempotencyStore(const IdempotencyLimits& limits)
    : limits_(limits),
      entries_share_(share_of(limits.entries_max, limits.shares)),
      bytes_share_(share_of(limits.bytes_max, limits.shares)) {
  // Each of them holds more than a share, so a later push_back() allocates nothing.
  with_many_entries_.reserve(limits.entries_max / (entries_share_ + 1) + 1);
  with_many_bytes_.reserve(std::min(limits.bytes_max / (bytes_share_ + 1), limits.entries_max) + 1);
}

IdempotencyStore::Claim IdempotencyStore::claim(const KeyedRequest& request, Instant now) {
  const std::lock_guard lock(mutex_);
  while (!ended_.empty()) {
    const auto oldest = entries_.find(ended_.front());
    if (oldest->second.until > now) break;
    forget(oldest);
  }
  if (const auto found = entries_.find(request.key); found != entries_.end()) {
    const Entry& entry = found->second;
    if (entry.fingerprint != request.fingerprint) return {State::other_request};
    if (entry.progress == Progress::running) return {State::in_progress};
    if (entry.progress == Progress::unknown) return {State::unknown};
    return {State::known, entry.response};
  }
  if (entries_.size() >= limits_.entries_max && !make_room(request.owner)) return {State::full};
  // All memory that the end of the request needs is allocated here.
  Keys of_owner{request.key};
  Keys of_all{request.key};
  Owner& owner = owners_[request.owner];  // it stays without keys if there is no memory for these
  owner.id = request.owner;
  Entry& entry = entries_[request.key];
  entry.fingerprint = request.fingerprint;
  entry.owner = &owner;
  entry.of_owner = of_owner.begin();
  entry.of_all = of_all.begin();
  owner.running.splice(owner.running.end(), of_owner);
  running_.splice(running_.end(), of_all);
  if (++owner.entries == entries_share_ + 1) with_many_entries_.push_back(&owner);
  return {State::claimed};
}

void IdempotencyStore::finish(const Hash128& key, Stored response, Instant now) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const std::size_t bytes = response->bytes();
  if (!make_room_for_bytes(*entry.owner, bytes)) return end(entry, Progress::unknown, now);
  add_bytes(*entry.owner, bytes);
  entry.response = std::move(response);
  end(entry, Progress::answered, now);
}

void IdempotencyStore::lose(const Hash128& key, Instant now) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end()) end(found->second, Progress::unknown, now);
}

void IdempotencyStore::release(const Hash128& key) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end()) forget(found);
}

IdempotencyStore::Keys& IdempotencyStore::keys_of(Owner& owner, Progress progress) noexcept {
  switch (progress) {
    case Progress::running:
      return owner.running;
    case Progress::answered:
      return owner.answered;
    case Progress::unknown:
      break;
  }
  return owner.unknown;
}

/// Moves a key to the end of the list of its progress.
void IdempotencyStore::set_progress(Entry& entry, Progress progress) noexcept {
  Keys& from = keys_of(*entry.owner, entry.progress);
  Keys& to = keys_of(*entry.owner, progress);
  to.splice(to.end(), from, entry.of_owner);
  entry.progress = progress;
}

void IdempotencyStore::end(Entry& entry, Progress progress, Instant now) noexcept {
  assert(entry.progress == Progress::running);
  set_progress(entry, progress);
  ended_.splice(ended_.end(), running_, entry.of_all);
  entry.until = after(now, limits_.lifetime);
}

void IdempotencyStore::forget(Entries::iterator found) noexcept {
  Entry& entry = found->second;
  Owner& owner = *entry.owner;
  if (entry.response != nullptr) remove_bytes(owner, entry.response->bytes());
  keys_of(owner, entry.progress).erase(entry.of_owner);
  (entry.progress == Progress::running ? running_ : ended_).erase(entry.of_all);
  entries_.erase(found);
  if (owner.entries-- == entries_share_ + 1) std::erase(with_many_entries_, &owner);
  if (owner.entries == 0) owners_.erase(owner.id);
}

/// Drops the response of an answered key, which stays. It is then behind the unknown ones, of which
/// some may be younger.
void IdempotencyStore::drop_response(Entry& entry) noexcept {
  remove_bytes(*entry.owner, entry.response->bytes());
  entry.response = nullptr;
  set_progress(entry, Progress::unknown);
}

/// Forgets the oldest ended key of an owner that is beyond its share. Returns false if there is
/// none. An owner that has its share makes room itself.
bool IdempotencyStore::make_room(const Hash128& id) noexcept {
  const auto own = owners_.find(id);
  if (own != owners_.end() && own->second.entries >= entries_share_) {
    return forget_oldest_of(own->second);
  }
  Owner* most = nullptr;
  for (Owner* const each : with_many_entries_) {
    const bool has_ended = !each->answered.empty() || !each->unknown.empty();
    if (has_ended && (most == nullptr || each->entries > most->entries)) most = each;
  }
  return most != nullptr && forget_oldest_of(*most);
}

bool IdempotencyStore::forget_oldest_of(Owner& owner) noexcept {
  auto oldest = entries_.end();
  for (const Keys* const keys : {&owner.unknown, &owner.answered}) {
    if (keys->empty()) continue;
    const auto first = entries_.find(keys->front());
    if (oldest == entries_.end() || first->second.until < oldest->second.until) oldest = first;
  }
  if (oldest == entries_.end()) return false;
  forget(oldest);
  return true;
}

/// Drops responses of owners beyond their share until there is room. Returns false if there is none
/// for a response of `owner`.
bool IdempotencyStore::make_room_for_bytes(Owner& owner, std::size_t bytes) noexcept {
  if (bytes > limits_.bytes_max) return false;
  while (bytes_ > limits_.bytes_max - bytes) {
    Owner* most = &owner;
    if (owner.bytes + bytes <= bytes_share_) {
      for (Owner* const each : with_many_bytes_) {
        if (each->bytes > most->bytes) most = each;
      }
    }
    if (most->answered.empty()) return false;
    drop_response(entries_.find(most->answered.front())->second);
  }
  return true;
}

void IdempotencyStore::add_bytes(Owner& owner, std::size_t bytes) noexcept {
  const bool had_many = owner.bytes > bytes_share_;
  owner.bytes += bytes;
  bytes_ += bytes;
  if (!had_many && owner.bytes > bytes_share_) with_many_bytes_.push_back(&owner);
}

void IdempotencyStore::remove_bytes(Owner& owner, std::size_t bytes) noexcept {
  const bool had_many = owner.bytes > bytes_share_;
  owner.bytes -= bytes;
  bytes_ -= bytes;
  if (had_many && owner.bytes <= bytes_share_) std::erase(with_many_bytes_, &owner);
}

std::size_t IdempotencyStore::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::size_t IdempotencyStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace weir::http
