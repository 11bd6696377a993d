// The choice of a format by the Accept header of a client.
#include <optional>
#include <string_view>

#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/telemetry/metrics/detail/exposition.hpp"

namespace weir::telemetry::detail {
namespace {

using http::equals_ignoring_case;
using http::trim;

std::string_view take_until(std::string_view& text, char end) noexcept {
  const std::size_t at = text.find(end);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + 1);
  return trim(part);
}

std::string_view unquoted(std::string_view text) noexcept {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

/// Parses a qvalue (RFC 9110 §12.4.2) to thousandths.
std::optional<int> parse_quality(std::string_view text) noexcept {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return std::nullopt;
  if (text.size() > 1 && text[1] != '.') return std::nullopt;
  int quality = (text[0] - '0') * 1000;
  int unit = 100;
  for (const char digit : text.substr(text.size() > 1 ? 2 : 1)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    quality += (digit - '0') * unit;
    unit /= 10;
  }
  return quality > 1000 ? std::nullopt : std::optional(quality);
}

/// A member of Accept.
struct MediaRange {
  std::string_view type;
  std::string_view version;
  std::string_view proto;
  std::string_view encoding;
  int quality = 1000;
};

std::optional<MediaRange> parse_range(std::string_view member) noexcept {
  MediaRange range;
  range.type = take_until(member, ';');
  while (!member.empty()) {
    std::string_view parameter = take_until(member, ';');
    const std::string_view name = take_until(parameter, '=');
    const std::string_view value = unquoted(trim(parameter));
    if (equals_ignoring_case(name, "q")) {
      const auto quality = parse_quality(value);
      if (!quality) return std::nullopt;
      range.quality = *quality;
    } else if (equals_ignoring_case(name, "version")) {
      range.version = value;
    } else if (equals_ignoring_case(name, "proto")) {
      range.proto = value;
    } else if (equals_ignoring_case(name, "encoding")) {
      range.encoding = value;
    }
  }
  return range;
}

/// Returns the format that a media range names. A range for several types stands for text.
std::optional<Format> format_of(const MediaRange& range) noexcept {
  const auto is = [&](std::string_view type) { return equals_ignoring_case(range.type, type); };
  if (is("application/vnd.google.protobuf") && range.encoding == "delimited" &&
      range.proto == "io.prometheus.client.MetricFamily") {
    return Format::protobuf;
  }
  const std::string_view version = range.version;
  if (is("application/openmetrics-text") && (version.empty() || version == "1.0.0")) {
    return Format::openmetrics;
  }
  if (is("text/plain") && (version.empty() || version == "0.0.4")) return Format::text;
  if (is("text/*") || is("*/*")) return Format::text;
  return std::nullopt;
}

}  // namespace

Format choose_format(std::string_view accept) noexcept {
  Format best = Format::text;
  int best_quality = 0;
  while (!accept.empty()) {
    const auto range = parse_range(take_until(accept, ','));
    if (!range) continue;
    const auto format = format_of(*range);
    if (!format || range->quality == 0) continue;
    const bool better =
        range->quality > best_quality || (range->quality == best_quality && *format > best);
    if (!better) continue;
    best = *format;
    best_quality = range->quality;
  }
  return best;
}

}  // namespace weir::telemetry::detail
