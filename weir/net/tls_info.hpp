// The facts of a TLS connection that every user of a stream may read: Stream::tls().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"

namespace weir {

enum class TlsVersion : std::uint8_t { tls_1_2, tls_1_3 };

/// Returns "TLSv1.2" or "TLSv1.3".
/// Lifetime: the text lives as long as the process.
constexpr std::string_view name_of(TlsVersion version) noexcept {
  return version == TlsVersion::tls_1_2 ? "TLSv1.2" : "TLSv1.3";
}

/// The certificate that the peer has proved to own.
struct TlsPeer {
  std::string subject;  ///< distinguished name in the form of RFC 2253, such as "CN=worker,O=Org"
  std::string issuer;   ///< distinguished name of the certificate's issuer
  /// Alternative names in the order of the certificate, each with its type: "DNS:a.example",
  /// "IP:192.0.2.1", "URI:spiffe://a/b", "email:a@b.example".
  std::vector<std::string> alternative_names;
  std::string serial;  ///< serial number in hexadecimal upper case digits
  /// SHA-256 of the DER form of the certificate.
  std::array<std::uint8_t, 32> fingerprint;
  WallTime not_before;
  WallTime not_after;
};

/// The result of a TLS handshake.
/// Threads: those of its stream.
/// Lifetime: that of its stream.
struct TlsInfo {
  TlsVersion version = TlsVersion::tls_1_3;
  bool resumed = false;  ///< true if a session ticket replaced the full handshake
  /// Name of the cipher suite in the registry of IANA, such as "TLS_AES_128_GCM_SHA256".
  std::string_view cipher;
  std::string protocol;     ///< protocol that ALPN has chosen, such as "h2"; empty: none
  std::string server_name;  ///< name that the client asked for by SNI, in lower case; empty: none
  /// Certificate of the peer; nullptr if the peer has sent none. It is verified, unless a client
  /// has Verification::none.
  std::unique_ptr<const TlsPeer> peer;
  /// Time at which the proof of the peer's identity ends. It is the first end of a certificate of
  /// the verified chain, but at most the options' session_lifetime after the full handshake. It is
  /// WallTime::max() without a verified certificate.
  WallTime proven_until = WallTime::max();
  /// True when a reload has replaced the trusted CAs that verified the certificate by others. It is
  /// nullptr without a verified certificate.
  std::shared_ptr<const std::atomic<bool>> trust_replaced = {};

  /// Returns true if the certificate of the peer no longer proves its identity at the wall time
  /// `now`. An HTTP server then takes no new request on the connection, and a client sends none.
  bool proof_ended(WallTime now) const noexcept {
    // relaxed: no other memory depends on it
    return now >= proven_until ||
           (trust_replaced != nullptr && trust_replaced->load(std::memory_order_relaxed));
  }
};

}  // namespace weir
