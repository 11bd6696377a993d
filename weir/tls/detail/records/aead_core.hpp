// AeadCore: the ciphers of OpenSSL that all record layers of one core share.
#pragma once

#include <array>
#include <cstddef>

#include "weir/base/detail/bytes.hpp"
#include "weir/loop/loop.hpp"
#include "weir/tls/detail/records/traffic_key.hpp"

struct evp_cipher_ctx_st;

namespace weir::tls::detail {

/// AeadCore has one cipher context for each suite and direction. A context keeps the key schedule
/// of the last key, which several records of one connection in a row use.
/// Threads: one core's.
class AeadCore {
 public:
  static constexpr std::size_t tag_bytes = 16;

  explicit AeadCore(loop::Platform* clock) noexcept : clock_(clock) {}
  explicit AeadCore(Loop& loop) noexcept : AeadCore(&loop.platform()) {}
  ~AeadCore();
  AeadCore(const AeadCore&) = delete;
  AeadCore& operator=(const AeadCore&) = delete;
  /// Returns the AeadCore of the core of `loop`. The first call makes the object.
  /// Errors: throws std::bad_alloc.
  static AeadCore& of(Loop& loop) { return loop.slots().get<AeadCore>(loop); }

  /// Returns the clock of the core, or nullptr.
  loop::Platform* clock() const noexcept { return clock_; }

  /// Writes the sealed `plain` and `last`, which follows it, and the tag to `target`.
  /// Returns: false if OpenSSL has failed.
  /// Lifetime: `key` neither moves nor changes until forget().
  bool seal(Suite suite, const TrafficKey& key, const Nonce& nonce, Bytes associated, Bytes plain,
            Bytes last, std::byte* target) noexcept;
  /// Opens `sealed`, which ends with its tag, in place. The bytes before the tag are its data.
  /// Returns: false if the tag is wrong, or OpenSSL has failed. The bytes have no meaning then.
  /// Lifetime: that of seal().
  bool open(Suite suite, const TrafficKey& key, const Nonce& nonce, Bytes associated,
            MutableBytes sealed) noexcept;
  /// Erases the key schedule of `key`, if a context has one.
  void forget(const TrafficKey& key) noexcept;

 private:
  struct Context {
    evp_cipher_ctx_st* cipher = nullptr;
    const TrafficKey* holder = nullptr;  // that of the key schedule
  };
  evp_cipher_ctx_st* prepare(bool seals, Suite suite, const TrafficKey& key,
                             const Nonce& nonce) noexcept;

  loop::Platform* clock_;
  std::array<Context, suite_count> opening_{};
  std::array<Context, suite_count> sealing_{};
};

}  // namespace weir::tls::detail
