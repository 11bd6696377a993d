#include "weir/web/forms/detail/part_head.hpp"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "weir/base/text/detail/printable.hpp"
#include "weir/base/text/detail/utf8.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/uri.hpp"

namespace weir::http {

std::uint64_t memory_bound(const MultipartLimits& limits) noexcept {
  // A string that grows has at most twice its bytes of capacity.
  return 2 * (limits.head_bytes_max + 4) + 4 * limits.name_bytes_max +
         2 * limits.headers_max * sizeof(HeaderField) + 1024;
}

namespace detail {
namespace {

constexpr std::size_t boundary_bytes_max = 70;
constexpr std::size_t file_name_bytes_max = 255;

void skip_spaces(std::string_view& text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
}

/// Takes the text of a quoted string up to its end. A backslash escapes only '"' and itself, since
/// clients also send paths of Windows.
/// Returns: false if the string has no end.
bool take_quoted(std::string_view& rest, Parameter& parameter) noexcept {
  for (std::size_t at = 0; at < rest.size(); ++at) {
    if (rest[at] == '"') {
      parameter.text = rest.substr(0, at);
      rest.remove_prefix(at + 1);
      return true;
    }
    if (rest[at] == '\\' && at + 1 < rest.size() && (rest[at + 1] == '"' || rest[at + 1] == '\\')) {
      parameter.has_escapes = true;
      ++at;
    }
  }
  return false;
}

std::string unescaped(const Parameter& parameter) {
  std::string text(parameter.text);
  if (!parameter.has_escapes) return text;
  std::size_t size = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool escapes =
        text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\');
    if (escapes) ++at;
    text[size++] = text[at];
  }
  text.resize(size);
  return text;
}

bool is_utf8(std::string_view text) noexcept {
  const char* position = text.data();
  const char* const end = position + text.size();
  while (position != end) {
    const std::size_t size = utf8_length(position, end);
    if (size == 0) return false;
    position += size;
  }
  return true;
}

bool has_control(std::string_view text) noexcept {
  return std::ranges::any_of(text, [](char each) { return !is_in(each, CharClass::value); }) ||
         text.find('\t') != text.npos;
}

/// A name of a part. The extended parameter counts if there is no plain one. RFC 7578 §4.2 forbids
/// it to senders, but .NET sends both and old versions of urllib3 send it alone.
struct NameParameter {
  std::optional<Parameter> plain;
  std::optional<Parameter> extended;

  /// Returns false for a second parameter of the same kind.
  bool take(const Parameter& parameter, bool is_extended) {
    auto& target = is_extended ? extended : plain;
    if (target) return false;
    target = parameter;
    return true;
  }
  /// Reads the name into `target`, which stays empty if there is none.
  std::optional<MultipartError> read(const MultipartLimits& limits,
                                     std::optional<std::string>& target) const {
    std::string text;
    if (plain) {
      if (plain->text.size() > limits.name_bytes_max) return MultipartError::name_too_long;
      text = unescaped(*plain);
    } else if (extended) {
      const std::string_view value = value_of_extended();
      if (value.data() == nullptr) return std::nullopt;
      if (http::check_escapes(value) != ParseError::none) return MultipartError::bad_name;
      const auto escapes = static_cast<std::size_t>(std::ranges::count(value, '%'));
      const std::size_t size = value.size() - 2 * escapes;
      if (size > limits.name_bytes_max) return MultipartError::name_too_long;
      text.resize(size);
      std::ignore = percent_decode(value, text.data());
    } else {
      return std::nullopt;
    }
    if (!is_utf8(text) || has_control(text)) return MultipartError::bad_name;
    target = std::move(text);
    return std::nullopt;
  }

 private:
  /// Returns the encoded text of `utf-8'language'text` (RFC 8187 §3.2); a view of nullptr for
  /// another charset.
  std::string_view value_of_extended() const noexcept {
    constexpr std::string_view charset = "utf-8'";
    const std::string_view text = extended->text;
    const std::size_t quote = text.find('\'', charset.size());
    const bool is_known = equals_ignoring_case(text.substr(0, charset.size()), charset);
    return is_known && quote != text.npos ? text.substr(quote + 1) : std::string_view();
  }
};

bool is_boundary_character(char each) noexcept {
  const char lower = to_lower(each);
  return (lower >= 'a' && lower <= 'z') || is_in(each, CharClass::digit) ||
         std::string_view("'()+_,-./:=? ").find(each) != std::string_view::npos;
}

/// Returns true for an encoding that does not change the bytes (RFC 2045 §6.2).
bool is_identity(std::string_view encoding) noexcept {
  return equals_ignoring_case(encoding, "7bit") || equals_ignoring_case(encoding, "8bit") ||
         equals_ignoring_case(encoding, "binary");
}

}  // namespace

bool take_parameter(std::string_view& rest, Parameter& parameter) noexcept {
  do {
    skip_spaces(rest);
    if (rest.empty() || rest.front() != ';') return false;
    rest.remove_prefix(1);
    skip_spaces(rest);
  } while (rest.starts_with(';'));
  if (rest.empty()) return false;
  const auto name_end =
      std::ranges::find_if(rest, [](char each) { return !is_in(each, CharClass::token); });
  parameter.name = rest.substr(0, static_cast<std::size_t>(name_end - rest.begin()));
  const std::string_view after = rest.substr(parameter.name.size());
  if (parameter.name.empty() || !after.starts_with('=')) return false;
  rest = after.substr(1);
  parameter.has_escapes = false;
  if (rest.starts_with('"')) {
    rest.remove_prefix(1);
    if (take_quoted(rest, parameter)) return true;
    rest = after;
    return false;
  }
  parameter.text = rest.substr(0, rest.find_first_of("; \t"));
  rest.remove_prefix(parameter.text.size());
  return true;
}

std::optional<std::string_view> boundary_of(std::string_view content_type) noexcept {
  constexpr std::string_view type = "multipart/form-data";
  std::string_view rest = content_type;
  if (!equals_ignoring_case(rest.substr(0, type.size()), type)) return std::nullopt;
  rest.remove_prefix(type.size());
  Parameter parameter;
  std::optional<std::string_view> boundary;
  while (take_parameter(rest, parameter)) {
    if (!equals_ignoring_case(parameter.name, "boundary")) continue;
    if (boundary) return std::nullopt;
    boundary = parameter.text;
  }
  if (!rest.empty() || !boundary || boundary->empty() || boundary->size() > boundary_bytes_max ||
      boundary->back() == ' ' || !std::ranges::all_of(*boundary, is_boundary_character)) {
    return std::nullopt;
  }
  return boundary;
}

std::optional<MultipartError> PartHead::read_disposition(std::string_view value,
                                                         const MultipartLimits& limits) {
  constexpr std::string_view kind = "form-data";
  std::string_view rest = value;
  if (!equals_ignoring_case(rest.substr(0, kind.size()), kind)) {
    return MultipartError::bad_disposition;
  }
  rest.remove_prefix(kind.size());
  NameParameter names;
  NameParameter file_names;
  Parameter parameter;
  while (take_parameter(rest, parameter)) {
    std::string_view key = parameter.name;
    const bool is_extended = key.ends_with('*');
    if (is_extended) key.remove_suffix(1);
    const bool is_name = equals_ignoring_case(key, "name");
    if (!is_name && !equals_ignoring_case(key, "filename")) continue;
    NameParameter& target = is_name ? names : file_names;
    if (!target.take(parameter, is_extended)) return MultipartError::repeated_parameter;
  }
  std::optional<std::string> its_name;
  if (const auto error = names.read(limits, its_name)) return error;
  if (!rest.empty() || !its_name) return MultipartError::bad_disposition;
  name = std::move(*its_name);
  if (const auto error = file_names.read(limits, file_name)) return error;
  // A file whose name is in another charset is a file without a name.
  if (!file_name && file_names.extended) file_name.emplace();
  return std::nullopt;
}

std::optional<MultipartError> PartHead::parse(std::string_view lines,
                                              const MultipartLimits& limits) {
  headers.clear();
  file_name.reset();
  content_type = "text/plain";
  bool has_disposition = false;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find(line_end));
    lines.remove_prefix(std::min(line.size() + line_end.size(), lines.size()));
    const std::size_t colon = line.find(':');
    if (colon == line.npos) return MultipartError::bad_part_head;
    const HeaderField header{line.substr(0, colon), trim(line.substr(colon + 1))};
    if (!is_valid_header(header.name, header.value)) return MultipartError::bad_part_head;
    if (headers.size() == limits.headers_max) return MultipartError::too_many_headers;
    headers.push_back(header);
    if (equals_ignoring_case(header.name, "Content-Disposition")) {
      if (has_disposition) return MultipartError::bad_disposition;
      has_disposition = true;
      if (const auto error = read_disposition(header.value, limits)) return error;
    } else if (equals_ignoring_case(header.name, "Content-Type")) {
      content_type = header.value;
    } else if (equals_ignoring_case(header.name, "Content-Transfer-Encoding") &&
               !is_identity(header.value)) {
      return MultipartError::bad_encoding;
    }
  }
  if (!has_disposition) return MultipartError::bad_disposition;
  return std::nullopt;
}

std::string safe_file_name(std::string_view name) {
  const std::size_t separator = name.find_last_of("/\\");
  if (separator != name.npos) name.remove_prefix(separator + 1);
  std::string safe;
  while (!name.empty()) {
    const std::size_t printable = printable_prefix(name);
    safe += name.substr(0, printable);
    name.remove_prefix(printable);
    if (name.empty()) break;
    safe += '_';
    const std::size_t size = utf8_length(name.data(), name.data() + name.size());
    name.remove_prefix(std::max<std::size_t>(size, 1));
  }
  std::ranges::replace(safe, ':', '_');  // it names streams and drives on Windows
  if (safe.size() > file_name_bytes_max) {
    std::size_t size = file_name_bytes_max;
    while (size > 0 && (static_cast<unsigned char>(safe[size]) & 0xc0) == 0x80) --size;
    safe.resize(size);
  }
  if (safe.empty() || safe == "." || safe == "..") return "file";
  return safe;
}

}  // namespace detail
}  // namespace weir::http
