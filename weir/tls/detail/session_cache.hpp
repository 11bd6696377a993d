// SessionCache: the session tickets that a client has received on one core.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "weir/base/time.hpp"
#include "weir/tls/certificate/detail/openssl.hpp"

namespace weir::tls::detail {

/// Keeps the newest ticket of each server. A ticket of TLS 1.3 is used once, so that an observer
/// cannot link two connections (RFC 8446, C.4).
/// Threads: one core's.
class SessionCache {
 public:
  static constexpr std::size_t servers_max = 1024;

  /// Sessions are resumed for `lifetime` after their full handshake.
  explicit SessionCache(Duration lifetime = std::chrono::hours(8)) noexcept : lifetime_(lifetime) {}

  Duration lifetime() const noexcept { return lifetime_; }
  /// Keeps `session` for `server`. It replaces an arbitrary server if there are servers_max.
  void put(const std::string& server, SslSessionPtr session) {
    if (sessions_.size() >= servers_max && !sessions_.contains(server)) {
      sessions_.erase(sessions_.begin());
    }
    sessions_[server] = std::move(session);
  }
  /// Returns the session of `server` and removes it; nullptr: none.
  SslSessionPtr take(const std::string& server) {
    const auto found = sessions_.find(server);
    if (found == sessions_.end()) return nullptr;
    SslSessionPtr session = std::move(found->second);
    sessions_.erase(found);
    return session;
  }
  std::size_t size() const noexcept { return sessions_.size(); }

 private:
  Duration lifetime_;
  std::unordered_map<std::string, SslSessionPtr> sessions_;
};

}  // namespace weir::tls::detail
