// Prints the errors of a configuration and finds similar names.
#include "weir/config/source/error.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "weir/base/text/detail/printable.hpp"
#include "weir/json/detail/writer.hpp"

namespace weir::config {
namespace {

constexpr std::size_t quoted_bytes_max = 60;
constexpr std::size_t listed_max = 8;

char folded(char each) noexcept {
  if (each >= 'A' && each <= 'Z') return static_cast<char>(each - 'A' + 'a');
  return each == '-' ? '_' : each;
}

/// Returns the number of letters to change, add, remove or swap with the next one (Damerau, 1964).
/// Each letter is swapped at most once.
std::size_t edit_distance(std::string_view left, std::string_view right) {
  const std::size_t width = right.size() + 1;
  std::vector<std::size_t> before(width);
  std::vector<std::size_t> above(width);
  std::vector<std::size_t> row(width);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const bool same = folded(left[i - 1]) == folded(right[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && folded(left[i - 1]) == folded(right[j - 2]) &&
                           folded(left[i - 2]) == folded(right[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above.back();
}

}  // namespace

std::string Error::message() const {
  std::string message = source;
  // An option's source ends with its key.
  if (!key.empty() && !source.ends_with("--" + key)) message.append(": ").append(key);
  return to_printable(message.append(": ").append(what));
}

void Errors::add(Error error) {
  if (all.size() == errors_max) {
    ++omitted;
  } else {
    all.push_back(std::move(error));
  }
}

std::string Errors::message() const {
  std::string message;
  for (const Error& each : all) {
    if (!message.empty()) message += '\n';
    message += each.message();
  }
  if (omitted > 0) message.append("\nand ").append(std::to_string(omitted)).append(" more");
  return message;
}

std::string quote(std::string_view text) {
  std::string quoted;
  json::append_printable(quoted, text.substr(0, quoted_bytes_max));
  if (text.size() > quoted_bytes_max) quoted += "...";
  return quoted;
}

std::string quote_unless_plain(std::string_view name) {
  const auto plain = [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
           (each >= '0' && each <= '9') || each == '_' || each == '.' || each == '-';
  };
  const bool short_enough = !name.empty() && name.size() <= quoted_bytes_max;
  return short_enough && std::ranges::all_of(name, plain) ? std::string(name) : quote(name);
}

std::string_view closest_match(std::string_view wrong, const std::vector<std::string_view>& known) {
  const std::size_t allowed = std::max<std::size_t>(1, wrong.size() / 3);
  std::size_t least = std::numeric_limits<std::size_t>::max();
  std::string_view best;
  for (const std::string_view each : known) {
    const auto [shorter, longer] = std::minmax({each.size(), wrong.size()});
    if (longer - shorter > allowed || shorter <= allowed) continue;
    const std::size_t found = edit_distance(wrong, each);
    if (found > allowed || found >= least) continue;
    least = found;
    best = each;
  }
  return best;
}

std::string unknown_name_message(std::string_view wrong, const std::vector<std::string_view>& known,
                                 std::string_view prefix) {
  std::string text = "unknown";
  if (const std::string_view meant = closest_match(wrong, known); !meant.empty()) {
    return text.append("; did you mean ").append(prefix).append(meant).append("?");
  }
  if (known.size() > listed_max) return text;
  const char* before = "; known names are ";
  for (const std::string_view each : known) {
    text.append(std::exchange(before, ", ")).append(prefix).append(each);
  }
  return text;
}

}  // namespace weir::config
