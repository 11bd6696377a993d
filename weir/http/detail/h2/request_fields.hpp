// The fields of HTTP/2 requests (RFC 9113 §8.2 and §8.3) as heads of HTTP/1.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/detail/bytes.hpp"
#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/detail/h1/host_line_cache.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/detail/h2/field_reader.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/http/message/detail/request_head.hpp"

namespace weir::http {

/// The limits of a request's fields.
struct RequestFieldLimits {
  HeadLimits head{};                         ///< the limits of a head of HTTP/1.1
  ChunkLimits chunks{};                      ///< the limits of trailers of HTTP/1.1
  std::uint32_t list_bytes_max = 64 * 1024;  ///< SETTINGS_MAX_HEADER_LIST_SIZE, at most 16 MiB
  bool extended_connect = false;             ///< accepts :protocol (RFC 8441 §4)
};

/// Reads the fields of requests, one block after the other. It writes them as the text of a head of
/// HTTP/1.1, which a HeadParser reads. All rules of HTTP/1.1 then hold for HTTP/2, and a head that
/// was accepted can be sent on as HTTP/1.1 with the same meaning. The crumbs of a cookie become one
/// header at the end (RFC 9113 §8.2.3). An extended CONNECT becomes a GET with Upgrade.
/// One reader of a core serves all connections. It allocates its memory when it is made.
/// Threads: one at a time.
class RequestFieldReader : public FieldReader {
 public:
  /// Errors: throws std::bad_alloc.
  explicit RequestFieldReader(const RequestFieldLimits& limits = {});

  /// Returns the number of bytes that a reader with these limits allocates.
  static constexpr std::size_t memory(const RequestFieldLimits& limits) noexcept {
    return FieldReader::memory(limits.list_bytes_max, more_size(limits));
  }

  /// Reads a whole block. The table stays in step, whatever the result is, except after
  /// `invalid_block`. `head` is filled if the result is `complete`. Otherwise `head` has only the
  /// method, if that is known. `head` points to memory of the reader. The next call overwrites that
  /// memory.
  /// Errors: throws std::bad_alloc if there is no memory for the table.
  FieldsResult read_request(HpackTable& table, Bytes block, RequestHead& head);

 private:
  /// Returns the room for the second authority of a CONNECT, which is in its first line and Host.
  static constexpr std::size_t second_authority_size(const RequestFieldLimits& limits) noexcept {
    const std::uint32_t most = list_max(limits.list_bytes_max);
    return limits.head.request_line_max < most ? limits.head.request_line_max : most;
  }
  /// Returns the size of the memory behind the text: more text, and the pieces.
  static constexpr std::size_t more_size(const RequestFieldLimits& limits) noexcept {
    return second_authority_size(limits) + list_max(limits.list_bytes_max);
  }

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

  bool decode(HpackTable& table, Bytes block);
  void add_pseudo(const Field& field) noexcept;
  void add_header(const Field& field) noexcept;
  void add_cookie(std::string_view value) noexcept;
  bool take_host(std::string_view value) noexcept;
  void begin_text() noexcept;
  void begin_connect() noexcept;
  void begin_extended_connect() noexcept;
  void begin_line(std::string_view method, std::string_view target) noexcept;
  void check_target() noexcept;
  std::string_view keep(std::string_view text) noexcept;

  std::size_t second_authority_size_;
  bool extended_connect_;
  HostLineCache host_line_cache_;
  HeadParser parser_;
  RequestHead repeated_head_;  ///< the head of the repeated block

  // The state of one block.
  Pseudo pseudo_;
  std::string_view cookie_;     ///< the crumbs of the cookie so far, joined
  char* pieces_end_ = nullptr;  ///< the end of the texts that keep() has copied
  bool has_text_ = false;       ///< true after the request line, when pseudo-fields are not allowed
  bool has_host_ = false;       ///< true after a Host that equals :authority
  bool has_cookie_ = false;
};

}  // namespace weir::http
