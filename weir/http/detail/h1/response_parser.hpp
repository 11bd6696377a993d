// The parser of responses: it turns the bytes of a connection into the events of a client. It uses
// no sockets and never waits. It implements RFC 9112 §4 to §7 in the strict profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/message/body_length.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {

/// The limits of a response. Exceeding a limit is a ParseError. The size of the body is not limited
/// here.
struct ResponseLimits {
  HeadLimits head = {};
  /// The extensions of a response that never ends have no limit together.
  ChunkLimits chunks = {.extensions_max = 0xFFFFFFFF};
  std::uint32_t interim_max = 16;  ///< number of 1xx responses before the final one
};

/// The progress of a response; see ResponseParser::next().
struct ResponseEvent {
  enum class Kind : std::uint8_t {
    need_more,  ///< all of the input was used; call again with more input
    interim,    ///< head() is that of a 1xx response; the final response follows
    head,       ///< head() is that of the final response
    data,       ///< `data` is the next part of the body
    end,        ///< the response is complete
    error,      ///< the input is invalid; nothing after it can be trusted
  };

  Kind kind = Kind::need_more;
  ParseError error = ParseError::none;
  std::size_t consumed = 0;  ///< bytes of the input that are finished, `data` included
  std::string_view data;     ///< a view into the input
};

/// Parses the responses of one connection, one for each call of begin(). The events depend only on
/// the bytes, not on how they were split into calls. Data events may be split differently.
/// Threads: one at a time.
class ResponseParser {
 public:
  using Event = ResponseEvent;

  explicit ResponseParser(const ResponseLimits& limits = {}) noexcept;

  /// Expects the response to a request with this method. The last response has ended (asserted).
  void begin(Method method) noexcept;

  /// Returns the next event. `input` starts at the end of the last event's `consumed` bytes. It
  /// contains all bytes received since then, possibly at another address. Bytes without begin(), or
  /// after the end of a response, are unexpected_response.
  Event next(std::string_view input);

  /// Handles the end of the connection, after all input was used.
  /// Returns: true if it completes the body of a response without a length. False means that no
  /// response was expected, or a response was cut off.
  bool finish_at_close() noexcept;

  /// Returns the head of the last head or interim event. Its views point into the input of that
  /// call; see MessageHead::rebase().
  ReceivedResponseHead& head() noexcept { return head_; }
  const ReceivedResponseHead& head() const noexcept { return head_; }
  /// Returns the length of the body behind the last head event.
  BodyLength body_length() const noexcept { return body_length_; }
  /// Returns the trailer fields after a chunked body, complete after its end.
  const Headers& trailers() const noexcept { return chunks_.trailers(); }

  /// Returns true if the end of the connection is the end of the body.
  bool reads_until_close() const noexcept { return state_ == State::until_close; }
  /// Returns true if the response is complete and the server can answer another request on this
  /// connection.
  bool reusable() const noexcept { return state_ == State::ended && reusable_; }

 private:
  enum class State : std::uint8_t { idle, head, sized, chunked, until_close, ended, failed };

  Event read_head(std::string_view input);
  Event read_chunks(std::string_view input);
  void start_body() noexcept;
  Event fail_with(ParseError error) noexcept;

  HeadParser head_parser_;
  ChunkedDecoder chunks_;
  ReceivedResponseHead head_;
  BodyLength body_length_;
  std::uint64_t left_ = 0;  // bytes of a sized body that have not arrived
  std::uint32_t interim_max_;
  std::uint32_t interim_count_ = 0;
  Method method_ = Method::get;
  State state_ = State::idle;
  bool reusable_ = false;
};

}  // namespace weir::http
