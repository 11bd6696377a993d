#include "weir/tls/detail/server_tickets.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "weir/base/detail/bytes.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"
#include "weir/tls/crypto/detail/random.hpp"

namespace weir::tls::detail {
namespace {

constexpr std::string_view next_label = "weir next ticket secret";
constexpr std::string_view key_label = "weir ticket key";
constexpr std::size_t digest_bytes = 32;

using SecretDigest = std::array<std::uint8_t, digest_bytes>;

/// Writes HMAC-SHA-256 of `text`.
void authenticate(const SecretDigest& key, std::string_view text, SecretDigest& out) {
  Hmac hmac(Hash::sha_256, std::as_bytes(std::span(key)));
  hmac.update(text);
  hmac.finish(out);
}

/// Replaces a secret by that of the next period.
void step(SecretDigest& secret) {
  SecretDigest next{};
  authenticate(secret, next_label, next);
  secret = next;
  OPENSSL_cleanse(next.data(), next.size());
}

/// Returns the key of a secret: HKDF-Expand of RFC 5869, 2.3.
TicketKey key_of(const SecretDigest& secret) {
  std::array<std::byte, TicketKeys::key_bytes> bytes{};
  SecretDigest block{};
  std::string text;
  text.reserve(digest_bytes + key_label.size() + 1);  // growing would leave secrets behind
  for (std::size_t done = 0, count = 1; done < bytes.size(); ++count) {
    text.assign(reinterpret_cast<const char*>(block.data()), count == 1 ? 0 : block.size());
    text.append(key_label);
    text.push_back(static_cast<char>(count));
    authenticate(secret, text, block);
    const std::size_t part = std::min(block.size(), bytes.size() - done);
    std::memcpy(bytes.data() + done, block.data(), part);
    done += part;
  }
  const TicketKey key = TicketKeys::from_bytes(bytes).value().current;
  OPENSSL_cleanse(text.data(), text.size());
  OPENSSL_cleanse(block.data(), block.size());
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

std::uint64_t period_at(Instant now) {
  const Duration since = std::max(now.time_since_epoch(), Duration::zero());
  return static_cast<std::uint64_t>(since / ServerTickets::period);
}

void append(std::string& bytes, const void* data, std::size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

}  // namespace

ServerTickets::ServerTickets() {
  drawn_ = fill_random(std::as_writable_bytes(std::span(secret_)));
}

ServerTickets::~ServerTickets() {
  OPENSSL_cleanse(secret_.data(), secret_.size());
}

Outcome<> ServerTickets::check() const {
  const std::lock_guard lock(mutex_);
  if (drawn_ || fixed_) return {};
  return std::unexpected(Failure(Error::library_failure, "no random numbers"));
}

/// Makes the secret of the period of `now`. The keys never go back.
void ServerTickets::advance(Instant now) {
  const std::uint64_t wanted = period_at(now);
  while (period_ < wanted) {
    if (period_ + 1 == wanted) previous_ = key_of(secret_);
    step(secret_);
    ++period_;
    keys_ = nullptr;
  }
}

std::shared_ptr<const TicketKeys> ServerTickets::keys(Instant now) {
  const std::lock_guard lock(mutex_);
  if (fixed_) return keys_;
  advance(now);
  if (keys_ == nullptr) {
    auto made = std::make_shared<TicketKeys>();
    made->current = key_of(secret_);
    made->previous = previous_;
    SecretDigest next = secret_;
    step(next);
    made->next = key_of(next);
    OPENSSL_cleanse(next.data(), next.size());
    keys_ = std::move(made);
  }
  return keys_;
}

void ServerTickets::set(const TicketKeys& keys) {
  auto copy = std::make_shared<const TicketKeys>(keys);
  const std::lock_guard lock(mutex_);
  keys_ = std::move(copy);
  fixed_ = true;
}

std::string ServerTickets::to_bytes(Instant now) {
  const std::lock_guard lock(mutex_);
  if (fixed_ || !drawn_) return {};
  advance(now);
  std::string bytes;
  bytes.reserve(sizeof period_ + sizeof secret_ + TicketKeys::key_bytes);
  append(bytes, &period_, sizeof period_);  // both processes run on this machine
  append(bytes, secret_.data(), secret_.size());
  if (previous_) {
    append(bytes, previous_->name.data(), previous_->name.size());
    append(bytes, previous_->mac.data(), previous_->mac.size());
    append(bytes, previous_->cipher.data(), previous_->cipher.size());
  }
  return bytes;
}

void ServerTickets::receive(std::string bytes) {
  constexpr std::size_t head = sizeof period_ + sizeof secret_;
  const bool with_previous = bytes.size() == head + TicketKeys::key_bytes;
  if (bytes.size() == head || with_previous) {
    const std::lock_guard lock(mutex_);
    std::memcpy(&period_, bytes.data(), sizeof period_);
    std::memcpy(secret_.data(), bytes.data() + sizeof period_, secret_.size());
    previous_.reset();
    if (with_previous) {
      const Bytes key = weir::to_bytes(std::string_view(bytes)).subspan(head);
      previous_ = TicketKeys::from_bytes(key).value().current;
    }
    if (!fixed_) keys_ = nullptr;
    drawn_ = true;
  }
  OPENSSL_cleanse(bytes.data(), bytes.size());
}

}  // namespace weir::tls::detail
