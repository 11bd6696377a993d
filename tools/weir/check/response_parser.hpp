// Collects the responses of a server that may be wrong, and describes how they violate HTTP/1.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/detail/h1/response_parser.hpp"

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

/// Collects the responses of one connection from pieces of any size. The parser of the HTTP client
/// reads them.
/// Threads: one at a time.
class ResponseParser {
 public:
  /// Largest size of a status line, and of all headers of a response.
  static constexpr std::uint32_t head_bytes_max = 256 * 1024;
  /// Largest number of responses on one connection, including interim ones. More are an error and
  /// are not stored.
  static constexpr std::size_t responses_max = 1000;
  /// The protocol_error() of a server that begins with SETTINGS (RFC 9113 §3.4).
  static constexpr std::string_view http2_frames = "frames of HTTP/2";

  ResponseParser() noexcept;
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
  bool step();
  bool add_response();
  void finish();
  void append_body(std::string_view piece);
  bool set_error(std::string_view what);

  http::ResponseParser parser_;
  bool busy_ = false;  // true between the first byte of a response and its end
  std::string input_;
  std::vector<std::string> methods_;
  std::vector<Response> responses_;
  std::size_t final_count_ = 0;
  std::string protocol_error_;
};

}  // namespace weir::check
