// SessionProof: how long a session may stand for a full handshake.
#pragma once

#include <cstdint>
#include <optional>

#include "weir/base/time.hpp"

struct ssl_session_st;
struct ssl_st;

namespace weir::tls::detail {

/// SessionProof says when the peer of a session last proved its identity: at the full handshake. A
/// resumed session continues with the proof of the first one, through all of its tickets. It lies
/// in the application data of the ticket, so a server keeps no state. All times are those of the
/// platform, in seconds since 1970.
struct SessionProof {
  std::int64_t proven_at = 0;
  /// When the first certificate of the verified chain expires; the maximum without a certificate.
  std::int64_t valid_until = 0;

  /// Returns the proof of a full handshake at `now`.
  static SessionProof of_handshake(const ssl_st& ssl, std::int64_t now);
  /// Returns the proof that the session carries; nullopt if it carries none.
  static std::optional<SessionProof> of_session(const ssl_session_st& session) noexcept;
  /// Puts the proof into the session. Returns false if memory is exhausted.
  bool put_into(ssl_session_st& session) const noexcept;

  /// Returns the number of seconds after `now` for which the proof still holds, if it holds for at
  /// most `lifetime` after the full handshake. It is negative when the proof has ended.
  std::int64_t seconds_left(std::int64_t now, Duration lifetime) const noexcept;
  /// Returns the begin of the first second in which seconds_left() is negative: certificates are
  /// valid in the second of their `not_after` too (RFC 5280 §4.1.2.5).
  WallTime end(Duration lifetime) const noexcept;

 private:
  std::int64_t end_seconds(Duration lifetime) const noexcept;
};

}  // namespace weir::tls::detail
