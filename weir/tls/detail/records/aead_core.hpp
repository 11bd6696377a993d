// AeadCore: the ciphers that all record layers of one core share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weir/base/detail/bytes.hpp"
#include "weir/loop/loop.hpp"
#include "weir/tls/detail/records/multi_buffer_gcm.hpp"
#include "weir/tls/detail/records/traffic_key.hpp"

struct evp_cipher_ctx_st;

namespace weir::tls::detail {

/// Which library has AES-GCM.
enum class AesGcm : std::uint8_t {
  fastest,  ///< MultiBufferGcm if the build and the CPU have it, otherwise OpenSSL
  openssl,
};

/// The AEADs of one core. OpenSSL has one cipher context for each suite and direction here. A
/// context keeps the key schedule of the last key, which several records of one connection in a row
/// use. MultiBufferGcm replaces the contexts of AES-GCM, because it needs a fifth of the time.
/// Threads: one core's.
class AeadCore {
 public:
  static constexpr std::size_t tag_bytes = 16;
  /// Largest memory of one core for key schedules, in bytes.
  static constexpr std::size_t memory_bytes_max = MultiBufferGcm::memory_bytes_max;

  /// Errors: throws std::bad_alloc.
  explicit AeadCore(loop::Platform* clock, AesGcm aes_gcm = AesGcm::fastest)
      : clock_(clock), gcm_(aes_gcm == AesGcm::openssl ? nullptr : MultiBufferGcm::make()) {}
  explicit AeadCore(Loop& loop) : AeadCore(&loop.platform()) {}
  ~AeadCore();
  AeadCore(const AeadCore&) = delete;
  AeadCore& operator=(const AeadCore&) = delete;
  /// Returns the AeadCore of the core of `loop`. The first call makes the object.
  /// Errors: throws std::bad_alloc.
  static AeadCore& of(Loop& loop) { return loop.slots().get<AeadCore>(loop); }

  /// Returns the clock of the core, or nullptr.
  loop::Platform* clock() const noexcept { return clock_; }

  /// Writes the sealed `parts`, one behind the other, and the tag to `target`, which overlaps none
  /// of them.
  /// Returns: false if OpenSSL has failed.
  /// Lifetime: `key` neither moves nor changes until forget().
  bool seal(Suite suite, const TrafficKey& key, const Nonce& nonce, Bytes associated,
            std::span<const Bytes> parts, std::byte* target) noexcept;
  /// Opens `sealed`, which ends with its tag, in place. The bytes before the tag are its data.
  /// Returns: false if the tag is wrong, or OpenSSL has failed. The bytes have no meaning then.
  /// Lifetime: that of seal().
  bool open(Suite suite, const TrafficKey& key, const Nonce& nonce, Bytes associated,
            MutableBytes sealed) noexcept;
  /// Erases the key schedule of `key`, if this core has one.
  void forget(const TrafficKey& key) noexcept;

 private:
  struct Context {
    evp_cipher_ctx_st* cipher = nullptr;
    const TrafficKey* holder = nullptr;  // that of the key schedule
  };
  bool uses_gcm(Suite suite) const noexcept {
    return gcm_ != nullptr && suite != Suite::chacha20_poly1305;
  }
  evp_cipher_ctx_st* prepare(bool seals, Suite suite, const TrafficKey& key,
                             const Nonce& nonce) noexcept;

  loop::Platform* clock_;
  std::unique_ptr<MultiBufferGcm> gcm_;
  std::array<Context, suite_count> opening_{};
  std::array<Context, suite_count> sealing_{};
};

}  // namespace weir::tls::detail
