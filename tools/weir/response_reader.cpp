#include "tools/weir/response_reader.hpp"

#include <algorithm>
#include <charconv>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::bench {
namespace {

constexpr std::string_view head_end = "\r\n\r\n";
constexpr std::size_t shown_bytes_max = 400;

/// A whole decimal number of digits only.
std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  if (text.empty() || !http::all_in(text, http::CharacterClass::digit)) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string shown(char byte) {
  if (byte > ' ' && byte < 0x7f) return {'\'', byte, '\''};
  return "byte " + std::to_string(static_cast<unsigned char>(byte));
}

bool lists(std::string_view value, std::string_view option) {
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
  while (!input.empty() && fault_ == ResponseFault::none) {
    if (state_ == State::start) {
      if (whole == wanted) {
        wrong_ = "no request is unanswered, and this came: " +
                 std::string(input.substr(0, shown_bytes_max));
        head_.clear();
        fail(ResponseFault::unexpected);
        break;
      }
      const std::string& seen = reference_->seen;
      if (!seen.empty() && !reference_->rules.numbering && input.starts_with(seen)) {
        closes_ = reference_->seen_closes;
        input.remove_prefix(seen.size());
        ++whole;
        continue;
      }
    }
    const bool from_start = state_ == State::start;
    const std::string_view before = input;
    while (!input.empty() && fault_ == ResponseFault::none) {
      if (!step(input)) continue;
      ++whole;
      const std::size_t size = before.size() - input.size();
      if (from_start && size <= ResponseReference::body_bytes_max) {
        reference_->seen.assign(before.substr(0, size));
        reference_->seen_closes = closes_;
      }
      break;
    }
  }
  return whole;
}

unsigned ResponseReader::end() {
  if (state_ == State::start || fault_ != ResponseFault::none) return 0;
  if (state_ == State::until_end) return finish() ? 1 : 0;
  fail(ResponseFault::malformed);
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
    case State::until_end:
      take_body(input);
      input = {};
      return false;
  }
  return false;
}

std::string ResponseReader::describe_fault() const {
  const std::string head = head_.substr(0, shown_bytes_max);
  if (wrong_.empty() || head.empty()) return wrong_ + head;
  return wrong_ + ": " + head;
}

// The head. ---------------------------------------------------------------------------------------

bool ResponseReader::read_head(std::string_view& input) {
  const std::size_t before = head_.size();
  head_.append(input.substr(0, head_bytes_max + 1 - before));
  // Its end may have begun in the last piece.
  const std::size_t end = head_.find(head_end, before < 3 ? 0 : before - 3);
  if (end == std::string::npos) {
    input = {};
    if (head_.size() > head_bytes_max) fail(ResponseFault::malformed);
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
  // RFC 9112 §4: the space behind the status is there even when no reason follows.
  constexpr std::string_view version = "HTTP/1.1 ";
  constexpr std::string_view old_version = "HTTP/1.0 ";  // RFC 9112 §9.3: ends, unless it says not
  closes_ = line.starts_with(old_version);
  const auto status =
      line.size() < version.size() + 4 ? std::nullopt : number_of(line.substr(version.size(), 3));
  if (!(closes_ || line.starts_with(version)) || !status || *status < 100 || *status > 599 ||
      line[version.size() + 3] != ' ' || !http::all_in(line, http::CharacterClass::value)) {
    return fail(ResponseFault::malformed);
  }
  status_ = static_cast<unsigned>(*status);
  while (!head.starts_with("\r\n")) {
    const std::size_t end = head.find("\r\n");
    if (!parse_field(head.substr(0, end))) return fail(ResponseFault::malformed);
    head.remove_prefix(end + 2);
  }
  return !(length_ && chunked_) || fail(ResponseFault::malformed);
}

bool ResponseReader::parse_field(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = http::trim(line.substr(colon + 1));
  if (!http::is_token(name) || !http::all_in(value, http::CharacterClass::value)) return false;
  if (http::equals_ignoring_case(name, "content-length")) {
    const auto length = number_of(value);
    // RFC 9110 §8.6: the same length twice is that length.
    if (!length || (length_ && *length_ != *length)) return false;
    length_ = length;
    return true;
  }
  if (http::equals_ignoring_case(name, "transfer-encoding")) {
    if (chunked_ || !http::equals_ignoring_case(value, "chunked")) return false;
    chunked_ = true;
  } else if (http::equals_ignoring_case(name, "connection")) {
    closes_ = lists(value, "close") || (closes_ && !lists(value, "keep-alive"));
  }
  return true;
}

// The body. ---------------------------------------------------------------------------------------

bool ResponseReader::start_body() {
  const bool interim = status_ < 200;
  if (!interim && status_ != reference_->rules.status) {
    wrong_ =
        "expected " + std::to_string(reference_->rules.status) + ", got " + std::to_string(status_);
    return fail(ResponseFault::status);
  }
  if (interim) {
    if (status_ == 101 || length_ || chunked_) return fail(ResponseFault::malformed);
    state_ = State::start;  // the response that was asked for follows
    return false;
  }
  if (reference_->rules.to_head || status_ == 204 || status_ == 304) {
    // What it would have been is not what came.
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
  if (!reference_->rules.closing && !closes_) return fail(ResponseFault::no_length);
  state_ = State::until_end;
  closes_ = true;
  return false;
}

bool ResponseReader::read_body(std::string_view& input) {
  const std::string_view piece = input.substr(0, std::min<std::uint64_t>(left_, input.size()));
  take_body(piece);
  left_ -= piece.size();
  input.remove_prefix(piece.size());
  return left_ == 0 && finish();
}

bool ResponseReader::read_chunks(std::string_view& input) {
  using Kind = http::ChunkedDecoder::Step::Kind;
  for (;;) {
    const auto step = decoder_.next(input);
    take_body(step.data);
    input.remove_prefix(step.consumed);
    if (step.kind == Kind::end) return finish();
    if (step.kind == Kind::refused) return fail(ResponseFault::malformed);
    if (step.kind == Kind::need_more) return false;
  }
}

void ResponseReader::take_body(std::string_view piece) {
  constexpr std::uint64_t compared_max = ResponseReference::body_bytes_max;
  const std::uint64_t at = body_bytes_;
  body_bytes_ += piece.size();
  if (reference_->rules.bodies_vary || at >= compared_max) return;
  piece = piece.substr(0, static_cast<std::size_t>(compared_max - at));
  if (first_ || reference_->rules.numbering) {
    first_body_.append(piece);
  } else {
    const std::string_view body = reference_->body;
    const auto begin = static_cast<std::size_t>(std::min<std::uint64_t>(at, body.size()));
    compare(at, body.substr(begin), piece);
  }
}

/// Where one is longer, its length tells.
void ResponseReader::compare(std::uint64_t at, std::string_view expected, std::string_view found) {
  const std::size_t size = std::min(expected.size(), found.size());
  const auto [wanted, got] =
      std::mismatch(expected.begin(), expected.begin() + size, found.begin());
  const auto same = static_cast<std::size_t>(wanted - expected.begin());
  if (same != size) differs_at(at + same, *wanted, *got);
}

void ResponseReader::differs_at(std::uint64_t at, char expected, char found) {
  if (!difference_.empty()) return;
  difference_ = "byte " + std::to_string(at) + " of the body: expected " + shown(expected) +
                ", got " + shown(found);
}

bool ResponseReader::check_length(std::uint64_t expected) {
  if (body_bytes_ == expected) return true;
  wrong_ = "expected a body of " + std::to_string(expected) + " bytes, got " +
           std::to_string(body_bytes_);
  return fail(ResponseFault::length);
}

bool ResponseReader::finish() {
  ResponseReference& reference = *reference_;
  state_ = State::start;
  const auto& asked = reference.rules.body_bytes;
  if (asked && !check_length(*asked)) return false;
  if (reference.rules.bodies_vary) return true;
  if (reference.rules.numbering && !check_number()) return false;
  if (!reference.known) {
    reference.known = true;
    reference.body = first_body_;
    reference.body_bytes = body_bytes_;
    return true;
  }
  if (!check_length(reference.body_bytes)) return false;
  // Another connection's response may have become the reference since this one began.
  if (first_) compare(0, reference.body, first_body_);
  if (difference_.empty()) return true;
  wrong_ = difference_;
  return fail(ResponseFault::body);
}

/// Then makes the body as it would be with the reference's number, so that the rest is compared.
bool ResponseReader::check_number() {
  const Numbering& numbering = reference_->rules.numbering;
  const std::string number = numbering.text(number_);
  number_ = numbering.next(number_);
  std::size_t& at = reference_->number_at;
  if (!reference_->known) {
    at = first_body_.find(number);
    if (at != std::string::npos) return true;
    wrong_ = "expected " + number + ", got: " + first_body_.substr(0, shown_bytes_max);
    return fail(ResponseFault::number);
  }
  if (!check_length(reference_->body_bytes)) return false;
  if (first_body_.compare(at, numbering.digits, number) != 0) {
    wrong_ = "expected " + number + ", got " + first_body_.substr(at, numbering.digits);
    return fail(ResponseFault::number);
  }
  first_body_.replace(at, numbering.digits, reference_->body, at, numbering.digits);
  compare(0, reference_->body, first_body_);
  return true;
}

std::string_view name_of(ResponseFault fault) noexcept {
  switch (fault) {
    case ResponseFault::none:
      return "none";
    case ResponseFault::malformed:
      return "malformed response";
    case ResponseFault::no_length:
      return "response without length";
    case ResponseFault::status:
      return "wrong status";
    case ResponseFault::length:
      return "wrong length";
    case ResponseFault::body:
      return "wrong body";
    case ResponseFault::number:
      return "number of another request";
    case ResponseFault::unexpected:
      return "unexpected bytes";
  }
  return "unknown";
}

}  // namespace weir::bench
