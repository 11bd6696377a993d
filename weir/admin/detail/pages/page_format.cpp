// The choice of the format of a page.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

#include "weir/admin/detail/pages/page.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::admin {
namespace {

/// Takes the part up to the next `end` from the text.
std::string_view take_part(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return http::trim(part);
}

bool is_same(std::string_view one, std::string_view lower) {
  if (one.size() != lower.size()) return false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(one[i])) != lower[i]) return false;
  }
  return true;
}

std::optional<Format> format_of_type(std::string_view type) {
  if (is_same(type, "application/json") || is_same(type, "application/*")) return Format::json;
  if (is_same(type, "text/plain")) return Format::text;
  const bool html = is_same(type, "text/html") || is_same(type, "text/*") || type == "*/*";
  return html ? std::optional(Format::html) : std::nullopt;
}

/// Returns the q parameter; 1 if there is none, 0 if it is malformed.
double quality_of(std::string_view parameters) {
  while (!parameters.empty()) {
    std::string_view each = take_part(parameters, ';');
    const std::string_view name = take_part(each, '=');
    if (!is_same(name, "q")) continue;
    double value = 0;
    const auto parsed = std::from_chars(each.data(), each.data() + each.size(), value);
    return parsed.ec == std::errc() && value >= 0 && value <= 1 ? value : 0;
  }
  return 1;
}

}  // namespace

Format choose_format(std::string_view asked, std::string_view accept) noexcept {
  if (asked == "json") return Format::json;
  if (asked == "text") return Format::text;
  if (!asked.empty()) return Format::html;
  Format best = Format::html;
  double best_quality = 0;
  while (!accept.empty()) {
    std::string_view each = take_part(accept, ',');
    const auto format = format_of_type(take_part(each, ';'));
    const double quality = quality_of(each);
    if (!format || quality <= best_quality) continue;
    best = *format;
    best_quality = quality;
  }
  return best;
}

}  // namespace weir::admin
