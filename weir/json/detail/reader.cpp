// The part of Reader for structs, arrays, literals, skipping and errors.
#include "weir/json/detail/reader.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <utility>

namespace weir::json {
namespace {

constexpr std::size_t depth_limit = 1000;

/// The limits of what an error shows of the text.
constexpr std::size_t key_shown_max = 64;
constexpr std::size_t path_max = 512;

bool is_word_character(char each) noexcept {
  return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
         (each >= '0' && each <= '9') || each == '_' || each == '-';
}

/// Returns `.name`, or `["any name"]` without characters that a log or a terminal might act on.
std::string path_part(std::string_view name) {
  const bool cut = name.size() > key_shown_max;
  name = name.substr(0, key_shown_max);
  std::string part;
  if (!cut && !name.empty() && std::all_of(name.begin(), name.end(), is_word_character)) {
    part = ".";
    return part.append(name);
  }
  part = "[\"";
  for (const char each : name) {
    if (each == '"' || each == '\\') part += '\\';
    part += each >= ' ' && each <= '~' ? each : '?';
  }
  return part.append(cut ? "...\"]" : "\"]");
}

/// Returns a name as a part of a JSON pointer (RFC 6901 §3).
std::string pointer_part(std::string_view name) {
  std::string part("/");
  for (const char each : name) {
    if (each == '~' || each == '/') {
      part.append(each == '~' ? "~0" : "~1");
    } else {
      part += each;
    }
  }
  return part;
}

/// Returns the name of the value that the text begins with; empty if it begins no value.
std::string_view name_of_first(std::string_view text, Kind kind) noexcept {
  switch (kind) {
    case Kind::null:
      return text.starts_with("null") ? "null" : "";
    case Kind::boolean:
      return text.starts_with("true") ? "true" : text.starts_with("false") ? "false" : "";
    case Kind::number:
      return "a number";
    case Kind::text:
      return "a string";
    case Kind::array:
      return "an array";
    case Kind::object:
      return "an object";
    case Kind::other:
      break;
  }
  return {};
}

Kind kind_of(char first) noexcept {
  switch (first) {
    case 'n':
      return Kind::null;
    case 't':
    case 'f':
      return Kind::boolean;
    case '"':
      return Kind::text;
    case '[':
      return Kind::array;
    case '{':
      return Kind::object;
    case '-':
      return Kind::number;
    default:
      return first >= '0' && first <= '9' ? Kind::number : Kind::other;
  }
}

}  // namespace

/// One step of a path, for readers and for a JSON pointer.
struct Reader::PathPart {
  std::string shown;
  std::string pointer;
};

Reader::PathPart Reader::part_of(std::string_view name) {
  return {path_part(name), pointer_part(name)};
}

Reader::PathPart Reader::part_of(std::size_t index) {
  const std::string number = std::to_string(index);
  return {"[" + number + "]", "/" + number};
}

/// Adds a part to the front of an error's path. A path that is too long keeps its inner end, which
/// says more. A pointer without its start would name another value, so it loses its inner end.
void Reader::prepend(Error& error, const PathPart& part) {
  if (error.pointer.size() + part.pointer.size() > path_max) error.pointer.clear();
  if (part.pointer.size() <= path_max) error.pointer.insert(0, part.pointer);
  constexpr std::string_view cut = "...";
  std::string& path = error.path;
  if (path.starts_with(cut)) return;
  if (path.size() + part.shown.size() > path_max) {
    path.insert(0, cut);
    return;
  }
  if (!path.empty() && path.front() != '[') path.insert(0, 1, '.');
  path.insert(0, std::string_view(part.shown).substr(part.shown.front() == '.' ? 1 : 0));
}

Reader::Reader(std::string_view text, const ReadOptions& options, std::size_t errors_max) noexcept
    : start_(text.data()),
      position_(text.data()),
      end_(text.data() + text.size()),
      text_start_(text.data()),
      options_(options),
      errors_max_(errors_max) {
  options_.depth_max = std::min(options_.depth_max, depth_limit);
}

bool Reader::begin() {
  if (left() > options_.text_bytes_max) {
    return fail_at(position_, "a text that is too long", Errc::limit_reached);
  }
  return !take_literal("\xEF\xBB\xBF") || fail_at(start_, "a byte order mark");
}

Kind Reader::kind() noexcept {
  skip_space();
  return position_ == end_ ? Kind::other : kind_of(*position_);
}

void Reader::skip_more_space() noexcept {
  while (position_ != end_ &&
         (*position_ == ' ' || *position_ == '\n' || *position_ == '\r' || *position_ == '\t')) {
    ++position_;
  }
}

bool Reader::take_literal(std::string_view word) noexcept {
  if (left() < word.size() || std::memcmp(position_, word.data(), word.size()) != 0) return false;
  position_ += word.size();
  return true;
}

bool Reader::read(bool& value) {
  skip_space();
  if (take_literal("true")) {
    value = true;
  } else if (take_literal("false")) {
    value = false;
  } else {
    return fail_expected("true or false");
  }
  return true;
}

bool Reader::take_null() noexcept {
  skip_space();
  return at('n') && take_literal("null");
}

bool Reader::enter() {
  if (++depth_ <= options_.depth_max) return true;
  return fail_at(position_ - 1, "nested too deeply", Errc::limit_reached);
}

bool Reader::open(char bracket, std::string_view expected) {
  skip_space();
  if (!at(bracket)) return fail_expected(expected);
  ++position_;
  return enter();
}

/// next_item() for the first item, and if blanks or the end come first.
bool Reader::next_item_slow(std::size_t index, char close) {
  skip_space();
  if (at(close)) {
    ++position_;
    --depth_;
    return false;
  }
  if (index == 0) return true;
  if (!at(',')) return fail_expected(close == ']' ? "',' or ']'" : "',' or '}'");
  ++position_;
  skip_space();
  return !at(close) || fail("a trailing comma");
}

bool Reader::fail_charge() {
  return fail_at(position_, "too many elements", Errc::limit_reached);
}

bool Reader::read_colon() {
  skip_space();
  if (!at(':')) return fail_expected("':'");
  ++position_;
  return true;
}

bool Reader::read_key(std::string& key) {
  return read_text(&key, "a name in quotes") && read_colon();
}

bool Reader::next_field(const FieldTable& table, FieldCursor& cursor) {
  using State = FieldCursor::State;
  std::string decoded;
  for (; cursor.state != State::closed && cursor.state != State::failed;) {
    const bool first = cursor.state == State::first_key;
    if (cursor.state == State::separator || first) {
      const bool more = next_item(first ? 0 : 1, '}');
      if (!more) {
        cursor.state = ok() ? State::closed : State::failed;
        break;
      }
    }
    cursor.state = State::failed;
    skip_space();
    if (at('}')) return fail("a trailing comma");
    const char* const start = position_;
    std::string_view key;
    if (!read_key_in_place(decoded, key)) return false;
    const auto found = std::find(table.names.begin(), table.names.end(), key);
    const auto index = static_cast<std::uint32_t>(found - table.names.begin());
    const bool known = found != table.names.end();
    const std::uint32_t bit = known ? std::uint32_t{1} << index : 0;
    if (known && (cursor.seen & bit) == 0) {
      cursor.index = index;
      cursor.seen |= bit;
      return true;
    }
    if (known || options_.unknown_fields == UnknownFields::refuse) {
      fail_unknown(start, key, known ? "given twice" : "unknown field");
      if (!keep_error()) return false;
    }
    if (!skip_value()) return failed_in_key(key);
    cursor.state = State::separator;
  }
  return false;
}

bool Reader::finish_fields(const FieldTable& table, const FieldCursor& cursor) {
  if (cursor.state == FieldCursor::State::failed) return false;
  std::uint32_t missing = table.required & ~cursor.seen;
  if (missing == 0 || keeps_missing_fields()) return true;
  for (;;) {
    const auto index = static_cast<std::size_t>(std::countr_zero(missing));
    fail_unknown(position_ - 1, table.names[index], "missing");
    missing &= missing - 1;
    if (missing == 0 || !keep_error()) return false;
  }
}

std::size_t Reader::choose(std::span<const FieldTable> tables) {
  const char* const position = position_;
  const std::size_t depth = depth_;
  std::uint32_t candidates = (std::uint32_t{1} << tables.size()) - 1;
  std::array<std::uint32_t, 32> seen{};
  if (!open_object()) return tables.size();
  std::string decoded;
  for (std::size_t item = 0; next_item(item, '}'); ++item) {
    const char* const start = position_;
    std::string_view key;
    if (!read_key_in_place(decoded, key)) return tables.size();
    std::uint32_t having = 0;
    for (std::size_t index = 0; index < tables.size(); ++index) {
      const auto& names = tables[index].names;
      const auto found = std::find(names.begin(), names.end(), key);
      if (found == names.end()) continue;
      having |= std::uint32_t{1} << index;
      seen[index] |= std::uint32_t{1} << (found - names.begin());
    }
    const bool known = having != 0 || options_.unknown_fields == UnknownFields::refuse;
    if (known && (candidates & having) == 0) {
      fail_unknown(start, key, "none of the alternatives has all these fields");
      return tables.size();
    }
    if (known) candidates &= having;
    if (std::has_single_bit(candidates)) break;
    if (!skip_value()) {
      failed_in_key(key);
      return tables.size();
    }
  }
  if (!ok()) return tables.size();
  position_ = position;
  depth_ = depth;
  for (std::size_t index = 0; index < tables.size(); ++index) {
    const bool complete = (tables[index].required & ~seen[index]) == 0;
    if ((candidates >> index & 1U) != 0 && complete) return index;
  }
  return static_cast<std::size_t>(std::countr_zero(candidates));
}

bool Reader::skip_scalar() {
  switch (kind()) {
    case Kind::text:
      return read_text(nullptr, {});
    case Kind::number: {
      const char* end = nullptr;
      if (!scan_number(end)) return false;
      position_ = end;
      return true;
    }
    case Kind::null:
      return take_null() || fail_expected("a value");
    default: {
      bool value = false;
      if (kind() == Kind::boolean && read(value)) return true;
      return ok() ? fail_expected("a value") : false;
    }
  }
}

bool Reader::skip_value() {
  const std::size_t depth = depth_;
  std::bitset<depth_limit + 1> objects;
  bool opened = false;  // the next value is the first of its array or object
  for (;;) {
    const Kind next = kind();
    if (next == Kind::array || next == Kind::object) {
      ++position_;
      if (!enter()) return false;
      objects[depth_] = next == Kind::object;
      opened = true;
    } else {
      if (!skip_scalar()) return false;
      opened = false;
    }
    for (; depth_ > depth; opened = false) {
      const bool object = objects[depth_];
      if (next_item(opened ? 0 : 1, object ? '}' : ']')) {
        if (object && !(read_text(nullptr, "a name in quotes") && read_colon())) return false;
        break;
      }
      if (!ok()) return false;
    }
    if (depth_ == depth) return true;
  }
}

bool Reader::finish() {
  skip_space();
  return position_ == end_ || fail_expected("nothing more");
}

bool Reader::fail_at(const char* position, std::string_view what, Errc code) {
  error_.what = what;
  error_.offset = static_cast<std::size_t>(position - start_);
  error_.code = code;
  return false;
}

bool Reader::fail_unknown(const char* position, std::string_view key, std::string_view what) {
  fail_at(position, what);
  return failed_in_key(key);
}

bool Reader::fail_expected(std::string_view expected) {
  std::string what("expected ");
  what.append(expected).append(", found ");
  if (position_ == end_) return fail(what.append("the end of the text"));
  const std::string_view found = name_of_first({position_, left()}, kind_of(*position_));
  if (!found.empty()) return fail(what.append(found));
  if (*position_ > ' ' && *position_ <= '~') {
    return fail(what.append("'").append(1, *position_).append("'"));
  }
  constexpr std::string_view digits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(*position_);
  what.append("the byte 0x").append(1, digits[code >> 4]).append(1, digits[code & 15U]);
  return fail(what);
}

bool Reader::fail_rule(const Mark& mark, std::string_view expected) {
  std::string what("expected ");
  what.append(expected).append(", found ");
  const std::string_view found(mark.position, static_cast<std::size_t>(position_ - mark.position));
  for (const char each : found.substr(0, key_shown_max)) {
    what += each >= ' ' && each <= '~' ? each : '?';
  }
  if (found.size() > key_shown_max) what.append("...");
  return fail_at(mark.position, what);
}

/// Keeps the present error if the limit allows it. Returns false if it remains the present error.
bool Reader::keep_error() {
  if (errors_.size() + 1 >= errors_max_ || error_.code == Errc::limit_reached) return false;
  errors_.push_back(std::move(error_));
  error_ = Error();
  return true;
}

bool Reader::recover(const PathPart& part, const Mark& mark) {
  for (std::size_t index = mark.errors; index < errors_.size(); ++index) {
    prepend(errors_[index], part);
  }
  if (ok()) return true;
  prepend(error_, part);
  // Each enclosing value of a malformed one is malformed, so only the first is scanned to its end.
  if (malformed_ || !keep_error()) return false;
  position_ = mark.position;
  depth_ = mark.depth;
  if (skip_value()) return true;
  // The error in the value remains the last one.
  malformed_ = true;
  error_ = std::move(errors_.back());
  errors_.pop_back();
  return false;
}

bool Reader::recover_in_field(std::string_view name, const Mark& mark) {
  return recover(part_of(name), mark);
}

bool Reader::recover_in_element(std::size_t index, const Mark& mark) {
  return recover(part_of(index), mark);
}

std::vector<Error> Reader::errors() {
  if (!ok()) errors_.push_back(std::move(error_));
  return std::move(errors_);
}

bool Reader::failed_in_key(std::string_view key) {
  prepend(error_, part_of(key));
  return false;
}

bool Reader::failed_in_element(std::size_t index) {
  prepend(error_, part_of(index));
  return false;
}

}  // namespace weir::json
