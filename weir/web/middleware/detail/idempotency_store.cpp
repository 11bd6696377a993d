#include "weir/web/middleware/detail/idempotency_store.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "weir/http/message/detail/announced_body.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {

bool StoredResponse::has_empty_stream(const Response& response) noexcept {
  const Body& body = response.body();
  return body.is_stream() && (body.length() == 0 || !may_have_body(response.status()));
}

StoredResponse::StoredResponse(const Response& response)
    : status(response.status()),
      headers(response.headers()),
      body(response.body().text()),
      is_empty_stream(has_empty_stream(response)) {
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
  } else if (is_empty_stream) {
    response.body() = detail::announced_body(0);
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

void IdempotencyStore::ShareOf::set(std::size_t amount, std::uint64_t since) noexcept {
  auto share = shares_.extract(place_);
  share.value().amount = amount;
  share.value().since = since;
  place_ = shares_.insert(std::move(share)).position;
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
  // The owner stays without keys if there is no memory for these.
  Owner& owner = owners_.try_emplace(request.owner, *this, request.owner).first->second;
  Entry& entry = entries_[request.key];
  entry.fingerprint = request.fingerprint;
  entry.owner = &owner;
  entry.of_owner = of_owner.begin();
  entry.of_all = of_all.begin();
  owner.running.splice(owner.running.end(), of_owner);
  running_.splice(running_.end(), of_all);
  owner.entries.set(owner.entries.amount() + 1, ++changes_);
  return {State::claimed};
}

void IdempotencyStore::finish(const Hash128& key, Stored response, Instant now) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const std::size_t bytes = response->bytes();
  if (!make_room_for_bytes(*entry.owner, bytes)) return end(entry, Progress::unknown, now);
  set_bytes(*entry.owner, entry.owner->bytes.amount() + bytes);
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
  if (entry.response != nullptr) drop_response(entry);
  keys_of(owner, entry.progress).erase(entry.of_owner);
  (entry.progress == Progress::running ? running_ : ended_).erase(entry.of_all);
  entries_.erase(found);
  owner.entries.set(owner.entries.amount() - 1, ++changes_);
  if (owner.entries.amount() == 0) owners_.erase(Hash128(owner.id));
}

/// Drops the response of an answered key, which stays. It is then behind the unknown ones, of which
/// some may be younger.
void IdempotencyStore::drop_response(Entry& entry) noexcept {
  set_bytes(*entry.owner, entry.owner->bytes.amount() - entry.response->bytes());
  entry.response = nullptr;
  set_progress(entry, Progress::unknown);
}

/// Forgets the oldest ended key of the owner with the most keys, or of this owner if no other one
/// has more. Returns false if there is none.
bool IdempotencyStore::make_room(const Hash128& id) noexcept {
  const auto own = owners_.find(id);
  const std::size_t amount = own != owners_.end() ? own->second.entries.amount() : 0;
  for (const Share& each : entry_shares_) {  // few owners have only keys that run
    if (each.amount <= amount) break;
    if (each.owner->has_ended_keys()) return forget_oldest_of(*each.owner);
  }
  return own != owners_.end() && forget_oldest_of(own->second);
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

/// Drops the oldest responses of the owner with the most bytes, or of this owner if with the new
/// response no other one has more, until there is room. Returns false if there is none.
bool IdempotencyStore::make_room_for_bytes(Owner& owner, std::size_t bytes) noexcept {
  if (bytes > limits_.bytes_max) return false;
  while (bytes_ > limits_.bytes_max - bytes) {
    Owner& most = *byte_shares_.begin()->owner;
    Owner& giver = most.bytes.amount() > owner.bytes.amount() + bytes ? most : owner;
    if (giver.answered.empty()) return false;
    drop_response(entries_.find(giver.answered.front())->second);
  }
  return true;
}

void IdempotencyStore::set_bytes(Owner& owner, std::size_t bytes) noexcept {
  bytes_ += bytes - owner.bytes.amount();
  owner.bytes.set(bytes, ++changes_);
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
