// SessionCache: the session tickets that a client has received on one core.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "weir/base/time.hpp"
#include "weir/tls/certificate/detail/openssl.hpp"

namespace weir::tls::detail {

/// A session in its encoded form, which has its secret. The bytes are erased at the end.
class EncodedSession {
 public:
  explicit EncodedSession(std::size_t size) : bytes_(size, '\0') {}
  EncodedSession(EncodedSession&&) noexcept = default;
  ~EncodedSession();
  std::string& bytes() noexcept { return bytes_; }
  std::size_t size() const noexcept { return bytes_.size(); }

 private:
  std::string bytes_;
};

/// Keeps the newest ticket of each server. A ticket of TLS 1.3 is used once, so that an observer
/// cannot link two connections (RFC 8446, C.4). A session is kept in its encoded form: the objects
/// of its certificates would have many times the size, which servers choose.
/// Threads: one core's.
class SessionCache {
 public:
  static constexpr std::size_t servers_max = 1024;
  static constexpr std::size_t session_bytes_max = 32 * 1024;     ///< a larger one is not kept
  static constexpr std::size_t bytes_max = std::size_t{4} << 20;  ///< of all sessions
  /// An upper bound of the bytes that a cache holds, with the names of the servers.
  static constexpr std::size_t memory_bytes_max = bytes_max + servers_max * std::size_t{512};

  /// Sessions are resumed for `lifetime` after their full handshake.
  explicit SessionCache(Duration lifetime = std::chrono::hours(8)) noexcept : lifetime_(lifetime) {}

  Duration lifetime() const noexcept { return lifetime_; }
  /// Keeps `session` for `server`. It replaces arbitrary servers if there is no room.
  /// Errors: throws std::bad_alloc.
  void put(const std::string& server, SslSessionPtr session);
  /// Returns the session of `server` and removes it; nullptr: none.
  SslSessionPtr take(const std::string& server);
  std::size_t size() const noexcept { return sessions_.size(); }
  /// Returns the bytes of the encoded sessions.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  using Sessions = std::unordered_map<std::string, EncodedSession>;  // by server

  void erase(Sessions::iterator session) noexcept;

  Duration lifetime_;
  Sessions sessions_;
  std::size_t bytes_ = 0;
};

}  // namespace weir::tls::detail
