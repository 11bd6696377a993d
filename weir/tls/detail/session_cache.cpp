#include "weir/tls/detail/session_cache.hpp"

#include <openssl/ssl.h>

#include <utility>

namespace weir::tls::detail {

void SessionCache::erase(Sessions::iterator session) noexcept {
  bytes_ -= session->second.size();
  sessions_.erase(session);
}

void SessionCache::put(const std::string& server, SslSessionPtr session) {
  if (const auto before = sessions_.find(server); before != sessions_.end()) erase(before);
  const int encoded = i2d_SSL_SESSION(session.get(), nullptr);
  if (encoded <= 0 || static_cast<std::size_t>(encoded) > session_bytes_max) return;
  std::string bytes(static_cast<std::size_t>(encoded), '\0');
  auto* end = reinterpret_cast<unsigned char*>(bytes.data());
  i2d_SSL_SESSION(session.get(), &end);
  while (sessions_.size() >= servers_max || bytes_ + bytes.size() > bytes_max) {
    erase(sessions_.begin());
  }
  const std::size_t size = bytes.size();
  sessions_.emplace(server, std::move(bytes));
  bytes_ += size;
}

SslSessionPtr SessionCache::take(const std::string& server) {
  const auto found = sessions_.find(server);
  if (found == sessions_.end()) return nullptr;
  const std::string bytes = std::move(found->second);
  bytes_ -= bytes.size();
  sessions_.erase(found);
  const auto* start = reinterpret_cast<const unsigned char*>(bytes.data());
  return SslSessionPtr(d2i_SSL_SESSION(nullptr, &start, static_cast<long>(bytes.size())));
}

}  // namespace weir::tls::detail
