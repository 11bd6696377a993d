// The parser of heads: it turns bytes into the head of a request or a response, or a ParseError. It
// uses no sockets and never waits. It implements RFC 9112 §2 to §5 in the strict profile that
// tests/data/http1-*.json define.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/http/detail/h1/host_line_cache.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {

/// The limits of a head. A request's head that exceeds a limit is answered with 414 or 431, with
/// 400 for the empty lines, or with 501 if the method alone is too long (RFC 9112 §3). A value
/// above 16 MiB counts as 16 MiB. The limits hold for HTTP/1 and HTTP/2.
/// Over HTTP/2, H2Limits::field_list_max holds too: raise both for longer heads.
struct HeadLimits {
  std::uint32_t request_line_max = 8 * 1024;    ///< bytes, without the CRLF; also a status line's
  std::uint32_t headers_bytes_max = 64 * 1024;  ///< bytes of all lines and of the empty line
  /// Number of header lines. A head with more than 100 needs memory of the heap, 48 bytes for each
  /// line at most; see header_slots_bytes_max().
  std::uint32_t headers_max = MessageHead::inline_max;
  std::uint32_t empty_lines_max = 4;  ///< before a request line, see RFC 9112 §2.2
};

/// Returns an upper bound of the heap memory for the headers of one head with these limits.
constexpr std::uint64_t header_slots_bytes_max(const HeadLimits& limits) noexcept {
  constexpr std::uint32_t line_min = 4;  // a name of one character, a colon, and the line's end
  const std::uint32_t lines = limits.headers_bytes_max / line_min;
  return MessageHead::heap_bytes_max(lines < limits.headers_max ? lines : limits.headers_max);
}

/// The result of HeadParser::parse().
struct ParseResult {
  enum class Kind : std::uint8_t {
    incomplete,  ///< all bytes so far are valid; call again with more input
    complete,    ///< the head is complete, and `head` is filled
    error,       ///< the input is invalid; answer to_status(error) and close
  };

  Kind kind = Kind::incomplete;
  ParseError error = ParseError::none;
  std::uint32_t consumed = 0;  ///< bytes of the head with its last CRLF if complete, else 0
};

/// Parses heads one after the other. The result and the error depend only on the bytes,
/// not on how they were split into calls. No byte is checked twice.
/// Threads: one at a time.
class HeadParser {
 public:
  /// Makes a parser with these limits. Parsers of the same thread may share one
  /// `host_line_cache`, which must outlive them; nullptr means no cache.
  explicit HeadParser(const HeadLimits& limits = {},
                      HostLineCache* host_line_cache = nullptr) noexcept;

  /// Continues with `input`: all bytes received since the end of the last request. They are the
  /// bytes of the last call and further bytes after them, possibly at another address. `head`
  /// must be the same object in all calls for one head. Its views point into the `input` of the
  /// last call. The parser is ready for the next head after `complete`; that head starts at
  /// input[consumed]. The caller must call reset() after `error` before it calls parse() again.
  ParseResult parse(std::string_view input, RequestHead& head) noexcept;
  /// Parses the head of a response in the same way. A response has no empty lines before it, and
  /// its Host, Expect and Upgrade headers mean nothing. A parser reads either requests or
  /// responses.
  ParseResult parse(std::string_view input, ReceivedResponseHead& head) noexcept;

  /// Discards the state of the current head.
  void reset() noexcept;

  /// Returns true if a byte of a request line was read; input that ends now ends in the middle of a
  /// request. Empty lines before the request line do not count.
  bool started() const noexcept { return stage_ != Stage::start; }

 private:
  enum class Stage : std::uint8_t { start, method, target, version, line, name, value };
  enum class Step : std::uint8_t { done, need_more, failed, complete };

  struct Cursor;
  struct FastPathLines {
    const char* position;  ///< the end of the last line that was read
    Step step;             ///< failed if the last line is invalid
  };

  const char* read_request_line_fast(std::string_view input, MessageHead& head) noexcept;
  ParseResult parse_resumable(std::string_view input, MessageHead& head) noexcept;
  Step run(Stage& stage, Cursor& at, MessageHead& head) noexcept;
  Step read_status_line(std::string_view input, MessageHead& head) noexcept;
  Step skip_empty_lines(Cursor& at) noexcept;
  Step read_method(Cursor& at, MessageHead& head) noexcept;
  Step read_target(Cursor& at, MessageHead& head) noexcept;
  Step finish_target(std::string_view text, MessageHead& head) noexcept;
  Step read_version(Cursor& at, MessageHead& head) noexcept;
  Step start_line(Cursor& at, MessageHead& head) noexcept;
  Step read_name(Cursor& at, MessageHead& head) noexcept;
  Step read_value(Cursor& at, MessageHead& head) noexcept;
  FastPathLines read_lines_fast(const char* position, const char* end, MessageHead& head) noexcept;
  /// Returns true if a header with a name of this length may be one that handle_header() handles.
  static constexpr bool may_be_known_header(std::uint32_t name_size) noexcept {
    constexpr std::uint32_t sizes = 1U << 4 | 1U << 6 | 1U << 7 | 1U << 10 | 1U << 14 | 1U << 17;
    return name_size < 32 && (sizes >> name_size & 1U) != 0;
  }
  static const char* find_target_end(const char* base, const char* position,
                                     const char* end) noexcept;
  Step handle_header(std::string_view name, std::string_view value, MessageHead& head) noexcept;
  Step handle_host(std::string_view value, MessageHead& head) noexcept;
  Step handle_rare_header(std::string_view name, std::string_view value,
                          MessageHead& head) noexcept;
  bool take_cached_host(std::string_view text, MessageHead& head) noexcept;
  Step finish(const MessageHead& head) noexcept;
  static ParseError limit_error(Stage stage, const Cursor& at, const MessageHead& head) noexcept;
  Step fail_with(ParseError error) noexcept;

  HeadLimits limits_;
  HostLineCache* host_line_cache_;
  std::uint32_t fast_headers_max_;  ///< headers that the fast path reads
  std::uint32_t position_ = 0;      ///< the offset in the input that parse() has reached
  std::uint32_t mark_ = 0;          ///< Cursor::mark as an offset in the input
  std::uint32_t end_max_;           ///< Cursor::end_max of the current part
  std::uint32_t empty_lines_ = 0;   ///< empty lines skipped before this request
  Stage stage_ = Stage::start;
  bool reads_responses_ = false;
  ParseError error_ = ParseError::none;
};

}  // namespace weir::http
