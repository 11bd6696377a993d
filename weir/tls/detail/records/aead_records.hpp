// AeadRecords: Weir's record layer for TLS 1.3 and 1.2, on the AEADs of AeadCore.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/tls/detail/records/aead_core.hpp"
#include "weir/tls/detail/records/record_layer.hpp"
#include "weir/tls/detail/records/traffic_key.hpp"

namespace weir::tls::detail {

/// The record layer of a server after its handshake (RFC 8446, 5; RFC 5246, 6; RFC 5288; RFC 7905).
/// It opens the records of one received buffer in place. It keeps only the bytes of an incomplete
/// record. Their memory has at most twice their size, but at least 256 bytes.
///
/// It differs from OpenSSL's layer in these points:
/// - TLS 1.3: it updates its own key after records_per_key records (RFC 8446, 5.5).
/// - TLS 1.2: it rejects a renegotiation when the header of the ClientHello has arrived.
/// - TLS 1.2: a record that is too short for its cipher gets bad_record_mac, not internal_error.
/// - TLS 1.2: it fails when a sequence number would wrap (RFC 5246, 6.1).
/// - TLS 1.3: one KeyUpdate before its next data answers all KeyUpdates of the peer. open() thus
///   appends at most one alert.
/// - TLS 1.3: it ignores the level of each close_notify, not only if no warning came before.
/// - seal() also works while a handshake message of the peer is incomplete.
/// Threads: one core's.
/// Lifetime: `core` outlives it.
class AeadRecords final : public RecordLayer {
 public:
  /// Largest number of records that are sealed with one key of TLS 1.3. AES-GCM allows 2^24.5.
  static constexpr std::uint64_t records_per_key = std::uint64_t{1} << 23;

  AeadRecords(AeadCore& core, const ConnectionKeys& keys) noexcept;
  ~AeadRecords() override;

  Opened open(Buffer& input, Buffer& plain, Buffer& output) override;
  bool has_input() const noexcept override { return state_ != State::open; }
  std::error_code seal(Bytes plain, Buffer& output) override;
  void seal_close(Buffer& output) override;
  std::error_code error() const noexcept override;

 private:
  /// Types of records. RFC 8446, B.1.
  enum class Type : std::uint8_t { change_cipher_spec = 20, alert, handshake, data };
  /// Descriptions of alerts. RFC 8446, B.2; RFC 5246, A.3.
  enum class Alert : std::uint8_t {
    close_notify = 0,
    unexpected_message = 10,
    bad_record_mac = 20,
    record_overflow = 22,
    handshake_failure = 40,
    illegal_parameter = 47,
    decode_error = 50,
    protocol_version = 70,
    user_canceled = 90,
    no_renegotiation = 100,
  };
  enum class AlertLevel : std::uint8_t { warning = 1, fatal };
  enum class State : std::uint8_t { open, closed, failed };  // of the peer's direction
  /// The content of an opened record. It lies in the memory of the record.
  struct Content {
    Type type;
    MutableBytes bytes;
  };

  bool is_1_3() const noexcept { return version_ == TlsVersion::tls_1_3; }
  /// Returns the largest number of bytes of data in a record.
  std::size_t fragment_max() const noexcept {
    return fragments_ == 0 ? plain_max : std::size_t{256} << fragments_;
  }

  bool open_whole(Buffer& input, Buffer& plain, Buffer& output);
  bool complete_record(Buffer& input, Buffer& output);
  void keep_incomplete(Bytes bytes);
  bool check_header(const std::byte* header, Buffer& output);
  MutableBytes take_record(MutableBytes record, Buffer& output);
  bool decrypt(MutableBytes record, Content& content);
  bool strip_padding(Content& content) noexcept;

  void take_alert(Bytes content, Buffer& output);
  void take_handshake(Bytes content, Buffer& output);
  void take_key_update(Bytes content, Buffer& output);
  void reject_message(Buffer& output);
  bool count_key_update() noexcept;

  void fail(Error error) noexcept;
  void fail(Alert alert, Buffer& output);
  bool update_write_key(Buffer& output);
  bool seal_record(Type type, Bytes plain, Buffer& output);

  AeadCore& core_;
  TrafficKey read_;
  TrafficKey write_;
  // The first bytes of a record, if some have arrived. Its header is checked when it is complete.
  std::unique_ptr<Buffer> incomplete_;
  std::uint32_t update_second_ = 0;     // that of the clock when key_updates_ began
  std::uint8_t key_updates_ = 0;        // those of the peer since then
  std::uint8_t records_ = 0;            // received since the last data
  std::uint8_t empty_records_ = 0;      // received in a row, without content
  std::uint8_t warnings_ = 0;           // alerts received in a row
  std::array<std::byte, 4> message_{};  // header of a message of the handshake protocol
  std::uint8_t message_size_ = 0;       // bytes in message_
  Error error_{};                       // 0: none
  std::uint8_t fragments_;              // see ConnectionKeys
  Suite suite_ : 2;
  TlsVersion version_ : 1;
  State state_ : 2 = State::open;
  bool close_sent_ : 1 = false;  // close_notify is sealed
  bool owes_update_ : 1 =
      false;  // the peer has requested a KeyUpdate; it goes before the next data
};

}  // namespace weir::tls::detail
