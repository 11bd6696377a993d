// MultiBufferGcm: AES-GCM of Intel's multi-buffer crypto library (ipsec-mb).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weir/base/detail/bytes.hpp"
#include "weir/tls/detail/records/traffic_key.hpp"

struct gcm_key_data;

namespace weir::tls::detail {

/// AES-GCM with the direct functions of Intel's library, without its jobs. It keeps the key
/// schedules of many connections. A record of 216 bytes costs 53 ns with a kept schedule and 168 ns
/// without, where OpenSSL 3.0 needs 344 ns and 489 ns (AES-128, an AMD EPYC with AVX-512).
/// Threads: one core's.
class MultiBufferGcm {
 public:
  static constexpr std::size_t tag_bytes = 16;
  /// Largest number of kept key schedules, one for each direction of a connection.
  static constexpr std::size_t keys_max = 128;

  /// Returns: nullptr if the build is without the library, or the CPU has no instructions for AES.
  /// Errors: throws std::bad_alloc.
  static std::unique_ptr<MultiBufferGcm> make();
  ~MultiBufferGcm();
  MultiBufferGcm(const MultiBufferGcm&) = delete;
  MultiBufferGcm& operator=(const MultiBufferGcm&) = delete;

  /// See AeadCore::seal(). `suite` is one of AES-GCM.
  void seal(Suite suite, const TrafficKey& key, const Nonce& nonce, Bytes associated,
            std::span<const Bytes> parts, std::byte* target) noexcept;
  /// See AeadCore::open(). `sealed` has at least tag_bytes.
  bool open(Suite suite, const TrafficKey& key, const Nonce& nonce, Bytes associated,
            MutableBytes sealed) noexcept;
  /// Erases the key schedule of `key`, and what the last record has left.
  void forget(const TrafficKey& key) noexcept;

 private:
  struct alignas(64) Schedule {
    std::array<std::byte, 1024> bytes;
  };
  struct alignas(64) RecordState {
    std::array<std::byte, 128> bytes;
  };

  MultiBufferGcm();
  gcm_key_data* schedule_of(Suite suite, const TrafficKey& key) noexcept;
  std::uint8_t free_slot() noexcept;

  RecordState state_{};  // of the record in work
  std::array<const TrafficKey*, keys_max> holders_{};
  std::array<std::uint8_t, keys_max> free_;  // the slots without a holder
  std::size_t free_count_ = keys_max;
  std::uint32_t random_ = 1;
  // Not initialised: a slot takes memory when it is used for the first time.
  std::unique_ptr<Schedule[]> schedules_ = std::make_unique_for_overwrite<Schedule[]>(keys_max);

 public:
  /// Largest size in bytes of an object and what it allocates.
  static constexpr std::size_t memory_bytes_max =
      keys_max * (sizeof(Schedule) + sizeof(TrafficKey*) + 1) + 512;
};

}  // namespace weir::tls::detail
