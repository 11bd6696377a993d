// The decoder of chunked bodies (RFC 9112 §7.1): framing bytes in between, data where it stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {

/// What the framing of a chunked body may cost. A limit that is hit is a Refusal. The size of the
/// data is not limited here.
struct ChunkLimits {
  std::uint32_t line_max = 1024;                 ///< bytes of one size line, without its CRLF
  std::uint32_t extensions_max = 16 * 1024;      ///< bytes of all extensions of a message
  std::uint32_t trailers_bytes_max = 64 * 1024;  ///< bytes of all trailer lines
  std::uint32_t trailers_max = 100;              ///< number of trailer lines
};

/// Takes one chunked body apart. Sizes have at most 16 digits, leading zeros included, and fit 63
/// bits; extensions are checked and dropped; a trailer that would change framing or routing
/// (Content-Length, Transfer-Encoding, Host, Connection, Upgrade, Expect, TE, Trailer) is refused.
/// Verdicts depend on the bytes alone, never on how they were cut. Allocates for trailers only.
/// Threads: one at a time.
class ChunkedDecoder {
 public:
  struct Step {
    enum class Kind : std::uint8_t {
      need_more,  ///< all of the input was framing; come again with more
      data,       ///< `data` is a part of the body
      end,        ///< the body is whole, input behind `consumed` is the next message
      refused,    ///< the framing is broken; nothing behind can be trusted
    };
    Kind kind = Kind::need_more;
    Refusal refusal = Refusal::none;
    std::size_t consumed = 0;  ///< bytes of the input, `data` included, that are done with
    std::string_view data;     ///< a part of the input
  };

  ChunkedDecoder() noexcept;
  explicit ChunkedDecoder(const ChunkLimits& limits) noexcept;
  ChunkedDecoder(ChunkedDecoder&&) noexcept;
  ChunkedDecoder& operator=(ChunkedDecoder&&) noexcept;
  ~ChunkedDecoder();

  /// Reads on. `input` starts where the last step's `consumed` ended.
  Step next(std::string_view input);

  /// True once next() has returned `end`.
  bool ended() const noexcept { return state_ == State::end; }

  /// The trailer fields, complete after `end`. They are never headers (RFC 9110 §6.5).
  const Fields& trailers() const noexcept;

  /// Makes ready for another body.
  void reset() noexcept;

 private:
  enum class State : std::uint8_t {
    size_start,
    size,
    space_before_semicolon,
    extension_start,
    extension_name,
    space_after_name,
    value_start,
    value_token,
    value_quoted,
    value_escape,
    value_quoted_end,
    size_line_feed,
    data,
    data_return,
    data_line_feed,
    trailer_start,
    trailer_name,
    trailer_value,
    trailer_line_feed,
    last_line_feed,
    end,
    refused,
  };
  struct Trailers;

  Refusal read(char character);
  Refusal read_size(char character) noexcept;
  Refusal after_size(char character) noexcept;
  Refusal read_extension(char character) noexcept;
  Refusal read_extension_value(char character) noexcept;
  Refusal after_extension(char character) noexcept;
  Refusal read_trailer(char character);
  Refusal start_trailer(char character);
  Refusal finish_trailer();
  Refusal expect(char expected, char actual, State next, Refusal otherwise) noexcept;

  ChunkLimits limits_;
  std::uint64_t left_ = 0;  ///< of the chunk's size, while it is read, then of its data
  std::uint32_t line_bytes_ = 0;
  std::uint32_t extension_bytes_ = 0;
  std::uint8_t digits_ = 0;
  State state_ = State::size_start;
  Refusal refusal_ = Refusal::none;
  std::unique_ptr<Trailers> trailers_;
};

}  // namespace weir::http
