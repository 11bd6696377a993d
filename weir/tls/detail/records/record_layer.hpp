// RecordLayer: the records of an established connection, as bytes in and bytes out.
#pragma once

#include <cstdint>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"

namespace weir::tls::detail {

/// Opens the records that arrive and seals the data to send. It does no I/O. An idle connection
/// holds no buffer, if its layer has no incomplete record.
///
/// SslEngine is the layer of OpenSSL. AeadRecords is the layer of Weir. It continues with the
/// secrets of a finished handshake, and opens records in place. open() may move the memory of
/// `input` to `plain`. Both layers give the same data, alerts and errors, except for the
/// differences that AeadRecords lists.
/// Errors: all functions may throw std::bad_alloc. The connection is broken then.
/// Threads: one core's.
class RecordLayer {
 public:
  /// Largest number of bytes of data in a record (RFC 8446, 5.1).
  static constexpr std::size_t plain_max = 16 * 1024;
  /// Largest number of records without data in a row.
  static constexpr unsigned empty_records_max = 32;
  /// Largest number of KeyUpdates of the peer in a minute. Each costs more than a small record.
  static constexpr unsigned key_updates_max = 16;

  enum class Opened : std::uint8_t {
    data,    ///< `plain` has data
    none,    ///< all input is used, and more is needed
    closed,  ///< the peer has sent close_notify; the rest of the input is ignored
    failed,  ///< see error(); the layer is not used any more, except for its output
  };

  virtual ~RecordLayer() = default;
  RecordLayer() = default;
  RecordLayer(const RecordLayer&) = delete;
  RecordLayer& operator=(const RecordLayer&) = delete;

  /// Opens records of `input` until `plain`, which is empty at first, has data or all input is
  /// used. It appends alerts and answers to `output`. The caller sends these before or with its
  /// next data.
  virtual Opened open(Buffer& input, Buffer& plain, Buffer& output) = 0;
  /// Returns true if open() may return data or an end without more input.
  virtual bool has_input() const noexcept = 0;
  /// Appends one record with `plain`, which has 1 to plain_max bytes, to `output`; several for a
  /// peer that has asked for shorter ones.
  /// Returns: no error, or error().
  virtual std::error_code seal(Bytes plain, Buffer& output) = 0;
  /// Appends close_notify to `output`, once. It appends nothing after a failure.
  virtual void seal_close(Buffer& output) = 0;
  /// Returns why open() or seal() has failed.
  virtual std::error_code error() const noexcept = 0;
};

}  // namespace weir::tls::detail
