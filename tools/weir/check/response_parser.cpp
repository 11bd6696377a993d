// The parser of responses of a server that may be wrong.
#include "tools/weir/check/response_parser.hpp"

#include <algorithm>
#include <charconv>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::check {
namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const char* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, value);
  if (error != std::errc() || end != text_end) return std::nullopt;
  return value;
}

/// Returns true if one of the members of a list is `token`, in any letter case.
bool has_list_member(std::string_view list, std::string_view token) {
  for (;;) {
    const std::size_t comma = list.find(',');
    if (http::equals_ignoring_case(http::trim(list.substr(0, comma)), token)) return true;
    if (comma == list.npos) return false;
    list.remove_prefix(comma + 1);
  }
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
  if (!protocol_error_.empty()) return;
  if (state_ == State::until_close) {
    finish();
  } else if (state_ != State::head || !input_.empty()) {
    set_error("a truncated response");
  }
}

void ResponseParser::reset() {
  if (protocol_error_.empty() && state_ == State::until_close) finish();
}

/// Parses a head or a piece of a body. Returns false if the input has none.
bool ResponseParser::step() {
  switch (state_) {
    case State::head:
      return read_head();
    case State::sized_body:
      return read_sized_body();
    case State::chunks:
      return read_chunks();
    case State::until_close:
      append_body(input_);
      input_.clear();
      return false;
  }
  return false;
}

bool ResponseParser::read_head() {
  if (input_.empty()) return false;
  constexpr std::string_view begin = "HTTP/1.";
  if (!begin.starts_with(std::string_view(input_).substr(0, begin.size()))) {
    return set_error("bytes that are not a response");
  }
  const std::size_t end = input_.find("\r\n\r\n");
  if (end == input_.npos) {
    return input_.size() > head_bytes_max && set_error("a head without an end");
  }
  if (responses_.size() == responses_max) return set_error("too many responses");
  Response& response = responses_.emplace_back();
  const std::string head = input_.substr(0, end + 2);
  if (!parse_head(head, response)) return false;
  input_.erase(0, end + 4);
  return start_body(response);
}

bool ResponseParser::parse_head(std::string_view head, Response& response) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  // The reason of "HTTP/1.1 200 OK" may be missing, with or without its space.
  const bool minor = line.size() > 8 && http::is_in(line[7], http::CharClass::digit);
  const auto status = number(line.substr(std::min<std::size_t>(9, line.size()), 3));
  if (!minor || line[8] != ' ' || !status || *status < 100 || *status > 599 ||
      (line.size() > 12 && line[12] != ' ')) {
    return set_error("a malformed status line");
  }
  response.status = static_cast<int>(*status);
  for (head.remove_prefix(line.size() + 2); !head.empty();) {
    const std::size_t end = head.find("\r\n");
    if (!parse_header(head.substr(0, end), response)) return false;
    head.remove_prefix(end + 2);
  }
  const std::string connection = response.header("Connection").value_or("");
  response.closes = has_list_member(connection, "close") ||
                    (line[7] == '0' && !has_list_member(connection, "keep-alive"));
  return true;
}

bool ResponseParser::parse_header(std::string_view line, Response& response) {
  const std::size_t colon = line.find(':');
  if (colon == line.npos || !http::is_token(line.substr(0, colon)))
    return set_error("a malformed header line");
  const std::string_view value = http::trim(line.substr(colon + 1));
  if (!http::all_in(value, http::CharClass::value))
    return set_error("control characters in a header");
  response.headers.emplace_back(line.substr(0, colon), value);
  return true;
}

/// Finds the length of the body (RFC 9112, section 6.3).
bool ResponseParser::start_body(Response& response) {
  const auto length = response.header("Content-Length");
  const auto coding = response.header("Transfer-Encoding");
  const std::string method = final_count_ < methods_.size() ? methods_[final_count_] : "GET";
  if (length && coding) return set_error("a response with Content-Length and Transfer-Encoding");
  if (response.status < 200 || response.status == 204) {
    if (length || coding) return set_error("a length in a response without a body");
    return finish();
  }
  if (length && !number(*length)) return set_error("a Content-Length that is not a number");
  if (method == "HEAD" || response.status == 304) return finish();
  if (length) {
    remaining_ = *number(*length);
    state_ = State::sized_body;
    return remaining_ != 0 || finish();
  }
  if (coding) {
    if (!http::equals_ignoring_case(*coding, "chunked")) return set_error("an unknown coding");
    decoder_.reset();
    state_ = State::chunks;
    return true;
  }
  response.closes = response.close_delimited = true;
  state_ = State::until_close;
  return true;
}

bool ResponseParser::read_sized_body() {
  if (input_.empty()) return false;
  const std::size_t size = std::min<std::uint64_t>(remaining_, input_.size());
  append_body(std::string_view(input_).substr(0, size));
  input_.erase(0, size);
  remaining_ -= size;
  return remaining_ != 0 || finish();
}

bool ResponseParser::read_chunks() {
  using Kind = http::ChunkedDecoder::Step::Kind;
  const http::ChunkedDecoder::Step step = decoder_.next(input_);
  append_body(step.data);
  input_.erase(0, step.consumed);
  if (step.kind == Kind::error) return set_error("a broken chunk");
  if (step.kind == Kind::end) return finish();
  return step.kind != Kind::need_more;
}

void ResponseParser::append_body(std::string_view piece) {
  Response& response = responses_.back();
  response.body_bytes += piece.size();
  response.body.append(piece.substr(0, Response::stored_body_bytes_max - response.body.size()));
}

bool ResponseParser::finish() {
  responses_.back().complete = true;
  if (responses_.back().is_final()) ++final_count_;
  state_ = State::head;
  return true;
}

bool ResponseParser::set_error(std::string what) {
  protocol_error_ = std::move(what);
  return false;
}

}  // namespace weir::check
