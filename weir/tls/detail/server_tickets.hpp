// ServerTickets: the ticket keys of a server, which change with time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "weir/base/time.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/tls/ticket_keys.hpp"

namespace weir::tls::detail {

/// ServerTickets holds the ticket keys of a Server for all cores. It makes the keys of each period
/// from a secret of that period, and the next secret from the secret before:
///
///     secret(0) is random; secret(n + 1) = HMAC-SHA-256(secret(n), "weir next ticket secret")
///     key(n) = HKDF-Expand(secret(n), "weir ticket key", 80 bytes); see RFC 5869, 2.3
///
/// Processes that begin with one secret have the same keys in each period, and exchange no
/// messages. ServerTickets keeps one secret, that of the period of the last call of keys(). Each
/// handshake and each poll of Server::watch() calls it. A server without both keeps an old secret
/// until its next handshake. With the memory of a process, an attacker can decrypt tickets of the
/// period before the secret and of later ones, but no older tickets. The supervisor of worker
/// processes keeps the first secret, because it starts later workers with it.
///
/// Periods are counted from the start of the platform's monotonic clock. The processes of a machine
/// share this clock, and no change of the date moves it.
/// Threads: any.
class ServerTickets {
 public:
  static constexpr Duration period = std::chrono::hours(8);

  /// Draws the first secret.
  ServerTickets();
  ServerTickets(const ServerTickets&) = delete;
  ServerTickets& operator=(const ServerTickets&) = delete;
  ~ServerTickets();

  /// Errors: Error::library_failure if OpenSSL had no random numbers.
  Outcome<> check() const;
  /// Returns the keys at a time.
  /// Errors: throws std::bad_alloc.
  std::shared_ptr<const TicketKeys> keys(Instant now);
  /// Uses these keys from then on, without a rotation.
  void set(const TicketKeys& keys);

  /// Returns the secret and the previous key for a newer process, which erases them; empty after
  /// set().
  std::string to_bytes(Instant now);
  /// Continues with the secret of an older process, and erases the bytes. Other bytes are ignored.
  void receive(std::string bytes);

 private:
  using Secret = std::array<std::uint8_t, 32>;

  void advance(Instant now);

  mutable std::mutex mutex_;  // guards the members below
  bool drawn_ = false;
  bool fixed_ = false;  // true after set()
  std::uint64_t period_ = 0;
  Secret secret_{};
  std::optional<TicketKey> previous_;  // key of the period before
  std::shared_ptr<const TicketKeys> keys_;
};

}  // namespace weir::tls::detail
