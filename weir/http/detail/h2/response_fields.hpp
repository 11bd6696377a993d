// The fields of HTTP/2 responses (RFC 9113 §8.2 and §8.3) as heads of HTTP/1.1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/detail/bytes.hpp"
#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/detail/h2/field_reader.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/http/message/detail/request_head.hpp"

namespace weir::http {

/// The limits of a response's fields.
struct ResponseFieldLimits {
  HeadLimits head{};                         ///< the limits of a head of HTTP/1.1
  ChunkLimits chunks{};                      ///< the limits of trailers of HTTP/1.1
  std::uint32_t list_bytes_max = 64 * 1024;  ///< SETTINGS_MAX_HEADER_LIST_SIZE, at most 16 MiB
};

/// Reads the fields of responses like a RequestFieldReader those of requests. A client of a core
/// has one for all connections.
/// Threads: one at a time.
class ResponseFieldReader : public FieldReader {
 public:
  /// Errors: throws std::bad_alloc.
  explicit ResponseFieldReader(const ResponseFieldLimits& limits = {});

  /// Returns the number of bytes that a reader with these limits allocates.
  static constexpr std::size_t memory(const ResponseFieldLimits& limits) noexcept {
    return FieldReader::memory(limits.list_bytes_max, 0);
  }

  /// Reads a whole block of an interim or a final response. The table stays in step, whatever the
  /// result is, except after `invalid_block`. `head` is filled if the result is `complete`. It
  /// points to memory of the reader, which the next call overwrites. A head with 101 (Switching
  /// Protocols) is malformed (RFC 9113 §8.6).
  /// Errors: throws std::bad_alloc if there is no memory for the table.
  FieldsResult read_response(HpackTable& table, Bytes block, ReceivedResponseHead& head);

 private:
  void begin_text(const Field& field) noexcept;

  HeadParser parser_;
};

}  // namespace weir::http
