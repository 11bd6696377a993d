// The reader of responses: the events of the parser and their comparison with the reference.
#include "tools/weir/response_reader.hpp"

#include <algorithm>

namespace weir::bench {
namespace {

using Kind = http::ResponseEvent::Kind;

constexpr std::size_t shown_bytes_max = 400;

std::string shown(char byte) {
  if (byte > ' ' && byte < 0x7f) return {'\'', byte, '\''};
  return "byte " + std::to_string(static_cast<unsigned char>(byte));
}

}  // namespace

unsigned ResponseReader::read(std::string_view input, unsigned wanted) {
  unsigned whole = 0;
  while (!input.empty() && error_ == ResponseError::none) {
    if (state_ == State::idle) {
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
    const bool from_start = state_ == State::idle;
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
  if (state_ == State::idle || error_ != ResponseError::none) return 0;
  if (parser_.finish_at_close()) return finish() ? 1 : 0;
  fail(ResponseError::malformed);
  return 0;
}

bool ResponseReader::step(std::string_view& input) {
  if (state_ == State::idle) begin();
  return state_ == State::head ? read_head(input) : read_body(input);
}

std::string ResponseReader::describe_error() const {
  const std::string head = head_.substr(0, shown_bytes_max);
  if (mismatch_.empty() || head.empty()) return mismatch_ + head;
  return mismatch_ + ": " + head;
}

void ResponseReader::begin() {
  parser_.begin(reference_->rules.to_head ? http::Method::head : http::Method::get);
  state_ = State::head;
  head_.clear();
  difference_.clear();
  body_bytes_ = 0;
  first_ = !reference_->known;
  first_body_.clear();
}

bool ResponseReader::read_head(std::string_view& input) {
  // A head that arrives in pieces needs memory of its own.
  const std::size_t before = head_.size();
  if (before != 0) head_.append(input);
  const http::ResponseEvent event = parser_.next(before == 0 ? input : head_);
  if (event.kind == Kind::need_more || event.kind == Kind::error) {
    if (before == 0) head_ = input;
    input = {};
    return event.kind == Kind::error && fail(ResponseError::malformed);
  }
  if (before == 0) head_ = input;
  head_.resize(event.consumed);
  input.remove_prefix(event.consumed - before);
  if (event.kind == Kind::interim) return check_interim();
  if (!check_head()) return false;
  state_ = State::body;
  return read_body(input);
}

/// The final response follows an interim one, which has no body.
bool ResponseReader::check_interim() {
  const http::MessageHead& head = parser_.head();
  if (head.has_content_length() || head.chunked()) return fail(ResponseError::malformed);
  head_.clear();
  return false;
}

bool ResponseReader::check_head() {
  const int expected = static_cast<int>(reference_->rules.status);
  const int status = http::code_of(parser_.head().status());
  if (status != expected) {
    mismatch_ = "expected " + std::to_string(expected) + ", got " + std::to_string(status);
    return fail(ResponseError::status);
  }
  const bool until_close = parser_.reads_until_close();
  const bool keeps = parser_.head().keep_alive();
  if (until_close && keeps && !reference_->rules.closing) return fail(ResponseError::no_length);
  closes_ = until_close || !keeps;
  return true;
}

bool ResponseReader::read_body(std::string_view& input) {
  while (true) {
    const http::ResponseEvent event = parser_.next(input);
    input.remove_prefix(event.consumed);
    if (event.kind == Kind::end) return finish();
    if (event.kind == Kind::error) return fail(ResponseError::malformed);
    if (event.kind != Kind::data) return false;
    append_body(event.data);
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
  state_ = State::idle;
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
