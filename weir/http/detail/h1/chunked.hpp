// The decoder of chunked bodies (RFC 9112 §7.1), which returns the data in place, without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {

/// The limits of a chunked body's framing. Exceeding a limit is a ParseError. The size of the
/// data is not limited here.
struct ChunkLimits {
  std::uint32_t line_max = 1024;                 ///< bytes of one size line, without its CRLF
  std::uint32_t extensions_max = 16 * 1024;      ///< bytes of all extensions of one message
  std::uint32_t trailers_bytes_max = 64 * 1024;  ///< bytes of all trailer lines, without CRLFs
  std::uint32_t trailers_max = 100;              ///< number of trailer lines
};

/// Decodes one chunked body. A size has at most 16 digits, leading zeros included, and fits 63
/// bits. Extensions are checked and dropped. The decoder rejects a trailer that would change
/// framing or routing: Content-Length, Transfer-Encoding, Host, Connection, Upgrade, Expect, TE,
/// Trailer. The result depends only on the bytes, not on how they were split into calls. The
/// decoder allocates memory only for trailers.
/// Threads: one at a time.
class ChunkedDecoder {
 public:
  struct Step {
    enum class Kind : std::uint8_t {
      need_more,  ///< all of the input was framing; call again with more input
      data,       ///< `data` is the next part of the body
      end,        ///< the body is complete; input after `consumed` is the next message
      error,      ///< the framing is invalid; the rest of the input cannot be used
    };
    Kind kind = Kind::need_more;
    ParseError error = ParseError::none;
    std::size_t consumed = 0;  ///< bytes of the input that are finished, `data` included
    std::string_view data;     ///< a view into the input
  };

  ChunkedDecoder() noexcept;
  explicit ChunkedDecoder(const ChunkLimits& limits) noexcept;
  ChunkedDecoder(ChunkedDecoder&&) noexcept;
  ChunkedDecoder& operator=(ChunkedDecoder&&) noexcept;
  ~ChunkedDecoder();

  /// Decodes the next step. `input` starts at the end of the last step's `consumed` bytes.
  Step next(std::string_view input);

  /// Returns true if next() has returned `end`.
  bool ended() const noexcept { return state_ == State::end; }

  /// Returns the trailer fields, complete after `end`. They are never headers (RFC 9110 §6.5).
  const Headers& trailers() const noexcept;

  /// Prepares the decoder for another body.
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
    failed,
  };
  struct Trailers;

  ParseError read(char character);
  ParseError read_size(char character) noexcept;
  ParseError after_size(char character) noexcept;
  ParseError read_extension(char character) noexcept;
  ParseError read_extension_value(char character) noexcept;
  ParseError after_extension(char character) noexcept;
  ParseError read_trailer(char character);
  ParseError start_trailer(char character);
  ParseError finish_trailer();
  ParseError expect(char expected, char actual, State next, ParseError otherwise) noexcept;

  ChunkLimits limits_;
  std::uint64_t left_ = 0;  ///< the chunk's size while it is read, then its remaining data
  std::uint32_t line_bytes_ = 0;
  std::uint32_t extension_bytes_ = 0;
  std::uint8_t digits_ = 0;
  State state_ = State::size_start;
  ParseError error_ = ParseError::none;
  std::unique_ptr<Trailers> trailers_;
};

}  // namespace weir::http
