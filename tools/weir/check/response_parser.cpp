// The parser of responses of a server that may be wrong.
#include "tools/weir/check/response_parser.hpp"

#include <algorithm>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::check {
namespace {

using Event = http::ResponseEvent;

http::ResponseLimits limits_of_check() noexcept {
  http::ResponseLimits limits;
  limits.head.request_line_max = ResponseParser::head_bytes_max;
  limits.head.headers_bytes_max = ResponseParser::head_bytes_max;
  limits.interim_max = ResponseParser::responses_max + 1;
  return limits;
}

std::string_view description_of(http::ParseError error) noexcept {
  using http::ParseError;
  switch (error) {
    case ParseError::bad_version:
    case ParseError::unsupported_version:
      return "bytes that are not a response";
    case ParseError::bad_status:
      return "a malformed status line";
    case ParseError::bad_header_name:
    case ParseError::space_before_colon:
    case ParseError::folded_line:
      return "a malformed header line";
    case ParseError::bad_line_end:
      return "a CR or LF that is not part of CRLF";
    case ParseError::bad_header_value:
      return "control characters in a header";
    case ParseError::status_line_too_long:
    case ParseError::headers_too_long:
      return "a head without an end";
    case ParseError::both_lengths:
      return "a response with Content-Length and Transfer-Encoding";
    case ParseError::bad_content_length:
    case ParseError::repeated_content_length:
      return "a Content-Length that is not a number";
    case ParseError::bad_transfer_encoding:
    case ParseError::unknown_transfer_coding:
    case ParseError::repeated_transfer_encoding:
    case ParseError::unexpected_transfer_encoding:
      return "an unknown coding";
    case ParseError::bad_chunk_size:
    case ParseError::bad_chunk_extension:
    case ParseError::bad_chunk_end:
      return "a broken chunk";
    case ParseError::unexpected_upgrade:
      return "an upgrade without a request for it";
    default:
      return http::name_of(error);
  }
}

// The header of a SETTINGS frame of less than 256 bytes; the third byte is its length.
constexpr std::string_view settings_header("\0\0\0\4\0\0\0\0\0", 9);

/// Returns true if `input` may be the first bytes of a server of HTTP/2, or begins with them.
bool may_be_settings(std::string_view input) noexcept {
  for (std::size_t index = 0; index < std::min(input.size(), settings_header.size()); ++index) {
    if (index != 2 && input[index] != settings_header[index]) return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> Response::header(std::string_view name) const {
  std::optional<std::string> joined;
  for (const auto& [each, value] : headers) {
    if (!http::equals_ignoring_case(each, name)) continue;
    joined = joined ? *joined + ", " + value : value;
  }
  return joined;
}

ResponseParser::ResponseParser() noexcept : parser_(limits_of_check()) {}

bool ResponseParser::interim() const noexcept {
  return std::ranges::any_of(
      responses_, [](const Response& each) { return each.status >= 100 && each.status < 200; });
}

void ResponseParser::read(std::string_view input) {
  if (!protocol_error_.empty()) return;
  input_ += input;
  while (protocol_error_.empty() && step()) {
  }
}

void ResponseParser::end() {
  // After an interim response, the parser expects another one.
  const bool between = input_.empty() && (responses_.empty() || responses_.back().complete);
  if (!protocol_error_.empty() || between) return;
  if (parser_.finish_at_close()) {
    finish();
  } else {
    set_error("a truncated response");
  }
}

void ResponseParser::reset() {
  if (protocol_error_.empty() && parser_.reads_until_close()) end();
}

/// Handles one event. Returns false if the parser needs more input.
bool ResponseParser::step() {
  if (!busy_) {
    if (input_.empty()) return false;
    if (responses_.empty() && may_be_settings(input_)) {
      return input_.size() >= settings_header.size() && set_error(http2_frames);
    }
    const bool to_head = final_count_ < methods_.size() && methods_[final_count_] == "HEAD";
    parser_.begin(to_head ? http::Method::head : http::Method::get);
    busy_ = true;
  }
  const Event event = parser_.next(input_);
  switch (event.kind) {
    case Event::Kind::error:
      return set_error(description_of(event.error));
    case Event::Kind::interim:
      if (!add_response()) return false;
      responses_.back().complete = true;
      break;
    case Event::Kind::head:
      if (!add_response()) return false;
      break;
    case Event::Kind::data:
      append_body(event.data);
      break;
    case Event::Kind::end:
      finish();
      break;
    case Event::Kind::need_more:
      break;
  }
  input_.erase(0, event.consumed);
  return event.kind != Event::Kind::need_more;
}

/// Stores the head that was parsed last.
bool ResponseParser::add_response() {
  if (responses_.size() == responses_max) return set_error("too many responses");
  const http::ReceivedResponseHead& head = parser_.head();
  if (!http::is_valid(head.status())) return set_error("a malformed status line");
  const int status = http::code_of(head.status());
  Response& response = responses_.emplace_back();
  response.status = status;
  response.close_delimited = parser_.reads_until_close();
  response.closes = response.close_delimited || !head.keep_alive();
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const http::HeaderField field = head.header_at(index);
    response.headers.emplace_back(field.name, field.value);
  }
  const bool bodiless = status < 200 || status == 204;
  if (bodiless && (head.has_content_length() || head.chunked())) {
    return set_error("a length in a response without a body");
  }
  return true;
}

void ResponseParser::append_body(std::string_view piece) {
  Response& response = responses_.back();
  response.body_bytes += piece.size();
  response.body.append(piece.substr(0, Response::stored_body_bytes_max - response.body.size()));
}

void ResponseParser::finish() {
  responses_.back().complete = true;
  ++final_count_;
  busy_ = false;
}

bool ResponseParser::set_error(std::string_view what) {
  protocol_error_ = what;
  return false;
}

}  // namespace weir::check
