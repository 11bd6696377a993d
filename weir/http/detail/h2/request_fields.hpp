// The fields of HTTP/2 requests (RFC 9113 §8.2 and §8.3) as heads of HTTP/1.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "weir/base/detail/bytes.hpp"
#include "weir/http/detail/h1/host_line_cache.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/detail/h2/hpack_decoder.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {

/// The limits of a request's fields.
struct RequestFieldLimits {
  HeadLimits head{};                         ///< the limits of a head of HTTP/1.1
  std::uint32_t list_bytes_max = 64 * 1024;  ///< SETTINGS_MAX_HEADER_LIST_SIZE, at most 16 MiB
  bool extended_connect = false;             ///< accepts :protocol (RFC 8441 §4)
};

/// The result of reading a block of fields.
struct FieldsResult {
  enum class Kind : std::uint8_t {
    complete,       ///< the head or the trailers are filled
    rejected,       ///< the request is answered with to_status(error)
    malformed,      ///< a stream error of type PROTOCOL_ERROR (RFC 9113 §8.1.1)
    invalid_block,  ///< a connection error of type COMPRESSION_ERROR (RFC 9113 §4.3)
  };
  Kind kind = Kind::complete;
  ParseError error = ParseError::none;  ///< none unless rejected
  bool is_https = false;                ///< true if :scheme is https
  bool is_extended_connect = false;     ///< true for a CONNECT with :protocol
};

/// Reads the fields of requests, one block after the other. It writes them as the text of a head of
/// HTTP/1.1, which a HeadParser reads. All rules of HTTP/1.1 then hold for HTTP/2, and a head that
/// was accepted can be sent on as HTTP/1.1 with the same meaning. The crumbs of a cookie become one
/// header at the end (RFC 9113 §8.2.3). An extended CONNECT becomes a GET with Upgrade.
/// One reader of a core serves all connections. It allocates its memory when it is made.
/// Threads: one at a time.
class RequestFieldReader {
 public:
  /// Errors: throws std::bad_alloc.
  explicit RequestFieldReader(const RequestFieldLimits& limits = {});

  /// Returns the number of bytes that a reader with these limits allocates.
  static constexpr std::size_t memory(const RequestFieldLimits& limits) noexcept {
    const std::size_t list = list_max(limits);
    return pieces_size(list) + text_size(list) + HpackDecoder::scratch_size(list);
  }

  /// Reads a whole block. The table stays in step, whatever the result is, except after
  /// `invalid_block`. `head` is filled if the result is `complete`. It points to memory of the
  /// reader, which the next call overwrites.
  /// Errors: throws std::bad_alloc if there is no memory for the table.
  FieldsResult read_request(HpackTable& table, Bytes block, RequestHead& head);

  /// Reads a whole block of trailers and appends them to `trailers`, which stays incomplete unless
  /// the result is `complete`. The trailers that a ChunkedDecoder rejects are rejected.
  /// Errors: throws std::bad_alloc.
  FieldsResult read_trailers(HpackTable& table, Bytes block, Headers& trailers);

  /// Decodes a whole block of a stream that was refused, to keep the table in step.
  /// Returns: complete or invalid_block.
  /// Errors: throws std::bad_alloc if there is no memory for the table.
  FieldsResult skip(HpackTable& table, Bytes block);

 private:
  using Field = HpackDecoder::Field;
  using Kind = FieldsResult::Kind;

  /// The pseudo-header fields. Their texts are pieces.
  struct Pseudo {
    std::string_view method;
    std::string_view scheme;
    std::string_view path;
    std::string_view authority;
    std::string_view protocol;
    bool has_authority = false;
    bool has_protocol = false;
  };

  static constexpr std::size_t list_max(const RequestFieldLimits& limits) noexcept {
    constexpr std::size_t limit_max = 16 * 1024 * 1024;
    return limits.list_bytes_max < limit_max ? limits.list_bytes_max : limit_max;
  }
  /// The overhead of the list's fields is larger than the separators between their texts.
  static constexpr std::size_t pieces_size(std::size_t list) noexcept { return list; }
  static constexpr std::size_t text_size(std::size_t list) noexcept { return list + 128; }

  HpackDecoder decoder_of(HpackTable& table, Bytes block, std::uint32_t list_bytes_max) noexcept;
  void begin() noexcept;
  void add(const Field& field) noexcept;
  void add_pseudo(const Field& field) noexcept;
  void add_header(const Field& field) noexcept;
  void add_cookie(std::string_view value) noexcept;
  bool take_host(std::string_view value) noexcept;
  void begin_text() noexcept;
  void begin_connect() noexcept;
  void begin_extended_connect() noexcept;
  void begin_line(std::string_view method, std::string_view target) noexcept;
  void check_target() noexcept;
  void write(std::string_view text) noexcept;
  void write_line(std::string_view name, std::string_view value) noexcept;
  std::string_view keep(std::string_view text) noexcept;
  void fail(Kind kind, ParseError error = ParseError::none) noexcept;
  bool failed() const noexcept { return result_.kind != Kind::complete; }

  RequestFieldLimits limits_;
  HostLineCache host_line_cache_;
  HeadParser parser_;
  std::unique_ptr<char[]> memory_;

  // The state of one block.
  FieldsResult result_;
  Pseudo pseudo_;
  std::string_view cookie_;     ///< the crumbs of the cookie so far, joined
  char* pieces_end_ = nullptr;  ///< the end of the texts that keep() has copied
  char* text_end_ = nullptr;    ///< the end of the head
  bool has_text_ = false;       ///< true after the request line, when pseudo-fields are not allowed
  bool has_host_ = false;       ///< true after a Host that equals :authority
  bool has_cookie_ = false;
};

}  // namespace weir::http
