#include "weir/web/middleware/detail/idempotency_store.hpp"

#include <tuple>
#include <utility>

#include "weir/loop/loop.hpp"

namespace weir::http {

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

IdempotencyStore::Claim IdempotencyStore::claim(const Hash128& key, const Hash128& fingerprint,
                                                Instant now) {
  const std::lock_guard lock(mutex_);
  while (!done_.empty() && done_.front().until <= now) forget_oldest();
  if (const auto found = entries_.find(key); found != entries_.end()) {
    const Entry& entry = found->second;
    if (entry.fingerprint != fingerprint) return {State::other_request};
    if (entry.response == nullptr) return {State::in_progress};
    return {State::known, entry.response};
  }
  if (entries_.size() >= limits_.entries_max && !done_.empty()) forget_oldest();
  if (entries_.size() >= limits_.entries_max) return {State::full};
  entries_.try_emplace(key, Entry{fingerprint, nullptr, done_.end()});
  return {State::claimed};
}

void IdempotencyStore::finish(const Hash128& key, Stored response, Instant now) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  if (response->bytes() > limits_.bytes_max) {
    entries_.erase(found);
    return;
  }
  found->second.done = done_.insert(done_.end(), {key, after(now, limits_.lifetime)});
  bytes_ += response->bytes();
  found->second.response = std::move(response);
  while (bytes_ > limits_.bytes_max) forget_oldest();
}

void IdempotencyStore::release(const Hash128& key) noexcept {
  const std::lock_guard lock(mutex_);
  entries_.erase(key);
}

void IdempotencyStore::forget_oldest() noexcept {
  const auto found = entries_.find(done_.front().key);
  bytes_ -= found->second.response->bytes();
  entries_.erase(found);
  done_.pop_front();
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
