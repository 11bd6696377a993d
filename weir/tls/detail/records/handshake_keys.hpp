// HandshakeKeys: the secrets that OpenSSL derives during the handshake of a server.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/base/detail/bytes.hpp"
#include "weir/tls/detail/records/traffic_key.hpp"

struct ssl_st;

namespace weir::tls::detail {

/// Collects what another record layer needs to continue after the handshake of a server.
class HandshakeKeys {
 public:
  /// Takes a traffic secret of TLS 1.3 when OpenSSL derives it.
  void take_client_secret(Bytes secret) noexcept { client_bytes_ = keep(secret, client_); }
  void take_server_secret(Bytes secret) noexcept {
    server_bytes_ = keep(secret, server_);
    records_ = 0;  // OpenSSL seals with the secret from now on
  }
  /// Counts a record that OpenSSL has sealed.
  void count_record() noexcept { ++records_; }
  /// Counts a record of the client. In TLS 1.2, those after its change_cipher_spec are sealed. Its
  /// Finished may have several (RFC 5246, 6.2.1).
  void count_received(bool changes_cipher) noexcept {
    received_ = changes_cipher ? 0 : received_ + 1;
  }
  /// Takes the output of a step of the handshake. Its last record may be a Finished of TLS 1.2 with
  /// AES-GCM, whose explicit nonce is kept. OpenSSL begins with a random number and counts on (RFC
  /// 5288, 3). The next layer counts on too, so no nonce is used twice.
  void take_output(Bytes output) noexcept;

  /// Derives the keys of a server after its handshake.
  /// Returns: the keys; nullopt if another layer cannot continue. The reasons are an unknown suite,
  /// a part of a record inside OpenSSL, or a failure of OpenSSL.
  std::optional<ConnectionKeys> keys_of(const ssl_st& ssl) const;

 private:
  static std::size_t keep(Bytes secret, TrafficKey& key) noexcept;
  bool add_1_3(ConnectionKeys& keys) const;
  bool add_1_2(ConnectionKeys& keys, const ssl_st& ssl) const;

  TrafficKey client_;  // its secret only
  TrafficKey server_;
  std::size_t client_bytes_ = 0;  // size of the secret; 0: unknown
  std::size_t server_bytes_ = 0;
  std::uint64_t records_ = 0;   // since the secret of the server is known: tickets
  std::uint64_t received_ = 0;  // since the client's change_cipher_spec
  std::optional<std::array<std::uint8_t, 8>> finished_nonce_;
};

}  // namespace weir::tls::detail
