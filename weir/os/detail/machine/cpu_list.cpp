// Parses, formats and intersects lists of CPUs.
#include "weir/os/detail/machine/cpu_list.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace weir::os {
namespace {

constexpr int cpu_max = 65535;

std::optional<int> read_cpu(std::string_view text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < 0 || value > cpu_max) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
    if (comma != std::string_view::npos && text.empty()) return std::nullopt;
    const auto dash = range.find('-');
    const auto first = read_cpu(range.substr(0, dash));
    const auto last = dash == range.npos ? first : read_cpu(range.substr(dash + 1));
    if (!first || !last || *first > *last) return std::nullopt;
    // Repeated ranges must not make the list longer than the number of possible CPUs.
    if (cpus.size() > cpu_max) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  std::ranges::sort(cpus);
  cpus.erase(std::ranges::unique(cpus).begin(), cpus.end());
  return cpus;
}

std::string format_cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[first]);
    if (last != first) text += '-' + std::to_string(cpus[last]);
    first = last + 1;
  }
  return text;
}

std::vector<int> intersect_cpus(const std::vector<int>& left, const std::vector<int>& right) {
  std::vector<int> both;
  std::ranges::set_intersection(left, right, std::back_inserter(both));
  return both;
}

}  // namespace weir::os
