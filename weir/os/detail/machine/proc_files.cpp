#include "weir/os/detail/machine/proc_files.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "weir/os/detail/io/text_file.hpp"

namespace weir::os {
namespace {

constexpr std::string_view blanks = " \t\n";

/// Removes and returns the first word of `text`.
std::string_view take_word(std::string_view& text) {
  const auto begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return text = {};
  text.remove_prefix(begin);
  const auto word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

template <class T>
std::optional<T> parse(std::string_view word, int base = 10) {
  T value{};
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (word.empty() || error != std::errc() || rest != word.data() + word.size()) {
    return std::nullopt;
  }
  return value;
}

/// Returns the rest of the line that begins with `name`.
std::optional<std::string> find_line(const std::string& path, std::string_view name) {
  const auto text = read_text_file(path);
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with(name)) return std::string(line.substr(name.size()));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_limit(std::string_view word) {
  return word == "unlimited" ? unlimited : parse<std::uint64_t>(word);
}

}  // namespace

std::vector<std::int64_t> read_numbers(const std::string& path) {
  const auto text = read_text_file(path);
  std::vector<std::int64_t> numbers;
  if (!text) return numbers;
  std::string_view rest = *text;
  while (const auto number = parse<std::int64_t>(take_word(rest))) numbers.push_back(*number);
  return numbers;
}

std::optional<std::int64_t> read_number(const std::string& path) {
  const auto numbers = read_numbers(path);
  if (numbers.empty()) return std::nullopt;
  return numbers.front();
}

std::optional<std::string> read_status_field(std::string_view name, const std::string& root) {
  const auto line = find_line(root + "/proc/thread-self/status", std::string(name) + ":");
  if (!line) return std::nullopt;
  std::string_view rest = *line;
  return std::string(take_word(rest));
}

bool has_capability(int number, const std::string& root) {
  const auto field = read_status_field("CapEff", root);
  const auto set = field ? parse<std::uint64_t>(*field, 16) : std::nullopt;
  return set && (*set >> number & 1) != 0;
}

std::optional<SoftAndHard> read_limit(std::string_view name, const std::string& root) {
  const auto line = find_line(root + "/proc/self/limits", std::string(name) + " ");
  if (!line) return std::nullopt;
  std::string_view rest = *line;
  const auto soft = parse_limit(take_word(rest));
  const auto hard = parse_limit(take_word(rest));
  if (!soft || !hard) return std::nullopt;
  return SoftAndHard{*soft, *hard};
}

}  // namespace weir::os
