#include "weir/tls/ticket_keys.hpp"

#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "weir/tls/crypto/detail/random.hpp"

namespace weir::tls {
namespace {

bool fill(std::span<std::uint8_t> bytes) {
  return detail::fill_random(std::as_writable_bytes(bytes));
}

TicketKey key_at(Bytes bytes, std::size_t index) {
  TicketKey key;
  Bytes rest = bytes.subspan(index * TicketKeys::key_bytes);
  const auto take = [&rest](std::span<std::uint8_t> target) {
    std::memcpy(target.data(), rest.data(), target.size());
    rest = rest.subspan(target.size());
  };
  take(key.name);
  take(key.mac);
  take(key.cipher);
  return key;
}

}  // namespace

TicketKey::~TicketKey() {
  explicit_bzero(cipher.data(), cipher.size());
  explicit_bzero(mac.data(), mac.size());
}

Outcome<TicketKey> TicketKey::random() {
  TicketKey key;
  if (!fill(key.name) || !fill(key.cipher) || !fill(key.mac)) {
    return std::unexpected(Failure(Error::library_failure, "no random numbers"));
  }
  return key;
}

Outcome<TicketKeys> TicketKeys::random() {
  auto current = TicketKey::random();
  if (!current) return std::unexpected(std::move(current.error()));
  auto next = TicketKey::random();
  if (!next) return std::unexpected(std::move(next.error()));
  return TicketKeys{.current = *current, .next = *next};
}

Outcome<TicketKeys> TicketKeys::from_bytes(Bytes bytes) {
  const std::size_t count = bytes.size() / key_bytes;
  if (bytes.size() % key_bytes != 0 || count == 0 || count > 3) {
    return std::unexpected(
        Failure(Error::invalid_options,
                "ticket keys have 80, 160 or 240 bytes, not " + std::to_string(bytes.size())));
  }
  TicketKeys keys;
  keys.current = key_at(bytes, 0);
  if (count > 1) keys.previous = key_at(bytes, 1);
  if (count > 2) keys.next = key_at(bytes, 2);
  return keys;
}

Outcome<TicketKeys> TicketKeys::rotated() const {
  auto fresh = TicketKey::random();
  if (!fresh) return std::unexpected(std::move(fresh.error()));
  TicketKeys keys;
  if (next) {
    keys.current = *next;
    keys.next = *fresh;
  } else {
    keys.current = *fresh;
  }
  keys.previous = current;
  return keys;
}

}  // namespace weir::tls
