#include "weir/http/h1/parser.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "weir/http/authority.hpp"
#include "weir/http/block.hpp"
#include "weir/http/h1/framing.hpp"

namespace weir::http {
namespace {

constexpr std::uint32_t limit_max = 16 * 1024 * 1024;
constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();
constexpr std::string_view line_end = "\r\n";
constexpr std::string_view version_pattern = "HTTP/0.0\r\n";  // '0' stands for any digit

/// True if `name`, which is a token, is `lower` (letters and '-') in any letter case. Setting bit
/// 0x20 folds letters, and makes no other token character a letter or '-'.
template <std::size_t size>
[[gnu::always_inline]] inline bool is_name(std::string_view name, const char (&lower)[size]) {
  const auto same = [&]<class Word>(std::size_t offset, Word fold) {
    Word bytes;
    Word expected;
    std::memcpy(&bytes, name.data() + offset, sizeof(Word));
    std::memcpy(&expected, lower + offset, sizeof(Word));
    return (bytes | fold) == expected;
  };
  constexpr std::size_t length = size - 1;
  static_assert(length >= 4 && length <= 24);
  constexpr std::uint32_t fold4 = 0x20202020U;
  constexpr std::uint64_t fold8 = 0x2020202020202020U;
  if constexpr (length < 8) {
    return same(0, fold4) && same(length - 4, fold4);
  } else if constexpr (length <= 16) {
    return same(0, fold8) && same(length - 8, fold8);
  } else {
    return same(0, fold8) && same(8, fold8) && same(length - 8, fold8);
  }
}

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

/// a == b without a call for what is not long.
[[gnu::always_inline]] inline bool equal(std::string_view a, std::string_view b) noexcept {
  using Word = std::uint64_t;
  if (a.size() != b.size()) return false;
  if (a.size() < sizeof(Word)) return a == b;
  const auto same_at = [&](std::size_t offset) {
    Word left;
    Word right;
    std::memcpy(&left, a.data() + offset, sizeof(Word));
    std::memcpy(&right, b.data() + offset, sizeof(Word));
    return left == right;
  };
  const std::size_t last = a.size() - sizeof(Word);
  for (std::size_t offset = 0; offset < last; offset += sizeof(Word)) {
    if (!same_at(offset)) return false;
  }
  return same_at(last);
}

/// The path as RequestHead::path() shows it, which has to be a part of the head's bytes. The "/"
/// of an absolute form without a path is found in its "//".
std::string_view path_of(const Target& target, std::string_view text) noexcept {
  if (target.form == TargetForm::asterisk) return text;
  if (target.form != TargetForm::absolute || !target.path.empty()) return target.path;
  return text.substr(text.find('/'), 1);
}

/// The first byte from `position` on that may not stand in a target that starts at `mark`. The
/// brackets of an IP literal may, unless it is a path; parse_target() looks where they are.
[[gnu::noinline]] const char* find_target_end(const char* base, const char* mark,
                                              const char* position, const char* end) noexcept {
  while (true) {
    position = find_stop(base, position, end, [](const Block& each) { return each.not_target(); });
    if (position == end || *mark == '/' || (*position != '[' && *position != ']')) return position;
    ++position;
  }
}

/// True for the usual host with or without a usual port; what is false here is for
/// parse_authority() to decide. `base` is the input's first byte.
[[gnu::noinline]] bool is_plain_authority(const char* base, std::string_view value) noexcept {
  const char* const end = value.data() + value.size();
  const char* colon =
      find_stop(base, value.data(), end, [](const Block& block) { return block.not_plain_host(); });
  if (colon == value.data()) return false;
  if (colon == end) return true;
  const std::string_view port = between(colon + 1, end);
  constexpr std::string_view port_max = "65535";
  const bool in_range =
      port.size() < port_max.size() || (port.size() == port_max.size() && port <= port_max);
  return *colon == ':' && in_range && all_in(port, CharacterClass::digit);
}

}  // namespace

/// Where parse() is. Lives in registers: no function that takes it by reference may stay a call.
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

HeadParser::HeadParser(const HeadLimits& limits) noexcept
    : limits_{std::min(limits.request_line_max, limit_max),
              std::min(limits.fields_bytes_max, limit_max),
              std::min<std::uint32_t>(limits.fields_max, RequestHead::fields_max),
              std::min(limits.empty_lines_max, limit_max)},
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
  return note_field({at.base + field.name.offset, field.name.length}, value, head);
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::note_field(std::string_view name,
                                                                      std::string_view value,
                                                                      RequestHead& head) noexcept {
  constexpr std::uint32_t lengths = 1U << 4 | 1U << 6 | 1U << 7 | 1U << 10 | 1U << 14 | 1U << 17;
  if (name.size() >= 32 || (lengths >> name.size() & 1U) == 0) return Step::done;
  if (name.size() == 4) return is_name(name, "host") ? note_host(value, head) : Step::done;
  return note_rare_field(name, value, head);
}

[[gnu::always_inline]] inline HeadParser::Step HeadParser::note_host(std::string_view value,
                                                                     RequestHead& head) noexcept {
  if (head.about_.has_host) return refuse(Refusal::repeated_host);
  if (!is_plain_authority(head.base_, value) && !parse_authority(value)) {
    return refuse(Refusal::bad_host);
  }
  head.about_.has_host = true;
  if (head.about_.authority.length == 0) head.about_.authority = head.slice_of(value);
  return Step::done;
}

/// Clients say the same Host again and again; a line that was good need not be judged again.
void HeadParser::remember_host(std::string_view line, RequestHead::FieldSlices field,
                               std::uint32_t start) noexcept {
  if (line.size() > known_line_.size()) return;
  std::memcpy(known_line_.data(), line.data(), line.size());
  known_line_size_ = static_cast<std::uint8_t>(line.size());
  field.name.offset -= start;
  field.value.offset -= start;
  known_host_ = field;
}

/// Takes the Host line if it is the one that was good before. Returns whether it was.
[[gnu::always_inline]] inline bool HeadParser::take_known_host(std::string_view text,
                                                               RequestHead& head) noexcept {
  RequestHead::About& about = head.about_;
  if (about.has_host || known_line_size_ == 0 || text.size() < known_line_size_) return false;
  if (!equal(text.substr(0, known_line_size_), {known_line_.data(), known_line_size_})) {
    return false;
  }
  if (about.field_count >= limits_.fields_max) return false;
  const auto start = static_cast<std::uint32_t>(text.data() - head.base_);
  RequestHead::FieldSlices field = known_host_;
  field.name.offset += start;
  field.value.offset += start;
  head.fields_[about.field_count++] = field;
  about.has_host = true;
  if (about.authority.length == 0) about.authority = field.value;
  return true;
}

HeadParser::Step HeadParser::note_rare_field(std::string_view name, std::string_view value,
                                             RequestHead& head) noexcept {
  RequestHead::About& about = head.about_;
  Refusal refusal = Refusal::none;
  switch (name.size()) {
    case 6:
      if (!is_name(name, "expect") || about.version_minor == 0) break;
      if (const Expectation expected = parse_expect(value); expected != Expectation::none) {
        about.expects_continue = true;
        about.expects_other |= expected == Expectation::other;
      }
      break;
    case 7:
      about.has_upgrade |= is_name(name, "upgrade");
      break;
    case 10:
      if (!is_name(name, "connection")) break;
      if (ConnectionOptions options;
          (refusal = parse_connection(value, options)) == Refusal::none) {
        about.close |= options.close;
        about.keep_alive |= options.keep_alive;
        about.upgrade |= options.upgrade;
      }
      break;
    case 14:
      if (!is_name(name, "content-length")) break;
      if (about.has_content_length) return refuse(Refusal::repeated_content_length);
      about.has_content_length = true;
      refusal = parse_content_length(value, about.content_length);
      break;
    case 17:
      if (!is_name(name, "transfer-encoding")) break;
      if (about.chunked) return refuse(Refusal::repeated_transfer_encoding);
      about.chunked = true;
      refusal = about.version_minor == 0 ? Refusal::unexpected_transfer_encoding
                                         : check_transfer_encoding(value);
      break;
    default:
      break;
  }
  return refusal == Refusal::none ? Step::done : refuse(refusal);
}

/// Reads lines of the usual shape that are here whole, without the bookkeeping that others need:
/// "name: value" with one space or none, and no white space at the value's end. Stops in front of
/// the first other one; that is read_name()'s and read_value()'s.
[[gnu::noinline]] HeadParser::UsualLines HeadParser::read_usual_lines(const char* position,
                                                                      const char* end,
                                                                      RequestHead& head) noexcept {
  const char* const base = head.base_;
  const auto blank = [](char each) { return static_cast<unsigned char>(each) <= ' '; };
  while (position != end && !blank(*position)) {
    if (take_known_host(between(position, end), head)) {
      position += known_line_size_;
      continue;
    }
    const bool had_host = head.about_.has_host;
    const char* const colon =
        find_stop(base, position, end, [](const Block& block) { return block.not_plain_name(); });
    if (end - colon < 2 || *colon != ':' || colon == position) break;
    const char* const value = colon[1] == ' ' ? colon + 2 : colon + 1;
    const char* const stop =
        find_stop(base, value, end, [](const Block& block) { return block.controls(); });
    if (end - stop < 2 || stop[0] != '\r' || stop[1] != '\n') break;
    if (stop != value && (blank(*value) || blank(stop[-1]))) break;
    const std::uint32_t count = head.about_.field_count;
    if (count >= limits_.fields_max) break;
    RequestHead::FieldSlices& field = head.fields_[count];
    field = {head.slice_of(between(position, colon)), head.slice_of(between(value, stop))};
    head.about_.field_count = count + 1;
    const char* const line = std::exchange(position, stop + line_end.size());
    const Step step = note_field(between(line, colon), between(value, stop), head);
    if (step != Step::done) return {position, step};
    if (head.about_.has_host != had_host) {
      remember_host(between(line, position), field, static_cast<std::uint32_t>(line - base));
    }
  }
  return {position, Step::done};
}

/// What can only be judged when all fields are known.
[[gnu::always_inline]] inline HeadParser::Step HeadParser::finish(
    const RequestHead& head) noexcept {
  const RequestHead::About& about = head.about_;
  if (about.chunked && about.has_content_length) return refuse(Refusal::both_lengths);
  if (!about.has_host && about.version_minor > 0) return refuse(Refusal::missing_host);
  if (about.expects_other) return refuse(Refusal::unknown_expectation);
  return Step::complete;
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

/// Reads "GET target HTTP/1.1" or the same with POST, if that is what is there, whole. Returns
/// where the lines behind it start, or nullptr: then nothing counts as read.
[[gnu::always_inline]] inline const char* HeadParser::read_usual_request_line(
    std::string_view input, RequestHead& head) noexcept {
  constexpr std::string_view get = "GET ";
  constexpr std::string_view post = "POST ";
  constexpr std::string_view version = "HTTP/1.1\r\n";
  const std::string_view line =
      input.substr(0, std::size_t{limits_.request_line_max} + line_end.size());
  const bool is_get = line.starts_with(get);
  if (!is_get && !line.starts_with(post)) return nullptr;
  const char* const end = line.data() + line.size();
  const char* const target = line.data() + (is_get ? get.size() : post.size());
  if (target == end || *target != '/') return nullptr;
  head.base_ = input.data();
  head.about_ = {};
  head.about_.method = is_get ? Method::get : Method::post;
  head.about_.method_text = head.slice_of(between(line.data(), target - 1));
  const bool root = end - target >= 2 && target[1] == ' ';
  const char* const stop = root ? target + 1 : find_target_end(line.data(), target, target, end);
  if (stop == end || *stop != ' ') return nullptr;
  if (root) {
    head.about_.target = head.about_.path = head.slice_of({target, 1});
  } else if (finish_target(between(target, stop), head) != Step::done) {
    refusal_ = Refusal::none;  // parse_further() will tell
    return nullptr;
  }
  if (!between(stop + 1, end).starts_with(version)) return nullptr;
  head.about_.version_minor = 1;
  return stop + 1 + version.size();
}

ParseResult HeadParser::parse(std::string_view input, RequestHead& head) noexcept {
  assert(refusal_ == Refusal::none);
  if (stage_ != Stage::start || position_ != 0) return parse_further(input, head);
  const char* const lines = read_usual_request_line(input, head);
  if (lines == nullptr) return parse_further(input, head);
  const char* const base = input.data();
  const auto end_max = static_cast<std::size_t>(lines - base) + limits_.fields_bytes_max;
  const char* const end = base + std::min(input.size(), end_max);
  const UsualLines usual = read_usual_lines(lines, end, head);
  const auto position = static_cast<std::uint32_t>(usual.position - base);
  if (usual.step == Step::done && between(usual.position, end).starts_with(line_end) &&
      finish(head) == Step::complete) {
    head.about_.size = position + static_cast<std::uint32_t>(line_end.size());
    return {ParseResult::Kind::complete, Refusal::none, head.about_.size};
  }
  if (refusal_ != Refusal::none) return {ParseResult::Kind::refused, refusal_, 0};
  stage_ = Stage::line;
  position_ = position;
  end_max_ = static_cast<std::uint32_t>(end_max);
  return parse_further(input, head);
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
