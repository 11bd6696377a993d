// The reader of responses: heads, bodies and their comparison with the reference.
#include "tools/weir/response_reader.hpp"

#include <algorithm>
#include <charconv>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::bench {
namespace {

constexpr std::string_view head_end = "\r\n\r\n";
constexpr std::size_t shown_bytes_max = 400;

/// Parses a decimal number that consists only of digits.
std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  if (text.empty() || !http::all_in(text, http::CharClass::digit)) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string shown(char byte) {
  if (byte > ' ' && byte < 0x7f) return {'\'', byte, '\''};
  return "byte " + std::to_string(static_cast<unsigned char>(byte));
}

bool has_list_member(std::string_view value, std::string_view option) {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    if (http::equals_ignoring_case(http::trim(value.substr(0, comma)), option)) return true;
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return false;
}

}  // namespace

unsigned ResponseReader::read(std::string_view input, unsigned wanted) {
  unsigned whole = 0;
  while (!input.empty() && error_ == ResponseError::none) {
    if (state_ == State::start) {
      if (whole == wanted) {
        mismatch_ = "unexpected bytes after the last response: " +
                    std::string(input.substr(0, shown_bytes_max));
        head_.clear();
        fail(ResponseError::unexpected);
        break;
      }
      const std::string& last_verified = reference_->last_verified;
      if (!last_verified.empty() && !reference_->rules.number_placeholder &&
          input.starts_with(last_verified)) {
        closes_ = reference_->last_verified_closes;
        input.remove_prefix(last_verified.size());
        ++whole;
        continue;
      }
    }
    const bool from_start = state_ == State::start;
    const std::string_view before = input;
    while (!input.empty() && error_ == ResponseError::none) {
      if (!step(input)) continue;
      ++whole;
      const std::size_t size = before.size() - input.size();
      if (from_start && size <= ResponseReference::body_bytes_max) {
        reference_->last_verified.assign(before.substr(0, size));
        reference_->last_verified_closes = closes_;
      }
      break;
    }
  }
  return whole;
}

unsigned ResponseReader::end() {
  if (state_ == State::start || error_ != ResponseError::none) return 0;
  if (state_ == State::until_close) return finish() ? 1 : 0;
  fail(ResponseError::malformed);
  return 0;
}

bool ResponseReader::step(std::string_view& input) {
  switch (state_) {
    case State::start:
      head_.clear();
      state_ = State::head;
      [[fallthrough]];
    case State::head:
      return read_head(input);
    case State::body:
      return read_body(input);
    case State::chunks:
      return read_chunks(input);
    case State::until_close:
      append_body(input);
      input = {};
      return false;
  }
  return false;
}

std::string ResponseReader::describe_error() const {
  const std::string head = head_.substr(0, shown_bytes_max);
  if (mismatch_.empty() || head.empty()) return mismatch_ + head;
  return mismatch_ + ": " + head;
}

// The head. ---------------------------------------------------------------------------------------

bool ResponseReader::read_head(std::string_view& input) {
  const std::size_t before = head_.size();
  head_.append(input.substr(0, head_bytes_max - before));
  // The end of the head may have begun in the last piece.
  const std::size_t end = head_.find(head_end, before < 3 ? 0 : before - 3);
  if (end == std::string::npos) {
    input = {};
    if (head_.size() == head_bytes_max) fail(ResponseError::malformed);
    return false;
  }
  input.remove_prefix(end + head_end.size() - before);
  head_.resize(end + head_end.size());
  return parse_head(head_) && start_body();
}

bool ResponseReader::parse_head(std::string_view head) {
  chunked_ = false;
  difference_.clear();
  length_.reset();
  body_bytes_ = 0;
  first_ = !reference_->known;
  first_body_.clear();

  const std::size_t line_end = head.find("\r\n");
  const std::string_view line = head.substr(0, line_end);
  head.remove_prefix(line_end + 2);
  // RFC 9112 §4 requires the space after the status even if no reason follows.
  constexpr std::string_view version = "HTTP/1.1 ";
  constexpr std::string_view old_version = "HTTP/1.0 ";  // RFC 9112 §9.3: closes by default
  closes_ = line.starts_with(old_version);
  const auto status =
      line.size() < version.size() + 4 ? std::nullopt : number_of(line.substr(version.size(), 3));
  if (!(closes_ || line.starts_with(version)) || !status || *status < 100 || *status > 599 ||
      line[version.size() + 3] != ' ' || !http::all_in(line, http::CharClass::value)) {
    return fail(ResponseError::malformed);
  }
  status_ = static_cast<unsigned>(*status);
  while (!head.starts_with("\r\n")) {
    const std::size_t end = head.find("\r\n");
    if (!parse_header(head.substr(0, end))) return fail(ResponseError::malformed);
    head.remove_prefix(end + 2);
  }
  return !(length_ && chunked_) || fail(ResponseError::malformed);
}

bool ResponseReader::parse_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = http::trim(line.substr(colon + 1));
  if (!http::is_token(name) || !http::all_in(value, http::CharClass::value)) return false;
  if (http::equals_ignoring_case(name, "content-length")) {
    const auto length = number_of(value);
    // RFC 9110 §8.6 allows a repeated header with the same length.
    if (!length || (length_ && *length_ != *length)) return false;
    length_ = length;
    return true;
  }
  if (http::equals_ignoring_case(name, "transfer-encoding")) {
    if (chunked_ || !http::equals_ignoring_case(value, "chunked")) return false;
    chunked_ = true;
  } else if (http::equals_ignoring_case(name, "connection")) {
    closes_ = has_list_member(value, "close") || (closes_ && !has_list_member(value, "keep-alive"));
  }
  return true;
}

// The body. ---------------------------------------------------------------------------------------

bool ResponseReader::start_body() {
  const bool interim = status_ < 200;
  if (!interim && status_ != reference_->rules.status) {
    mismatch_ =
        "expected " + std::to_string(reference_->rules.status) + ", got " + std::to_string(status_);
    return fail(ResponseError::status);
  }
  if (interim) {
    if (status_ == 101 || length_ || chunked_) return fail(ResponseError::malformed);
    state_ = State::start;  // the final response follows
    return false;
  }
  if (reference_->rules.to_head || status_ == 204 || status_ == 304) {
    // A Content-Length here is not the size of a body that arrives.
    return finish();
  }
  if (chunked_) {
    decoder_.reset();
    state_ = State::chunks;
    return false;
  }
  if (length_) {
    left_ = *length_;
    state_ = State::body;
    return left_ == 0 && finish();
  }
  if (!reference_->rules.closing && !closes_) return fail(ResponseError::no_length);
  state_ = State::until_close;
  closes_ = true;
  return false;
}

bool ResponseReader::read_body(std::string_view& input) {
  const std::string_view piece = input.substr(0, std::min<std::uint64_t>(left_, input.size()));
  append_body(piece);
  left_ -= piece.size();
  input.remove_prefix(piece.size());
  return left_ == 0 && finish();
}

bool ResponseReader::read_chunks(std::string_view& input) {
  using Kind = http::ChunkedDecoder::Step::Kind;
  for (;;) {
    const auto step = decoder_.next(input);
    append_body(step.data);
    input.remove_prefix(step.consumed);
    if (step.kind == Kind::end) return finish();
    if (step.kind == Kind::error) return fail(ResponseError::malformed);
    if (step.kind == Kind::need_more) return false;
  }
}

void ResponseReader::append_body(std::string_view piece) {
  constexpr std::uint64_t compared_max = ResponseReference::body_bytes_max;
  const std::uint64_t at = body_bytes_;
  body_bytes_ += piece.size();
  if (reference_->rules.bodies_vary || at >= compared_max) return;
  piece = piece.substr(0, static_cast<std::size_t>(compared_max - at));
  if (first_ || reference_->rules.number_placeholder) {
    first_body_.append(piece);
  } else {
    const std::string_view body = reference_->body;
    const auto begin = static_cast<std::size_t>(std::min<std::uint64_t>(at, body.size()));
    compare(at, body.substr(begin), piece);
  }
}

/// Compares the common part. check_length() finds a different length.
void ResponseReader::compare(std::uint64_t at, std::string_view expected, std::string_view found) {
  const std::size_t size = std::min(expected.size(), found.size());
  const auto [wanted, got] =
      std::mismatch(expected.begin(), expected.begin() + size, found.begin());
  const auto same = static_cast<std::size_t>(wanted - expected.begin());
  if (same != size) record_difference(at + same, *wanted, *got);
}

void ResponseReader::record_difference(std::uint64_t at, char expected, char found) {
  if (!difference_.empty()) return;
  difference_ = "byte " + std::to_string(at) + " of the body: expected " + shown(expected) +
                ", got " + shown(found);
}

bool ResponseReader::check_length(std::uint64_t expected) {
  if (body_bytes_ == expected) return true;
  mismatch_ = "expected a body of " + std::to_string(expected) + " bytes, got " +
              std::to_string(body_bytes_);
  return fail(ResponseError::length);
}

bool ResponseReader::finish() {
  ResponseReference& reference = *reference_;
  state_ = State::start;
  const auto& asked = reference.rules.body_bytes;
  if (asked && !check_length(*asked)) return false;
  if (reference.rules.bodies_vary) return true;
  if (reference.rules.number_placeholder && !check_number()) return false;
  if (!reference.known) {
    reference.known = true;
    reference.body = first_body_;
    reference.body_bytes = body_bytes_;
    return true;
  }
  if (!check_length(reference.body_bytes)) return false;
  // The response of another connection may have become the reference since this one began.
  if (first_) compare(0, reference.body, first_body_);
  if (difference_.empty()) return true;
  mismatch_ = difference_;
  return fail(ResponseError::body);
}

/// Checks the number of the body. It then replaces the number by the reference's, and compares
/// the rest.
bool ResponseReader::check_number() {
  const NumberPlaceholder& number_placeholder = reference_->rules.number_placeholder;
  const std::string number = number_placeholder.text(number_);
  number_ = number_placeholder.next(number_);
  std::size_t& at = reference_->number_at;
  if (!reference_->known) {
    at = first_body_.find(number);
    if (at != std::string::npos) return true;
    mismatch_ = "expected " + number + ", got: " + first_body_.substr(0, shown_bytes_max);
    return fail(ResponseError::number);
  }
  if (!check_length(reference_->body_bytes)) return false;
  if (first_body_.compare(at, number_placeholder.digits, number) != 0) {
    mismatch_ = "expected " + number + ", got " + first_body_.substr(at, number_placeholder.digits);
    return fail(ResponseError::number);
  }
  first_body_.replace(at, number_placeholder.digits, reference_->body, at,
                      number_placeholder.digits);
  compare(0, reference_->body, first_body_);
  return true;
}

std::string_view name_of(ResponseError fault) noexcept {
  switch (fault) {
    case ResponseError::none:
      return "none";
    case ResponseError::malformed:
      return "malformed response";
    case ResponseError::no_length:
      return "response without length";
    case ResponseError::status:
      return "wrong status";
    case ResponseError::length:
      return "wrong length";
    case ResponseError::body:
      return "wrong body";
    case ResponseError::number:
      return "number of another request";
    case ResponseError::unexpected:
      return "unexpected bytes";
  }
  return "unknown";
}

}  // namespace weir::bench
