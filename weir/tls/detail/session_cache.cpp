#include "weir/tls/detail/session_cache.hpp"

#include <openssl/crypto.h>
#include <openssl/ssl.h>

#include <utility>

namespace weir::tls::detail {

EncodedSession::~EncodedSession() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

void SessionCache::erase(Sessions::iterator session) noexcept {
  bytes_ -= session->second.size();
  sessions_.erase(session);
}

void SessionCache::put(const std::string& server, SslSessionPtr session) {
  if (const auto before = sessions_.find(server); before != sessions_.end()) erase(before);
  const int encoded = i2d_SSL_SESSION(session.get(), nullptr);
  if (encoded <= 0 || static_cast<std::size_t>(encoded) > session_bytes_max) return;
  EncodedSession kept(static_cast<std::size_t>(encoded));
  auto* end = reinterpret_cast<unsigned char*>(kept.bytes().data());
  i2d_SSL_SESSION(session.get(), &end);
  while (sessions_.size() >= servers_max || bytes_ + kept.size() > bytes_max) {
    erase(sessions_.begin());
  }
  const std::size_t size = kept.size();
  sessions_.emplace(server, std::move(kept));
  bytes_ += size;
}

SslSessionPtr SessionCache::take(const std::string& server) {
  const auto found = sessions_.find(server);
  if (found == sessions_.end()) return nullptr;
  const std::string& bytes = found->second.bytes();
  const auto* start = reinterpret_cast<const unsigned char*>(bytes.data());
  SslSessionPtr session(d2i_SSL_SESSION(nullptr, &start, static_cast<long>(bytes.size())));
  erase(found);
  return session;
}

}  // namespace weir::tls::detail
