// TrafficKey: the secrets of one direction of a TLS connection, and their derivation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/base/detail/bytes.hpp"
#include "weir/net/tls_info.hpp"

namespace weir::tls::detail {

/// The cipher suites of Weir's record layer, by their AEAD. The AEAD decides the hash of the key
/// derivation: SHA-384 with AES-256, otherwise SHA-256.
enum class Suite : std::uint8_t { aes_128_gcm, aes_256_gcm, chacha20_poly1305 };
inline constexpr std::size_t suite_count = 3;

/// Size in bytes of the keys of `suite`.
constexpr std::size_t key_bytes_of(Suite suite) noexcept {
  return suite == Suite::aes_128_gcm ? 16 : 32;
}
/// Size in bytes of a traffic secret of TLS 1.3, which is that of the hash of `suite`.
constexpr std::size_t secret_bytes_of(Suite suite) noexcept {
  return suite == Suite::aes_256_gcm ? 48 : 32;
}

using Nonce = std::array<std::uint8_t, 12>;

/// The secrets of one direction. Each copy is erased when it is destroyed.
struct TrafficKey {
  TrafficKey() = default;
  TrafficKey(const TrafficKey&) = default;
  TrafficKey& operator=(const TrafficKey&) = default;
  ~TrafficKey();

  std::array<std::uint8_t, 48> secret{};  ///< traffic secret of TLS 1.3
  std::array<std::uint8_t, 32> key{};
  /// The IV. With AES-GCM in TLS 1.2, its last 8 bytes are the number to which the sequence number
  /// is added for the explicit nonce (RFC 5288, 3).
  Nonce iv{};
  /// The slot of MultiBufferGcm that may have the key schedule.
  mutable std::uint8_t schedule_slot = 0;
  std::uint64_t sequence = 0;  ///< number of the next record
};

/// The keys of both directions, and how they are used.
struct ConnectionKeys {
  TlsVersion version = TlsVersion::tls_1_3;
  Suite suite = Suite::aes_128_gcm;
  /// max_fragment_length (RFC 6066, 4): a record of either side has at most 2^(8 + fragments) bytes
  /// of data; 0: no such limit.
  std::uint8_t fragments = 0;
  TrafficKey read;
  TrafficKey write;
};

/// Derives the key and the IV from the secret of TLS 1.3, and begins at sequence number 0. RFC
/// 8446, 7.3.
void derive_key(TrafficKey& key, Suite suite) noexcept;

/// Replaces the secret by the next one, and derives from it. RFC 8446, 7.2.
void update_key(TrafficKey& key, Suite suite) noexcept;

/// Derives the keys and IVs of both sides from the master secret of TLS 1.2. `randoms` are that of
/// the server and that of the client. RFC 5246, 6.3.
void derive_key_block(TrafficKey& client, TrafficKey& server, Suite suite, Bytes master_secret,
                      Bytes randoms) noexcept;

}  // namespace weir::tls::detail
