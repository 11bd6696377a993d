// Percent decoding, path checks and the parser of request targets.
#include "weir/http/syntax/uri.hpp"

#include <algorithm>
#include <utility>

#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/detail/simd_block.hpp"

namespace weir::http {
namespace {

/// Returns the byte that the "%HH" at `text[index]` encodes, or -1 if the escape is malformed.
int escaped_byte(std::string_view text, std::size_t index) noexcept {
  if (text.size() - index < 3) return -1;
  const int high = hex_value(text[index + 1]);
  const int low = hex_value(text[index + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/// True if the segment decodes to "." or "..". Its escapes must be well-formed.
bool is_dot_segment(std::string_view segment) noexcept {
  int dots = 0;
  for (std::size_t index = 0; index < segment.size(); ++dots) {
    if (segment[index] == '.') {
      index += 1;
    } else if (segment[index] == '%' && escaped_byte(segment, index) == '.') {
      index += 3;
    } else {
      return false;
    }
  }
  return dots == 1 || dots == 2;
}

/// Returns the length of "http://" or "https://" at the start of `text`, or 0.
std::size_t scheme_length(std::string_view text) noexcept {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (equals_ignoring_case(text.substr(0, scheme.size()), scheme)) return scheme.size();
  }
  return 0;
}

void append_escape(std::string& text, char character) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(character);
  text += {'%', digits[byte >> 4U], digits[byte & 15U]};
}

/// Returns the length of the scheme and the authority at the start of a reference.
std::size_t authority_end(std::string_view reference) noexcept {
  constexpr std::string_view delimiters = "/?#";
  const std::size_t colon = reference.find_first_of(":/?#");
  const bool has_scheme = colon < reference.size() && reference[colon] == ':';
  const std::size_t start = has_scheme ? colon + 1 : 0;
  if (!reference.substr(start).starts_with("//")) return start;
  return std::min(reference.find_first_of(delimiters, start + 2), reference.size());
}

/// The kinds of bytes that a path and query contain.
struct Survey {
  void scan(const SimdBlock& block) noexcept {
    valid &= block.not_target() == 0;
    question |= block.equal_to('?') != 0;
    escape |= block.equal_to('%') != 0;
    backslash |= block.equal_to('\\') != 0;
    slash_dot |= (block.equal_to('/') << 1 & block.equal_to('.')) != 0;
  }

  void scan(char previous, char character) noexcept {
    valid &= is_in(character, CharClass::target);
    question |= character == '?';
    escape |= character == '%';
    backslash |= character == '\\';
    slash_dot |= previous == '/' && character == '.';
  }

  bool valid = true;  ///< true while no byte is outside CharClass::target
  bool question = false;
  bool escape = false;
  bool backslash = false;
  bool slash_dot = false;  ///< true if "/." occurs; every raw dot segment starts with it
};

Survey survey(std::string_view text) noexcept {
  Survey seen;
  if (text.size() < SimdBlock::size) {
    char previous = '\0';
    for (char each : text) seen.scan(std::exchange(previous, each), each);
    return seen;
  }
  const char* const last = text.data() + text.size() - SimdBlock::size;
  // Blocks overlap by one byte, because a pair of bytes must not be split between two blocks.
  for (const char* start = text.data(); start < last; start += SimdBlock::size - 1) {
    seen.scan(SimdBlock(start));
  }
  seen.scan(SimdBlock(last));
  return seen;
}

ParseError take_absolute(Method method, std::string_view text, Target& target) noexcept {
  const std::size_t scheme = scheme_length(text);
  if (scheme == 0) return ParseError::bad_target_form;
  target.form = TargetForm::absolute;
  text.remove_prefix(scheme);
  const std::size_t length = std::min(text.find_first_of("/?"), text.size());
  target.authority = text.substr(0, length);
  if (!parse_authority(target.authority)) return ParseError::bad_target_authority;
  text.remove_prefix(length);
  if (text.empty() && method == Method::options) target.form = TargetForm::asterisk;
  return parse_path_and_query(text, target);
}

}  // namespace

ParseError parse_path_and_query(std::string_view text, Target& target) noexcept {
  const Survey seen = survey(text);
  if (!seen.valid) return ParseError::bad_target;
  target.path = text;
  if (seen.question) {
    const std::size_t question = text.find('?');
    target.has_query = true;
    target.path = text.substr(0, question);
    target.query = text.substr(question + 1);
  }
  if (!seen.escape && !seen.slash_dot && !seen.backslash) return ParseError::none;
  // Some servers take a backslash in a path for a slash.
  if (target.path.find('\\') != std::string_view::npos) return ParseError::bad_target;
  target.path_has_escapes = target.path.find('%') != std::string_view::npos;
  return check_path(target.path);
}

std::optional<std::size_t> percent_decode(std::string_view in, char* out) noexcept {
  char* const start = out;
  for (std::size_t index = 0; index < in.size(); ++index) {
    if (in[index] != '%') {
      *out++ = in[index];
      continue;
    }
    const int byte = escaped_byte(in, index);
    if (byte < 0) return std::nullopt;
    *out++ = static_cast<char>(byte);
    index += 2;
  }
  return static_cast<std::size_t>(out - start);
}

std::optional<std::string> percent_decode(std::string_view in) {
  std::string decoded(in.size(), '\0');
  const std::optional<std::size_t> size = percent_decode(in, decoded.data());
  if (!size) return std::nullopt;
  decoded.resize(*size);
  return decoded;
}

std::string encode_segment(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char each : text) {
    const bool letter = to_lower(each) >= 'a' && to_lower(each) <= 'z';
    if (letter || is_in(each, CharClass::digit) || each == '-' || each == '.' || each == '_' ||
        each == '~') {
      encoded += each;
    } else {
      append_escape(encoded, each);
    }
  }
  return encoded;
}

std::string encode_reference(std::string_view reference) {
  const std::size_t start = authority_end(reference);
  std::string encoded(reference.substr(0, start));
  char part = '/';  // the character that begins the part: a path, a query or a fragment
  for (std::size_t index = start; index < reference.size(); ++index) {
    const char each = reference[index];
    const bool begins = (each == '?' && part == '/') || (each == '#' && part != '#');
    if (begins) part = each;
    const bool plain = begins || is_in(each, CharClass::target);
    const bool stray =
        part != '?' && ((each == '%' && escaped_byte(reference, index) < 0) || each == '\\');
    if (plain && !stray) {
      encoded += each;
    } else {
      append_escape(encoded, each);
    }
  }
  return encoded;
}

ParseError check_escapes(std::string_view text) noexcept {
  for (std::size_t index = text.find('%'); index != std::string_view::npos;
       index = text.find('%', index + 3)) {
    const int byte = escaped_byte(text, index);
    if (byte < 0) return ParseError::bad_escape;
    if (byte == 0) return ParseError::nul_escape;
  }
  return ParseError::none;
}

ParseError check_path(std::string_view path) noexcept {
  if (const ParseError error = check_escapes(path); error != ParseError::none) return error;
  for (const std::string_view segment : Segments(path)) {
    if (is_dot_segment(segment)) return ParseError::dot_segment;
  }
  return ParseError::none;
}

Segments::Iterator& Segments::Iterator::operator++() noexcept {
  const std::size_t slash = rest_.find('/');
  done_ = slash == std::string_view::npos;
  rest_ = done_ ? std::string_view() : rest_.substr(slash + 1);
  return *this;
}

std::string Segments::Iterator::decoded() const {
  return percent_decode(**this).value_or(std::string(**this));
}

ParseError parse_target(Method method, std::string_view text, Target& target) noexcept {
  target = {};
  if (text.empty()) return ParseError::bad_target;
  if (method == Method::connect) {
    const std::optional<Authority> authority = parse_authority(text);
    if (!authority) return ParseError::bad_target_form;
    if (!authority->port) return ParseError::bad_target_authority;
    target.form = TargetForm::authority;
    target.authority = text;
    return ParseError::none;
  }
  if (text.front() == '/') return parse_path_and_query(text, target);
  if (text == "*") {
    target.form = TargetForm::asterisk;
    return method == Method::options ? ParseError::none : ParseError::bad_target_form;
  }
  return take_absolute(method, text, target);
}

}  // namespace weir::http
