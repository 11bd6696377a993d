// The resumable parser of request heads.
#include "weir/http/detail/h1/parser.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "weir/http/detail/h1/framing.hpp"
#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/detail/simd_block.hpp"

namespace weir::http {
namespace {

constexpr std::uint32_t limit_max = 16 * 1024 * 1024;
constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();
// The longest method of IANA's registry.
constexpr std::size_t registered_method_max = std::string_view("UPDATEREDIRECTREF").size();
constexpr std::string_view version_pattern = "HTTP/0.0\r\n";  // '0' stands for any digit

/// Trims a text that usually starts with one space and ends with none. HTAB is the only control
/// character that it may contain.
[[gnu::always_inline]] inline std::string_view trim_value(const char* start, const char* end) {
  const auto blank = [](char each) { return static_cast<unsigned char>(each) <= ' '; };
  if (start != end && *start == ' ') ++start;
  if (start != end && (blank(*start) || blank(end[-1]))) return trim(between(start, end));
  return between(start, end);
}

/// Returns the path for RequestHead::path(), which must be a part of the head's bytes. The "/" of
/// an absolute form without a path is taken from its "//".
std::string_view path_of(const Target& target, std::string_view text) noexcept {
  if (target.form != TargetForm::absolute || !target.path.empty()) return target.path;
  return text.substr(text.find('/'), 1);
}

}  // namespace

/// Returns the first byte from `position` on that no target has. parse_target() checks the rest.
[[gnu::noinline]] const char* HeadParser::find_target_end(const char* base, const char* position,
                                                          const char* end) noexcept {
  return find_stop(base, position, end, [](const SimdBlock& each) { return each.not_target(); });
}

/// The position of parse_resumable(). It stays in registers, so each function that takes it by
/// reference must be inlined.
struct HeadParser::Cursor {
  /// Limits the part of the head that starts here to `bytes` bytes.
  void limit(std::size_t bytes) noexcept {
    end_max = static_cast<std::size_t>(position - base) + bytes;
    end = base + std::min(size, end_max);
  }

  std::size_t left() const noexcept { return static_cast<std::size_t>(end - position); }

  MessageHead::Slice slice(std::string_view text) const noexcept {
    return {static_cast<std::uint32_t>(text.data() - base),
            static_cast<std::uint32_t>(text.size())};
  }

  const char* base;      ///< the first byte of the input
  std::size_t size;      ///< the size of the input
  std::size_t end_max;   ///< the number of bytes of the input that the limit allows to read
  const char* end;       ///< the end of these bytes
  const char* position;  ///< the next byte to read
  const char* mark;      ///< the first byte of the current token
};

HeadParser::HeadParser(const HeadLimits& limits, HostLineCache* host_line_cache) noexcept
    : limits_{std::min(limits.request_line_max, limit_max),
              std::min(limits.headers_bytes_max, limit_max),
              std::min(limits.headers_max, limit_max), std::min(limits.empty_lines_max, limit_max)},
      host_line_cache_(host_line_cache),
      fast_headers_max_(std::min(limits.headers_max, MessageHead::inline_max)),
      end_max_(unlimited) {}

void HeadParser::reset() noexcept {
  position_ = 0;
  mark_ = 0;
  end_max_ = unlimited;
  empty_lines_ = 0;
  stage_ = Stage::start;
  error_ = ParseError::none;
}

HeadParser::Step HeadParser::fail_with(ParseError error) noexcept {
  error_ = error;
  return Step::failed;
}

/// Skips the empty lines at the cursor; usually there are none.
[[gnu::always_inline]] inline HeadParser::Step HeadParser::skip_empty_lines(Cursor& at) noexcept {
  while (at.position != at.end) {
    if (*at.position != '\r') {
      return *at.position == '\n' ? fail_with(ParseError::bad_line_end) : Step::done;
    }
    if (at.left() < line_end.size()) return Step::need_more;
    if (at.position[1] != '\n') return fail_with(ParseError::bad_line_end);
    if (++empty_lines_ > limits_.empty_lines_max)
      return fail_with(ParseError::too_many_empty_lines);
    at.position += line_end.size();
  }
  return Step::need_more;
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::read_method(Cursor& at,
                                                                       MessageHead& head) noexcept {
  while (at.position != at.end && is_in(*at.position, CharClass::token)) ++at.position;
  if (at.position == at.end) return Step::need_more;
  if (*at.position != ' ' || at.position == at.mark) {
    return fail_with(error_at(*at.position, ParseError::bad_method));
  }
  const std::string_view text = between(at.mark, at.position);
  head.info_.method = method_of(text);
  head.info_.method_text = at.slice(text);
  ++at.position;
  return Step::done;
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::read_target(Cursor& at,
                                                                       MessageHead& head) noexcept {
  at.position = find_target_end(at.base, at.position, at.end);
  if (at.position == at.end) return Step::need_more;
  if (*at.position != ' ') return fail_with(error_at(*at.position, ParseError::bad_target));
  const std::string_view text = between(at.mark, at.position);
  ++at.position;
  return finish_target(text, head);
}

HeadParser::Step HeadParser::finish_target(std::string_view text, MessageHead& head) noexcept {
  Target target;
  const ParseError error = parse_target(head.info_.method, text, target);
  if (error != ParseError::none) {
    const bool preface = text == "*" && head.view(head.info_.method_text) == "PRI";
    if (!preface) return fail_with(error);  // read_version() rejects "PRI *"
  }
  head.info_.target = head.slice_of(text);
  head.info_.form = target.form;
  head.info_.path = head.slice_of(path_of(target, text));
  head.info_.query = head.slice_of(target.query);
  head.info_.has_query = target.has_query;
  head.info_.path_has_escapes = target.path_has_escapes;
  head.info_.authority = head.slice_of(target.authority);
  return Step::done;
}

/// Compares the available bytes of the version with the pattern. Each call starts at the
/// beginning, because the version is short.
[[gnu::always_inline]] inline HeadParser::Step HeadParser::read_version(
    Cursor& at, MessageHead& head) noexcept {
  const std::string_view there = between(at.position, at.end);
  for (std::size_t index = 0; index < std::min(there.size(), version_pattern.size()); ++index) {
    const char expected = version_pattern[index];
    const bool fits =
        expected == '0' ? is_in(there[index], CharClass::digit) : there[index] == expected;
    if (fits) continue;
    if (expected == '\n') return fail_with(ParseError::bad_line_end);
    return fail_with(error_at(there[index], ParseError::bad_version));
  }
  if (there.size() < version_pattern.size()) return Step::need_more;
  const char major = there[5];
  const char minor = there[7];
  if (head.view(head.info_.method_text) == "PRI" && head.info_.form == TargetForm::asterisk) {
    return fail_with(major == '2' && minor == '0' ? ParseError::http2_preface
                                                  : ParseError::bad_target_form);
  }
  if (major != '1') return fail_with(ParseError::unsupported_version);
  head.info_.version_minor = minor == '0' ? 0 : 1;
  at.position += version_pattern.size();
  return Step::done;
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::start_line(Cursor& at,
                                                                      MessageHead& head) noexcept {
  if (at.position == at.end) return Step::need_more;
  const char first = *at.position;
  if (first == '\r') {
    if (at.left() < line_end.size()) return Step::need_more;
    if (at.position[1] != '\n') return fail_with(ParseError::bad_line_end);
    at.position += line_end.size();
    return finish(head);
  }
  if (is_space(first)) return fail_with(ParseError::folded_line);
  const bool is_full = head.info_.header_count == head.capacity_;
  if (head.info_.header_count == limits_.headers_max || (is_full && !head.grow()))
    return fail_with(ParseError::too_many_headers);
  return Step::done;
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::read_name(Cursor& at,
                                                                     MessageHead& head) noexcept {
  while (true) {
    at.position = find_stop(at.base, at.position, at.end,
                            [](const SimdBlock& block) { return block.not_plain_name(); });
    if (at.position == at.end) return Step::need_more;
    if (!is_in(*at.position, CharClass::token)) break;
    ++at.position;
  }
  if (*at.position != ':' || at.position == at.mark) {
    const bool space = is_space(*at.position) && at.position != at.mark;
    return fail_with(space ? ParseError::space_before_colon
                           : error_at(*at.position, ParseError::bad_header_name));
  }
  head.headers_[head.info_.header_count].name = at.slice(between(at.mark, at.position));
  ++at.position;
  return Step::done;
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::read_value(Cursor& at,
                                                                      MessageHead& head) noexcept {
  while (true) {
    at.position = find_stop(at.base, at.position, at.end,
                            [](const SimdBlock& block) { return block.controls(); });
    if (at.position == at.end) return Step::need_more;
    if (*at.position != '\t') break;
    ++at.position;
  }
  if (*at.position != '\r') return fail_with(error_at(*at.position, ParseError::bad_header_value));
  if (at.left() < line_end.size()) return Step::need_more;
  if (at.position[1] != '\n') return fail_with(ParseError::bad_line_end);
  const std::string_view value = trim_value(at.mark, at.position);
  at.position += line_end.size();
  MessageHead::HeaderSlices& header = head.headers_[head.info_.header_count++];
  header.value = at.slice(value);
  if (!may_be_known_header(header.name.length)) return Step::done;
  return handle_header({at.base + header.name.offset, header.name.length}, value, head);
}

/// Reads until the head ends or is invalid, or the input ends. Each part starts at the cursor's
/// mark and can be resumed in its middle.
[[gnu::always_inline]] inline HeadParser::Step HeadParser::run(Stage& stage, Cursor& at,
                                                               MessageHead& head) noexcept {
  while (true) {
    Step step = Step::done;
    switch (stage) {
      case Stage::start:
        head.info_ = {};
        if ((step = skip_empty_lines(at)) != Step::done) return step;
        at.limit(limits_.request_line_max + line_end.size());
        stage = Stage::method;
        at.mark = at.position;
        [[fallthrough]];
      case Stage::method:
        if ((step = read_method(at, head)) != Step::done) return step;
        stage = Stage::target;
        at.mark = at.position;
        [[fallthrough]];
      case Stage::target:
        if ((step = read_target(at, head)) != Step::done) return step;
        stage = Stage::version;
        [[fallthrough]];
      case Stage::version:
        if ((step = read_version(at, head)) != Step::done) return step;
        at.limit(limits_.headers_bytes_max);
        stage = Stage::line;
        [[fallthrough]];
      case Stage::line:
        if (const FastPathLines lines = read_lines_fast(at.position, at.end, head); true) {
          at.position = lines.position;
          if (lines.step != Step::done) return lines.step;
        }
        if ((step = start_line(at, head)) != Step::done) return step;
        stage = Stage::name;
        at.mark = at.position;
        [[fallthrough]];
      case Stage::name:
        if ((step = read_name(at, head)) != Step::done) return step;
        stage = Stage::value;
        at.mark = at.position;
        [[fallthrough]];
      case Stage::value:
        if ((step = read_value(at, head)) != Step::done) return step;
        stage = Stage::line;
    }
  }
}

/// Returns the reason why a head that reached a limit in this stage is rejected. A request line is
/// too long because of its target unless its method is longer than any that a server implements.
ParseError HeadParser::limit_error(Stage stage, const Cursor& at,
                                   const MessageHead& head) noexcept {
  if (stage >= Stage::line) return ParseError::headers_too_long;
  const std::size_t method_size = stage == Stage::method
                                      ? static_cast<std::size_t>(at.position - at.mark)
                                      : head.view(head.info_.method_text).size();
  return method_size > registered_method_max ? ParseError::method_too_long
                                             : ParseError::request_line_too_long;
}

/// Parses a head of unusual form or one that arrives in pieces.
[[gnu::noinline]] ParseResult HeadParser::parse_resumable(std::string_view input,
                                                          MessageHead& head) noexcept {
  assert(input.size() >= position_);
  const char* const base = input.data();
  Cursor at{base,
            input.size(),
            end_max_,
            base + std::min<std::size_t>(input.size(), end_max_),
            base + position_,
            base + mark_};
  head.base_ = base;
  Stage stage = stage_;
  const Step step = run(stage, at, head);
  const auto position = static_cast<std::uint32_t>(at.position - base);
  if (step == Step::complete) {
    head.info_.size = position;
    if (stage_ != Stage::start || empty_lines_ > 0) reset();
    return {ParseResult::Kind::complete, ParseError::none, position};
  }
  stage_ = stage;
  position_ = position;
  mark_ = static_cast<std::uint32_t>(at.mark - base);
  end_max_ = static_cast<std::uint32_t>(at.end_max);
  if (step == Step::need_more) {
    if (input.size() < at.end_max) return {};
    fail_with(limit_error(stage, at, head));
  }
  return {ParseResult::Kind::error, error_, 0};
}

}  // namespace weir::http
