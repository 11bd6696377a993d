#include "weir/profile/detail/flame_page.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/text/detail/html_escape.hpp"

namespace weir::profile {
namespace {

std::string_view route_of(const Stack& stack) {
  return stack.route.empty() ? std::string_view("(no request)") : stack.route;
}

bool is_loop(const Stack& stack) {
  return stack.core != loop::CpuSample::no_core;
}

/// Calls `use(std::string_view)` for the frames of a stack, the outermost first. The route comes
/// first, then the name of a thread that has no loop.
template <class Use>
void each_frame(const Profile& profile, const Stack& stack, Use use) {
  use(route_of(stack));
  if (!is_loop(stack)) use(std::string_view(stack.thread));
  for (auto at = stack.addresses.rbegin(); at != stack.addresses.rend(); ++at)
    use(std::string_view(profile.name_of(*at).function));
}

/// Returns a number with one decimal place.
std::string decimal(double number) {
  std::array<char, 64> room;
  const auto end =
      std::to_chars(room.data(), room.data() + room.size(), number, std::chars_format::fixed, 1);
  return {room.data(), end.ptr};
}

/// A node of a flame graph: a function and the calls below it.
struct FlameNode {
  std::uint64_t weight = 0;
  std::map<std::string_view, FlameNode> calls = {};
};

/// Draws the nodes as rectangles, the outermost function at the top.
class FlameGraph {
 public:
  explicit FlameGraph(const Profile& profile)
      : total_(std::max<std::uint64_t>(profile.weight(), 1)) {
    for (const auto& [stack, weight] : profile.stacks) {
      FlameNode* node = &root_;
      root_.weight += weight;
      each_frame(profile, stack, [&](std::string_view name) {
        node = &node->calls[name];
        node->weight += weight;
      });
    }
  }

  std::string draw() {
    draw("all", root_, 0, 0);
    const std::string size =
        std::to_string(static_cast<int>(width)) + " " + std::to_string((deepest_ + 1) * row);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%\" viewBox=\"0 0 " + size +
           "\" font-family=\"monospace\" font-size=\"11\">\n" + shapes_ + "</svg>\n";
  }

 private:
  static constexpr double width = 1200;
  static constexpr double narrowest = 0.6;  // narrower rectangles cannot be seen
  static constexpr double letter = 6.7;
  static constexpr int row = 17;

  void draw(std::string_view name, const FlameNode& node, double left, int depth) {
    const double wide = width * static_cast<double>(node.weight) / static_cast<double>(total_);
    if (wide < narrowest) return;
    deepest_ = std::max(deepest_, depth);
    const std::string full = escape_html(name);
    const double share = 100 * static_cast<double>(node.weight) / static_cast<double>(total_);
    const std::string top = std::to_string(depth * row);
    shapes_ += "<g><title>" + full + ": " + std::to_string(node.weight) + " samples, " +
               decimal(share) + " %</title><rect x=\"" + decimal(left) + "\" y=\"" + top +
               "\" width=\"" + decimal(std::max(wide - 0.4, 0.2)) + "\" height=\"16\" fill=\"" +
               color_of(name, depth) + "\"/>";
    if (const auto letters = static_cast<std::size_t>(wide / letter); letters >= 3) {
      shapes_ += "<text x=\"" + decimal(left + 3) + "\" y=\"" + std::to_string(depth * row + 12) +
                 "\">" + escape_html(truncate_utf8(name, letters - 1)) + "</text>";
    }
    shapes_ += "</g>\n";
    for (const auto& [called, below] : node.calls) {
      draw(called, below, left, depth + 1);
      left += width * static_cast<double>(below.weight) / static_cast<double>(total_);
    }
  }

  /// Returns a warm color that depends only on the name; routes are blue.
  static std::string color_of(std::string_view name, int depth) {
    std::uint32_t hash = 2166136261;  // FNV-1a
    for (const char each : name) hash = (hash ^ static_cast<unsigned char>(each)) * 16777619;
    if (depth < 2) return "hsl(210,50%," + std::to_string(70 + hash % 15) + "%)";
    return "hsl(" + std::to_string(10 + hash % 45) + ",80%," +
           std::to_string(60 + (hash >> 8) % 15) + "%)";
  }

  std::uint64_t total_;
  FlameNode root_;
  std::string shapes_;
  int deepest_ = 0;
};

using Weights = std::map<std::string_view, std::uint64_t>;

std::string table_of(std::string_view title, const Weights& weights, std::uint64_t total) {
  constexpr std::size_t rows_max = 20;
  std::vector<std::pair<std::string_view, std::uint64_t>> rows(weights.begin(), weights.end());
  std::ranges::sort(rows, [](const auto& one, const auto& other) {
    return one.second != other.second ? one.second > other.second : one.first < other.first;
  });
  if (rows.size() > rows_max) rows.resize(rows_max);
  std::string table = "<h2>" + std::string(title) + "</h2>\n<table>\n";
  for (const auto& [name, weight] : rows) {
    const double share =
        100 * static_cast<double>(weight) / static_cast<double>(std::max<std::uint64_t>(total, 1));
    table += "<tr><td align=\"right\" nowrap>" + decimal(share) + " %</td><td align=\"right\">" +
             std::to_string(weight) + "</td><td><code>" + escape_html(name) + "</code></td></tr>\n";
  }
  return table + "</table>\n";
}

}  // namespace

std::string to_folded(const Profile& profile) {
  std::map<std::string, std::uint64_t> lines;
  for (const auto& [stack, weight] : profile.stacks) {
    std::string line;
    each_frame(profile, stack, [&line](std::string_view frame) {
      if (!line.empty()) line += ';';
      for (const char each : frame) line += each == ';' || each == '\n' ? ':' : each;
    });
    lines[std::move(line)] += weight;
  }
  std::string text;
  for (const auto& [line, weight] : lines) text += line + " " + std::to_string(weight) + "\n";
  return text;
}

std::string to_flame_page(const Profile& profile) {
  Weights own;
  Weights with_calls;
  Weights routes;
  for (const auto& [stack, weight] : profile.stacks) {
    routes[route_of(stack)] += weight;
    own[profile.name_of(stack.addresses.front()).function] += weight;
    std::set<std::string_view> once;  // a recursive function counts once
    for (const std::uintptr_t each : stack.addresses) once.insert(profile.name_of(each).function);
    for (const std::string_view each : once) with_calls[each] += weight;
  }
  const std::uint64_t total = profile.weight();
  const double seconds = std::chrono::duration<double>(profile.length).count();
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>CPU "
      "profile</title></head>\n<body>\n<h1>CPU profile</h1>\n<p>" +
      std::to_string(total) + " samples at " + std::to_string(profile.hertz) + " Hz in " +
      decimal(seconds) + " s, " + std::to_string(profile.dropped) + " dropped.</p>\n";
  page += FlameGraph(profile).draw();
  page += table_of("Routes", routes, total);
  page += table_of("Functions, without their calls", own, total);
  page += table_of("Functions, with their calls", with_calls, total);
  return page + "</body></html>\n";
}

}  // namespace weir::profile
