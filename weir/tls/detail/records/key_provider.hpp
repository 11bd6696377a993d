// The key derivations of the TLS handshake as a provider of OpenSSL.
#pragma once

#include "weir/base/detail/bytes.hpp"

namespace weir::tls::detail {

class HandshakeKeys;

/// Adds Weir's provider to library_context(), once in the process. It derives
/// the keys of TLS 1.3 and 1.2, and has HMAC; all else stays with other providers. OpenSSL has no
/// other public function that gives the traffic secrets of TLS 1.3 at a low cost: key logs take
/// 20 microseconds per handshake to print and to read.
/// A later OpenSSL may pass parameters that it does not know. The first call therefore performs a
/// handshake of each version in memory.
/// Returns: the property query with which an SSL_CTX prefers it; nullptr if library_context() is
/// the default context, if OpenSSL has failed, or if it cannot perform a handshake with it. The
/// connections of that context then stay with OpenSSL's record layer. Threads: any.
const char* use_key_provider() noexcept;

/// Returns true if handshakes of TLS 1.2 and 1.3 succeed between two contexts with this query.
/// Threads: any; it blocks for about a millisecond.
bool performs_handshakes(const char* query) noexcept;

/// Gives the traffic secrets that OpenSSL derives on this thread to `keys`, while the object
/// exists. Threads: one thread's. Objects may be nested; the newest one counts.
class TrafficSecretReceiver {
 public:
  explicit TrafficSecretReceiver(HandshakeKeys& keys) noexcept;
  TrafficSecretReceiver(const TrafficSecretReceiver&) = delete;
  TrafficSecretReceiver& operator=(const TrafficSecretReceiver&) = delete;
  ~TrafficSecretReceiver();

 private:
  HandshakeKeys* outer_;
};

}  // namespace weir::tls::detail
