// Parses the responses of a server that may be wrong, and finds where they violate HTTP/1.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/detail/h1/chunked.hpp"

namespace weir::check {

struct Response {
  /// Largest part of a body that is stored.
  static constexpr std::size_t stored_body_bytes_max = 64 * 1024;

  int status = 0;
  bool complete = false;
  /// True if the close is announced, the version is 1.0 without keep-alive, or the close ends the
  /// body.
  bool closes = false;
  bool close_delimited = false;  ///< true: the end of the connection ends the body
  std::uint64_t body_bytes = 0;
  std::string body;  ///< stored body without the framing of chunks
  std::vector<std::pair<std::string, std::string>> headers;

  bool is_final() const noexcept { return status >= 200; }
  /// Returns the values of all headers of that name, joined by ", ". Names match in any letter
  /// case. nullopt: no header has that name.
  std::optional<std::string> header(std::string_view name) const;
};

/// Parses the responses of one connection from pieces of any size. It is as lenient as clients
/// are with white space around values, and strict with framing.
/// Threads: one at a time.
class ResponseParser {
 public:
  /// Largest input that is searched for the end of a head. More without an end are an error.
  static constexpr std::size_t head_bytes_max = 256 * 1024;
  /// Largest number of responses on one connection, including interim ones. More are an error and
  /// are not stored.
  static constexpr std::size_t responses_max = 1000;

  /// Sets the method of the next request whose method is not set yet. Other requests count as
  /// GET.
  void expect_response_to(std::string_view method) { methods_.emplace_back(method); }
  /// Parses more input. The parser ignores all input after an error.
  void read(std::string_view input);
  /// Handles the end of the connection.
  void end();
  /// Handles a reset of the connection. It ends a body without a length, and is not an error of
  /// the responses.
  void reset();

  /// Returns the responses that have begun; the last one may be incomplete.
  const std::vector<Response>& responses() const noexcept { return responses_; }
  std::size_t final_count() const noexcept { return final_count_; }  ///< complete final responses
  bool interim() const noexcept;                                     ///< true if a 1xx has arrived
  /// Describes the violation of HTTP/1.1; empty if none was found.
  const std::string& protocol_error() const noexcept { return protocol_error_; }

 private:
  enum class State : std::uint8_t { head, sized_body, chunks, until_close };

  bool step();
  bool read_head();
  bool parse_head(std::string_view head, Response& response);
  bool parse_header(std::string_view line, Response& response);
  bool start_body(Response& response);
  bool read_sized_body();
  bool read_chunks();
  bool finish();
  void append_body(std::string_view piece);
  bool set_error(std::string what);

  State state_ = State::head;
  std::string input_;
  std::vector<std::string> methods_;
  std::vector<Response> responses_;
  std::size_t final_count_ = 0;
  std::uint64_t remaining_ = 0;
  http::ChunkedDecoder decoder_;
  std::string protocol_error_;
};

}  // namespace weir::check
