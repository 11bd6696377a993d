#include "weir/http/detail/h1/parser.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/simd_block.hpp"
#include "weir/http/detail/h1/framing.hpp"

namespace weir::http {
namespace {

constexpr std::uint32_t limit_max = 16 * 1024 * 1024;
constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();
constexpr std::string_view line_end = "\r\n";
constexpr std::string_view version_pattern = "HTTP/0.0\r\n";  // '0' stands for any digit

/// Why a line may not have this byte, which is neither allowed where it stands nor ends anything.
Refusal blame(char character, Refusal otherwise) noexcept {
  return character == '\r' || character == '\n' ? Refusal::bad_line_end : otherwise;
}

std::string_view between(const char* start, const char* end) noexcept {
  return {start, static_cast<std::size_t>(end - start)};
}

/// trim() for what usually starts with one space and ends with none. There are no other control
/// characters in it than HTAB.
[[gnu::always_inline]] inline std::string_view trim_value(const char* start, const char* end) {
  const auto blank = [](char each) { return static_cast<unsigned char>(each) <= ' '; };
  if (start != end && *start == ' ') ++start;
  if (start != end && (blank(*start) || blank(end[-1]))) return trim(between(start, end));
  return between(start, end);
}

/// The path as RequestHead::path() shows it, which has to be a part of the head's bytes. The "/"
/// of an absolute form without a path is found in its "//".
std::string_view path_of(const Target& target, std::string_view text) noexcept {
  if (target.form == TargetForm::asterisk) return text;
  if (target.form != TargetForm::absolute || !target.path.empty()) return target.path;
  return text.substr(text.find('/'), 1);
}

}  // namespace

/// The first byte from `position` on that may not stand in a target that starts at `mark`. The
/// brackets of an IP literal may, unless it is a path; parse_target() looks where they are.
[[gnu::noinline]] const char* HeadParser::find_target_end(const char* base, const char* mark,
                                                          const char* position,
                                                          const char* end) noexcept {
  while (true) {
    position = find_stop(base, position, end, [](const Block& each) { return each.not_target(); });
    if (position == end || *mark == '/' || (*position != '[' && *position != ']')) return position;
    ++position;
  }
}

/// Where parse_further() is. Lives in registers: no function that takes it by reference may stay a
/// call.
struct HeadParser::Cursor {
  /// Allows `bytes` from here on, for the part of the head that starts here.
  void limit(std::size_t bytes) noexcept {
    end_max = static_cast<std::size_t>(position - base) + bytes;
    end = base + std::min(size, end_max);
  }

  std::size_t left() const noexcept { return static_cast<std::size_t>(end - position); }

  RequestHead::Slice slice(std::string_view text) const noexcept {
    return {static_cast<std::uint32_t>(text.data() - base),
            static_cast<std::uint32_t>(text.size())};
  }

  const char* base;      ///< the input's first byte
  std::size_t size;      ///< the input's
  std::size_t end_max;   ///< how many bytes of the input the limit allows to look at
  const char* end;       ///< behind the last of these
  const char* position;  ///< the next byte to look at
  const char* mark;      ///< the first byte of the token that is being read
};

HeadParser::HeadParser(const HeadLimits& limits, KnownHost* known_host) noexcept
    : limits_{std::min(limits.request_line_max, limit_max),
              std::min(limits.fields_bytes_max, limit_max),
              std::min<std::uint32_t>(limits.fields_max, RequestHead::fields_max),
              std::min(limits.empty_lines_max, limit_max)},
      known_host_(known_host),
      end_max_(unlimited) {}

void HeadParser::reset() noexcept {
  position_ = 0;
  mark_ = 0;
  end_max_ = unlimited;
  empty_lines_ = 0;
  stage_ = Stage::start;
  refusal_ = Refusal::none;
}

HeadParser::Step HeadParser::refuse(Refusal refusal) noexcept {
  refusal_ = refusal;
  return Step::refused;
}

/// Judges the empty lines at the cursor; usually there are none.
[[gnu::always_inline]] inline HeadParser::Step HeadParser::skip_empty_lines(Cursor& at) noexcept {
  while (at.position != at.end) {
    if (*at.position != '\r') {
      return *at.position == '\n' ? refuse(Refusal::bad_line_end) : Step::done;
    }
    if (at.left() < line_end.size()) return Step::starved;
    if (at.position[1] != '\n') return refuse(Refusal::bad_line_end);
    if (++empty_lines_ > limits_.empty_lines_max) return refuse(Refusal::too_many_empty_lines);
    at.position += line_end.size();
  }
  return Step::starved;
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::read_method(Cursor& at,
                                                                       RequestHead& head) noexcept {
  constexpr std::string_view usual = "GET ";
  if (static_cast<std::size_t>(at.end - at.mark) >= usual.size() &&
      std::memcmp(at.mark, usual.data(), usual.size()) == 0) {
    head.about_.method = Method::get;
    head.about_.method_text = at.slice({at.mark, usual.size() - 1});
    at.position = at.mark + usual.size();
    return Step::done;
  }
  while (at.position != at.end && is_in(*at.position, CharacterClass::token)) ++at.position;
  if (at.position == at.end) return Step::starved;
  if (*at.position != ' ' || at.position == at.mark) {
    return refuse(blame(*at.position, Refusal::bad_method));
  }
  const std::string_view text = between(at.mark, at.position);
  head.about_.method = method_of(text);
  head.about_.method_text = at.slice(text);
  ++at.position;
  return Step::done;
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::read_target(Cursor& at,
                                                                       RequestHead& head) noexcept {
  constexpr std::string_view usual = "/ ";
  if (static_cast<std::size_t>(at.end - at.mark) >= usual.size() &&
      std::memcmp(at.mark, usual.data(), usual.size()) == 0 &&
      head.about_.method != Method::connect) {
    head.about_.target = head.about_.path = at.slice({at.mark, 1});
    at.position = at.mark + usual.size();
    return Step::done;
  }
  at.position = find_target_end(at.base, at.mark, at.position, at.end);
  if (at.position == at.end) return Step::starved;
  if (*at.position != ' ') return refuse(blame(*at.position, Refusal::bad_target));
  const std::string_view text = between(at.mark, at.position);
  ++at.position;
  return finish_target(text, head);
}

HeadParser::Step HeadParser::finish_target(std::string_view text, RequestHead& head) noexcept {
  Target target;
  const Refusal refusal = parse_target(head.about_.method, text, target);
  if (refusal != Refusal::none) {
    const bool preface = text == "*" && head.method_text() == "PRI";
    if (!preface) return refuse(refusal);  // read_rare_version() looks after that one
  }
  head.about_.target = head.slice_of(text);
  head.about_.form = target.form;
  head.about_.path = head.slice_of(path_of(target, text));
  head.about_.query = head.slice_of(target.query);
  head.about_.has_query = target.has_query;
  head.about_.path_has_escapes = target.path_has_escapes;
  head.about_.authority = head.slice_of(target.authority);
  return Step::done;
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::read_version(
    Cursor& at, RequestHead& head) noexcept {
  constexpr std::string_view usual = "HTTP/1.1\r\n";
  static_assert(usual.size() == version_pattern.size());
  if (at.left() >= usual.size() && std::memcmp(at.position, usual.data(), usual.size()) == 0 &&
      head.about_.form != TargetForm::asterisk) {
    head.about_.version_minor = 1;
  } else {
    const Step step = read_rare_version(between(at.position, at.end), head);
    if (step != Step::done) return step;
  }
  at.position += version_pattern.size();
  return Step::done;
}

/// Compares what there is of the version with its pattern, each time from its start: it is short.
HeadParser::Step HeadParser::read_rare_version(std::string_view there, RequestHead& head) noexcept {
  for (std::size_t index = 0; index < std::min(there.size(), version_pattern.size()); ++index) {
    const char expected = version_pattern[index];
    const bool fits =
        expected == '0' ? is_in(there[index], CharacterClass::digit) : there[index] == expected;
    if (!fits) return refuse(blame(there[index], Refusal::bad_version));
  }
  if (there.size() < version_pattern.size()) return Step::starved;
  const char major = there[5];
  const char minor = there[7];
  if (head.method_text() == "PRI" && head.about_.form == TargetForm::asterisk) {
    return refuse(major == '2' && minor == '0' ? Refusal::http2_preface : Refusal::bad_target_form);
  }
  if (major != '1') return refuse(Refusal::unsupported_version);
  head.about_.version_minor = minor == '0' ? 0 : 1;
  return Step::done;
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::start_line(Cursor& at,
                                                                      RequestHead& head) noexcept {
  if (at.position == at.end) return Step::starved;
  const char first = *at.position;
  if (first == '\r') {
    if (at.left() < line_end.size()) return Step::starved;
    if (at.position[1] != '\n') return refuse(Refusal::bad_line_end);
    at.position += line_end.size();
    return finish(head);
  }
  if (is_space(first)) return refuse(Refusal::folded_line);
  if (head.about_.field_count == limits_.fields_max) return refuse(Refusal::too_many_fields);
  return Step::done;
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::read_name(Cursor& at,
                                                                     RequestHead& head) noexcept {
  while (true) {
    at.position = find_stop(at.base, at.position, at.end,
                            [](const Block& block) { return block.not_plain_name(); });
    if (at.position == at.end) return Step::starved;
    if (!is_in(*at.position, CharacterClass::token)) break;
    ++at.position;
  }
  if (*at.position != ':' || at.position == at.mark) {
    const bool space = is_space(*at.position) && at.position != at.mark;
    return refuse(space ? Refusal::space_before_colon
                        : blame(*at.position, Refusal::bad_field_name));
  }
  head.fields_[head.about_.field_count].name = at.slice(between(at.mark, at.position));
  ++at.position;
  return Step::done;
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::read_value(Cursor& at,
                                                                      RequestHead& head) noexcept {
  while (true) {
    at.position = find_stop(at.base, at.position, at.end,
                            [](const Block& block) { return block.controls(); });
    if (at.position == at.end) return Step::starved;
    if (*at.position != '\t') break;
    ++at.position;
  }
  if (*at.position != '\r') return refuse(blame(*at.position, Refusal::bad_field_value));
  if (at.left() < line_end.size()) return Step::starved;
  if (at.position[1] != '\n') return refuse(Refusal::bad_line_end);
  const std::string_view value = trim_value(at.mark, at.position);
  at.position += line_end.size();
  RequestHead::FieldSlices& field = head.fields_[head.about_.field_count++];
  field.value = at.slice(value);
  if (!may_matter(field.name.length)) return Step::done;
  return note_field({at.base + field.name.offset, field.name.length}, value, head);
}

/// Reads until the head ends, is refused, or the input ends. Each part starts at the cursor's
/// mark and may be entered in its middle.
[[gnu::always_inline]] inline HeadParser::Step HeadParser::run(Stage& stage, Cursor& at,
                                                               RequestHead& head) noexcept {
  while (true) {
    Step step = Step::done;
    switch (stage) {
      case Stage::start:
        head.about_ = {};
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
        at.limit(limits_.fields_bytes_max);
        stage = Stage::line;
        [[fallthrough]];
      case Stage::line:
        if (const UsualLines lines = read_usual_lines(at.position, at.end, head); true) {
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

/// What is of an unusual form, or has come in pieces.
[[gnu::noinline]] ParseResult HeadParser::parse_further(std::string_view input,
                                                        RequestHead& head) noexcept {
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
    head.about_.size = position;
    if (stage_ != Stage::start || empty_lines_ > 0) reset();
    return {ParseResult::Kind::complete, Refusal::none, position};
  }
  stage_ = stage;
  position_ = position;
  mark_ = static_cast<std::uint32_t>(at.mark - base);
  end_max_ = static_cast<std::uint32_t>(at.end_max);
  if (step == Step::starved) {
    if (input.size() < at.end_max) return {};
    refuse(stage < Stage::line ? Refusal::request_line_too_long : Refusal::fields_too_long);
  }
  return {ParseResult::Kind::refused, refusal_, 0};
}

}  // namespace weir::http
