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

/// Whether one of the members of a list is `token`, in any letter case.
bool has_member(std::string_view list, std::string_view token) {
  for (;;) {
    const std::size_t comma = list.find(',');
    if (http::equals_ignoring_case(http::trim(list.substr(0, comma)), token)) return true;
    if (comma == list.npos) return false;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

std::optional<std::string> Answer::field(std::string_view name) const {
  std::optional<std::string> joined;
  for (const auto& [each, value] : fields) {
    if (!http::equals_ignoring_case(each, name)) continue;
    joined = joined ? *joined + ", " + value : value;
  }
  return joined;
}

bool AnswerReader::interim() const noexcept {
  return std::ranges::any_of(
      answers_, [](const Answer& each) { return each.status >= 100 && each.status < 200; });
}

void AnswerReader::read(std::string_view input) {
  if (!fault_.empty()) return;
  input_ += input;
  while (fault_.empty() && step()) {
  }
}

void AnswerReader::end() {
  if (!fault_.empty()) return;
  if (state_ == State::until_end) {
    finish();
  } else if (state_ != State::head || !input_.empty()) {
    wrong("an answer that is cut off");
  }
}

void AnswerReader::reset() {
  if (fault_.empty() && state_ == State::until_end) finish();
}

/// Takes a head or a piece of a body; false where there is none.
bool AnswerReader::step() {
  switch (state_) {
    case State::head:
      return read_head();
    case State::counted:
      return read_counted();
    case State::chunks:
      return read_chunks();
    case State::until_end:
      take(input_);
      input_.clear();
      return false;
  }
  return false;
}

bool AnswerReader::read_head() {
  if (input_.empty()) return false;
  constexpr std::string_view begin = "HTTP/1.";
  if (!begin.starts_with(std::string_view(input_).substr(0, begin.size()))) {
    return wrong("bytes that are no answer");
  }
  const std::size_t end = input_.find("\r\n\r\n");
  if (end == input_.npos) {
    return input_.size() > head_bytes_max && wrong("a head that does not end");
  }
  if (answers_.size() == answers_max) return wrong("answers without end");
  Answer& answer = answers_.emplace_back();
  const std::string head = input_.substr(0, end + 2);
  if (!parse_head(head, answer)) return false;
  input_.erase(0, end + 4);
  return start_body(answer);
}

bool AnswerReader::parse_head(std::string_view head, Answer& answer) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  // "HTTP/1.1 200 OK": the reason may be missing, with or without its space.
  const bool minor = line.size() > 8 && http::is_in(line[7], http::CharacterClass::digit);
  const auto status = number(line.substr(std::min<std::size_t>(9, line.size()), 3));
  if (!minor || line[8] != ' ' || !status || *status < 100 || *status > 599 ||
      (line.size() > 12 && line[12] != ' ')) {
    return wrong("no status line");
  }
  answer.status = static_cast<int>(*status);
  for (head.remove_prefix(line.size() + 2); !head.empty();) {
    const std::size_t end = head.find("\r\n");
    if (!parse_field(head.substr(0, end), answer)) return false;
    head.remove_prefix(end + 2);
  }
  const std::string connection = answer.field("Connection").value_or("");
  answer.closes =
      has_member(connection, "close") || (line[7] == '0' && !has_member(connection, "keep-alive"));
  return true;
}

bool AnswerReader::parse_field(std::string_view line, Answer& answer) {
  const std::size_t colon = line.find(':');
  if (colon == line.npos || !http::is_token(line.substr(0, colon))) return wrong("no field");
  const std::string_view value = http::trim(line.substr(colon + 1));
  if (!http::all_in(value, http::CharacterClass::value)) return wrong("controls in a field");
  answer.fields.emplace_back(line.substr(0, colon), value);
  return true;
}

/// RFC 9112, section 6.3.
bool AnswerReader::start_body(Answer& answer) {
  const auto length = answer.field("Content-Length");
  const auto coding = answer.field("Transfer-Encoding");
  const std::string method = finals_ < methods_.size() ? methods_[finals_] : "GET";
  if (length && coding) return wrong("an answer with both lengths");
  if (answer.status < 200 || answer.status == 204) {
    if (length || coding) return wrong("a length in an answer that has no body");
    return finish();
  }
  if (length && !number(*length)) return wrong("a Content-Length that is no number");
  if (method == "HEAD" || answer.status == 304) return finish();
  if (length) {
    left_ = *number(*length);
    state_ = State::counted;
    return left_ != 0 || finish();
  }
  if (coding) {
    if (!http::equals_ignoring_case(*coding, "chunked")) return wrong("an unknown coding");
    decoder_.reset();
    state_ = State::chunks;
    return true;
  }
  answer.closes = answer.until_end = true;
  state_ = State::until_end;
  return true;
}

bool AnswerReader::read_counted() {
  if (input_.empty()) return false;
  const std::size_t size = std::min<std::uint64_t>(left_, input_.size());
  take(std::string_view(input_).substr(0, size));
  input_.erase(0, size);
  left_ -= size;
  return left_ != 0 || finish();
}

bool AnswerReader::read_chunks() {
  using Kind = http::ChunkedDecoder::Step::Kind;
  const http::ChunkedDecoder::Step step = decoder_.next(input_);
  take(step.data);
  input_.erase(0, step.consumed);
  if (step.kind == Kind::refused) return wrong("a broken chunk");
  if (step.kind == Kind::end) return finish();
  return step.kind != Kind::need_more;
}

void AnswerReader::take(std::string_view piece) {
  Answer& answer = answers_.back();
  answer.body_bytes += piece.size();
  answer.body.append(piece.substr(0, Answer::body_kept_max - answer.body.size()));
}

bool AnswerReader::finish() {
  answers_.back().whole = true;
  if (answers_.back().is_final()) ++finals_;
  state_ = State::head;
  return true;
}

bool AnswerReader::wrong(std::string what) {
  fault_ = std::move(what);
  return false;
}

}  // namespace weir::check
