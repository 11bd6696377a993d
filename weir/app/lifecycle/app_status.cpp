// Formats an explanation as text, DOT and JSON.
#include "weir/app/lifecycle/app_status.hpp"

#include <array>
#include <chrono>
#include <string_view>

#include "weir/base/text/detail/printable.hpp"
#include "weir/json.hpp"

namespace weir {
std::string_view to_string(ServiceState state) noexcept {
  constexpr std::array<std::string_view, 5> words{"waiting", "starting", "running", "stopping",
                                                  "failed"};
  return words[static_cast<std::size_t>(state)];
}

std::string_view to_string(Placement placement) noexcept {
  constexpr std::array<std::string_view, 3> words{"shared", "per core", "on core"};
  return words[static_cast<std::size_t>(placement)];
}

namespace {

std::string full_name(const ServiceReport& service) {
  if (service.placement == Placement::shared) return service.name;
  return service.name + " on core " + std::to_string(service.core);
}

std::string seconds(Duration length) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(length).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& each : words) text += (text.empty() ? "" : ", ") + each;
  return text;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') result += '\\';
    result += each;
  }
  return result + '"';
}

std::string_view colour_of(ServiceState state) {
  constexpr std::array<std::string_view, 5> colours{"lightgrey", "lightyellow", "palegreen",
                                                    "lightsalmon", "tomato"};
  return colours[static_cast<std::size_t>(state)];
}

struct ServiceJson {
  std::string name;
  std::string placement;
  unsigned core;
  std::string state;
  double seconds;
  std::vector<std::string> waits_for;
  std::string failure;
  std::vector<std::size_t> uses;
  std::vector<std::size_t> may_use;
};
struct ExplanationJson {
  std::vector<ServiceJson> services;
};

}  // namespace

std::string Explanation::to_text() const {
  std::string text;
  for (const ServiceReport& each : services) {
    std::string line = full_name(each) + ": " + std::string(to_string(each.state));
    if (!each.waits_for.empty()) line += " for " + joined(each.waits_for);
    if (!each.failure.empty()) line += ": " + each.failure;
    text += to_printable(line) + " (since " + seconds(each.state_duration) + ")\n";
  }
  return text;
}

std::string Explanation::to_dot() const {
  std::string dot = "digraph services {\n  rankdir=LR;\n  node [shape=box, style=filled];\n";
  for (std::size_t i = 0; i < services.size(); ++i) {
    dot += "  n" + std::to_string(i) + " [label=" + quoted(to_printable(full_name(services[i]))) +
           ", fillcolor=" + std::string(colour_of(services[i].state)) + "];\n";
  }
  for (std::size_t i = 0; i < services.size(); ++i) {
    const std::string from = "  n" + std::to_string(i) + " -> n";
    for (const std::size_t to : services[i].uses) dot += from + std::to_string(to) + ";\n";
    for (const std::size_t to : services[i].may_use) {
      dot += from + std::to_string(to) + " [style=dashed];\n";
    }
  }
  return dot + "}\n";
}

std::string Explanation::to_json() const {
  ExplanationJson all;
  for (const ServiceReport& each : services) {
    all.services.push_back({each.name, std::string(to_string(each.placement)), each.core,
                            std::string(to_string(each.state)),
                            std::chrono::duration<double>(each.state_duration).count(),
                            each.waits_for, each.failure, each.uses, each.may_use});
  }
  return json::write(all);
}

}  // namespace weir
