// TicketKeys: the keys that encrypt session tickets, the same on all cores and in all processes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/base/detail/bytes.hpp"
#include "weir/tls/certificate/error.hpp"

namespace weir::tls {

/// One key of session tickets. Its memory is erased when it is destroyed.
struct TicketKey {
  TicketKey() = default;
  TicketKey(const TicketKey&) = default;
  TicketKey& operator=(const TicketKey&) = default;
  ~TicketKey();

  /// Returns a new key from OpenSSL's random generator.
  /// Errors: Error::library_failure.
  static Outcome<TicketKey> random();

  std::array<std::uint8_t, 16> name{};  ///< public; a ticket begins with it
  std::array<std::uint8_t, 32> cipher{};
  std::array<std::uint8_t, 32> mac{};
};

/// TicketKeys is the set of keys that a server accepts. The current key encrypts new tickets.
/// Tickets of the previous and the next key are accepted and replaced. With the next key, servers
/// of one service need not change keys at the same moment.
///
/// A server makes keys of its own and rotates them every 8 h. Tickets resume a session for
/// ServerOptions::session_lifetime after its full handshake. All cores have the same keys. Worker
/// processes have the same keys too if the program makes the Server before it forks them. A process
/// that takes over in a hot restart continues with the keys of the older process. Machines of a
/// fleet share keys by a file (ServerOptions::ticket_key_file), or by
/// `server.set_ticket_keys(keys)`. A server never rotates such keys.
struct TicketKeys {
  /// Size in bytes of one key in from_bytes(): name, MAC key, cipher key.
  static constexpr std::size_t key_bytes = 80;

  /// Returns a set with a random current and a random next key.
  /// Errors: Error::library_failure.
  static Outcome<TicketKeys> random();
  /// Reads one to three keys of `key_bytes` each: the current, the previous and the next one. nginx
  /// (ssl_session_ticket_key) has the same 80 bytes for a key. `openssl rand 80` makes one.
  /// Errors: Error::invalid_options for another size.
  static Outcome<TicketKeys> from_bytes(Bytes bytes);
  /// Returns the set after one rotation: the next key becomes the current one, and the current one
  /// the previous one. The new next key is random.
  /// Errors: Error::library_failure.
  Outcome<TicketKeys> rotated() const;

  TicketKey current;
  std::optional<TicketKey> previous = {};
  std::optional<TicketKey> next = {};
};

}  // namespace weir::tls
