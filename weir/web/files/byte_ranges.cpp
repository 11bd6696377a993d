#include "weir/web/files/byte_ranges.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

constexpr std::uint64_t number_max = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t gap_max = 80;  // about the size of the head of a part

/// Parses digits. A number that is too large becomes number_max.
std::optional<std::uint64_t> parse_number(std::string_view digits) noexcept {
  if (digits.empty() || !all_in(digits, CharClass::digit)) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() ? number : number_max;
}

enum class Spec : std::uint8_t { malformed, unsatisfiable, satisfiable };

/// Reads one range-spec: "0-4", "5-" or "-3".
Spec read_spec(std::string_view text, std::uint64_t size, ByteRange& range) noexcept {
  const std::size_t dash = text.find('-');
  if (dash == text.npos) return Spec::malformed;
  const std::string_view before = text.substr(0, dash);
  const std::string_view behind = text.substr(dash + 1);
  if (before.empty()) {
    const auto length = parse_number(behind);
    if (!length) return Spec::malformed;
    range.size = std::min(*length, size);
    range.first = size - range.size;
    return *length == 0 ? Spec::unsatisfiable : Spec::satisfiable;
  }
  const auto first = parse_number(before);
  const auto last = behind.empty() ? std::optional(number_max) : parse_number(behind);
  if (!first || !last || *last < *first) return Spec::malformed;
  if (*first >= size) return Spec::unsatisfiable;
  range.first = *first;
  range.size = std::min(*last, size - 1) - *first + 1;
  return Spec::satisfiable;
}

/// Merges ranges that overlap or are close. Ranges of which none is merged keep their order.
void merge(std::vector<ByteRange>& ranges) {
  std::vector<ByteRange> sorted = ranges;
  std::ranges::sort(sorted, {}, &ByteRange::first);
  std::vector<ByteRange> merged;
  for (const ByteRange& each : sorted) {
    if (merged.empty() || each.first > merged.back().first + merged.back().size + gap_max) {
      merged.push_back(each);
      continue;
    }
    ByteRange& last = merged.back();
    last.size = std::max(last.first + last.size, each.first + each.size) - last.first;
  }
  if (merged.size() < ranges.size()) ranges = std::move(merged);
}

}  // namespace

SelectedRanges select_ranges(std::string_view header, std::uint64_t size) {
  constexpr std::string_view unit = "bytes=";
  SelectedRanges selected;
  if (!equals_ignoring_case(header.substr(0, unit.size()), unit)) return {};
  header.remove_prefix(unit.size());
  std::size_t specs = 0;
  while (!header.empty()) {
    const std::size_t comma = std::min(header.find(','), header.size());
    const std::string_view text = trim(header.substr(0, comma));
    header.remove_prefix(std::min(comma + 1, header.size()));
    if (text.empty()) continue;  // RFC 9110 §5.6.1.2
    if (++specs > ranges_max) return {};
    ByteRange range;
    const Spec spec = read_spec(text, size, range);
    if (spec == Spec::malformed) return {};
    if (spec == Spec::satisfiable) selected.ranges.push_back(range);
  }
  if (specs == 0) return {};
  if (selected.ranges.empty()) {
    selected.kind = SelectedRanges::Kind::unsatisfiable;
    return selected;
  }
  if (size == 0) return {};  // a suffix of nothing is everything
  merge(selected.ranges);
  const bool all = selected.ranges.front().size == size;
  if (all && specs > 1) return {};
  selected.kind = SelectedRanges::Kind::partial;
  return selected;
}

std::string content_range(const ByteRange& range, std::uint64_t size) {
  return "bytes " + std::to_string(range.first) + "-" +
         std::to_string(range.first + range.size - 1) + "/" + std::to_string(size);
}

std::string unsatisfied_range(std::uint64_t size) {
  return "bytes */" + std::to_string(size);
}

std::string RangeParts::content_type() const {
  return "multipart/byteranges; boundary=" + boundary_;
}

std::string RangeParts::head(const ByteRange& range) const {
  std::string head = "\r\n--" + boundary_ + "\r\n";
  if (!content_type_.empty()) head.append("Content-Type: ").append(content_type_).append("\r\n");
  return head.append("Content-Range: ").append(content_range(range, size_)).append("\r\n\r\n");
}

std::string RangeParts::end() const {
  return "\r\n--" + boundary_ + "--\r\n";
}

std::uint64_t RangeParts::length(const std::vector<ByteRange>& ranges) const {
  std::uint64_t total = end().size();
  for (const ByteRange& each : ranges) total += head(each).size() + each.size;
  return total;
}

}  // namespace weir::http
