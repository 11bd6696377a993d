// AesGcmKey: AES-256-GCM of short messages with random nonces.
#pragma once

#include <cstddef>
#include <optional>

#include "weir/base/detail/bytes.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"

namespace weir::tls::detail {

/// A key of AES-256-GCM. A sealed message is its nonce of 12 random bytes, the encrypted bytes, and
/// the tag of 16 bytes. One key seals at most 2^32 messages (NIST SP 800-38D §8.3): the nonces of
/// more messages could collide. Threads: const members on any thread.
class AesGcmKey {
 public:
  static constexpr std::size_t nonce_bytes = 12;
  static constexpr std::size_t tag_bytes = 16;
  /// Bytes that a sealed message has more than its plain bytes.
  static constexpr std::size_t overhead = nonce_bytes + tag_bytes;

  /// Derives the key from a secret of high entropy; see derive_key().
  AesGcmKey(Bytes secret, std::string_view label) noexcept { derive_key(secret, label, key_); }
  /// Uses these 32 bytes as the key (asserted).
  explicit AesGcmKey(Bytes key) noexcept;

  /// Seals `plain` into `target`, which has room for its bytes and `overhead` more and does not
  /// overlap it. `associated` is authenticated, but not a part of the message.
  /// Returns: false if OpenSSL has failed or is absent. The bytes of `target` have no meaning then.
  [[nodiscard]] bool seal(Bytes associated, Bytes plain, std::byte* target) const noexcept;
  /// Opens a sealed message in place.
  /// Returns: the plain bytes, which are a part of `sealed`; nullopt if the message was not sealed
  /// with this key and `associated`, in which case the bytes of `sealed` have no meaning.
  std::optional<MutableBytes> open(Bytes associated, MutableBytes sealed) const noexcept;

 private:
  Secret<32> key_;
};

}  // namespace weir::tls::detail
