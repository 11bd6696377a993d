#include "weir/tls/detail/session_proof.hpp"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <span>

#include "weir/tls/certificate/detail/certificate.hpp"

namespace weir::tls::detail {
namespace {

constexpr std::size_t number_bytes = 8;
using ProofBytes = std::array<unsigned char, 2 * number_bytes>;

void store(std::int64_t number, std::span<unsigned char> target) noexcept {
  auto rest = static_cast<std::uint64_t>(number);
  for (std::size_t index = target.size(); index-- > 0; rest >>= 8) {
    target[index] = static_cast<unsigned char>(rest & 0xff);
  }
}

std::int64_t load(std::span<const unsigned char> bytes) noexcept {
  std::uint64_t number = 0;
  for (const unsigned char each : bytes) number = number << 8 | each;
  return static_cast<std::int64_t>(number);
}

}  // namespace

SessionProof SessionProof::of_handshake(const ssl_st& ssl, std::int64_t now) {
  SessionProof proof{.proven_at = now, .valid_until = std::numeric_limits<std::int64_t>::max()};
  const auto shorten = [&proof](const X509& certificate) {
    const auto end = std::chrono::floor<std::chrono::seconds>(not_after_of(certificate));
    proof.valid_until = std::min<std::int64_t>(proof.valid_until, end.time_since_epoch().count());
  };
  const STACK_OF(X509)* const chain = SSL_get0_verified_chain(&ssl);
  for (int index = 0; index < sk_X509_num(chain); ++index) shorten(*sk_X509_value(chain, index));
  // A client without verification has no verified chain.
  if (const X509* const peer = SSL_get0_peer_certificate(&ssl)) shorten(*peer);
  return proof;
}

std::optional<SessionProof> SessionProof::of_session(const ssl_session_st& session) noexcept {
  void* data = nullptr;
  std::size_t size = 0;
  // OpenSSL's function takes no const session, but does not change it.
  auto* const source = const_cast<SSL_SESSION*>(&session);
  const bool found = SSL_SESSION_get0_ticket_appdata(source, &data, &size) == 1;
  if (!found || data == nullptr || size != sizeof(ProofBytes)) return std::nullopt;
  const std::span bytes(static_cast<const unsigned char*>(data), size);
  return SessionProof{.proven_at = load(bytes.first(number_bytes)),
                      .valid_until = load(bytes.last(number_bytes))};
}

bool SessionProof::put_into(ssl_session_st& session) const noexcept {
  ProofBytes bytes;
  store(proven_at, std::span(bytes).first(number_bytes));
  store(valid_until, std::span(bytes).last(number_bytes));
  return SSL_SESSION_set1_ticket_appdata(&session, bytes.data(), bytes.size()) == 1;
}

std::int64_t SessionProof::seconds_left(std::int64_t now, Duration lifetime) const noexcept {
  if (now < proven_at) return -1;  // the clock has gone back, so the age is unknown
  return end_seconds(lifetime) - now;
}

WallTime SessionProof::end(Duration lifetime) const noexcept {
  return WallTime(std::chrono::seconds(end_seconds(lifetime) + 1));
}

std::int64_t SessionProof::end_seconds(Duration lifetime) const noexcept {
  const std::int64_t seconds = std::chrono::floor<std::chrono::seconds>(lifetime).count();
  return std::min(proven_at + seconds, valid_until);
}

}  // namespace weir::tls::detail
