// The request-head parser: bytes in, a RequestHead or a Refusal out. It sees no sockets and waits
// for nothing (RFC 9112 §2 to §5, in the strict profile that tests/data/http1-*.json spell out).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/http/detail/h1/host_line_cache.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/http/message/detail/request_head.hpp"

namespace weir::http {

/// What a request's head may cost. A limit that is hit is an answer: 414 or 431, 400 for the empty
/// lines. Values beyond 16 MiB count as 16 MiB, beyond RequestHead::fields_max as that.
struct HeadLimits {
  std::uint32_t request_line_max = 8 * 1024;           ///< bytes, without the CRLF
  std::uint32_t fields_bytes_max = 64 * 1024;          ///< bytes of all lines and of the empty line
  std::uint32_t fields_max = RequestHead::fields_max;  ///< number of field lines
  std::uint32_t empty_lines_max = 4;  ///< before a request line: RFC 9112 §2.2 asks to skip some
};

/// What HeadParser::parse() found.
struct ParseResult {
  enum class Kind : std::uint8_t {
    incomplete,  ///< every byte was fine so far; come again with more
    complete,    ///< the head is filled
    refused,     ///< no request can be read from here on; answer status_of(refusal) and close
  };

  Kind kind = Kind::incomplete;
  Refusal refusal = Refusal::none;
  std::uint32_t consumed = 0;  ///< bytes of the head with its last CRLF, when complete
};

/// Reads one head after the other. The verdict and the refusal's reason depend on the bytes alone,
/// never on how they were cut; no byte is judged twice. Threads: one at a time.
class HeadParser {
 public:
  /// `known_host`, which outlives the parser, may be shared with others of the same thread.
  explicit HeadParser(const HeadLimits& limits = {}, KnownHost* known_host = nullptr) noexcept;

  /// Reads on in `input`: everything received since the end of the last request, the same bytes
  /// as in the last call and more behind them, perhaps at another address. `head` must be the same
  /// in all calls for one head; its views point into `input` of the last one. After `complete` the
  /// parser is ready for the next head, which starts at input[consumed]. After `refused` it must
  /// be reset() before another call.
  ParseResult parse(std::string_view input, RequestHead& head) noexcept;

  /// Forgets what was read.
  void reset() noexcept;

  /// True once a byte of a request line was read: what ends now ends in the middle of a request.
  /// Empty lines before it do not count.
  bool started() const noexcept { return stage_ != Stage::start; }

 private:
  enum class Stage : std::uint8_t { start, method, target, version, line, name, value };
  enum class Step : std::uint8_t { done, starved, refused, complete };

  struct Cursor;
  struct UsualLines {
    const char* position;  ///< behind the last of them
    Step step;             ///< refused, if the last of them was
  };

  const char* read_usual_request_line(std::string_view input, RequestHead& head) noexcept;
  ParseResult parse_further(std::string_view input, RequestHead& head) noexcept;
  Step run(Stage& stage, Cursor& at, RequestHead& head) noexcept;
  Step skip_empty_lines(Cursor& at) noexcept;
  Step read_method(Cursor& at, RequestHead& head) noexcept;
  Step read_target(Cursor& at, RequestHead& head) noexcept;
  Step finish_target(std::string_view text, RequestHead& head) noexcept;
  Step read_version(Cursor& at, RequestHead& head) noexcept;
  Step read_rare_version(std::string_view there, RequestHead& head) noexcept;
  Step start_line(Cursor& at, RequestHead& head) noexcept;
  Step read_name(Cursor& at, RequestHead& head) noexcept;
  Step read_value(Cursor& at, RequestHead& head) noexcept;
  UsualLines read_usual_lines(const char* position, const char* end, RequestHead& head) noexcept;
  /// Whether a field with a name of this length may be one of those that note_field() knows.
  static constexpr bool may_matter(std::uint32_t name_size) noexcept {
    constexpr std::uint32_t sizes = 1U << 4 | 1U << 6 | 1U << 7 | 1U << 10 | 1U << 14 | 1U << 17;
    return name_size < 32 && (sizes >> name_size & 1U) != 0;
  }
  static const char* find_target_end(const char* base, const char* mark, const char* position,
                                     const char* end) noexcept;
  Step note_field(std::string_view name, std::string_view value, RequestHead& head) noexcept;
  Step note_host(std::string_view value, RequestHead& head) noexcept;
  Step note_rare_field(std::string_view name, std::string_view value, RequestHead& head) noexcept;
  bool take_known_host(std::string_view text, RequestHead& head) noexcept;
  Step finish(const RequestHead& head) noexcept;
  Step refuse(Refusal refusal) noexcept;

  HeadLimits limits_;
  KnownHost* known_host_;
  std::uint32_t position_ = 0;     ///< how far parse() looked, from the input's start
  std::uint32_t mark_ = 0;         ///< Cursor::mark, from the input's start
  std::uint32_t end_max_;          ///< the limit of the part that is read, from there too
  std::uint32_t empty_lines_ = 0;  ///< skipped before this request
  Stage stage_ = Stage::start;
  Refusal refusal_ = Refusal::none;
};

}  // namespace weir::http
