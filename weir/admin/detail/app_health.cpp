// The services of an app as parts of its health.
#include "weir/admin/detail/listener_parts.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace weir::admin {
namespace {

/// Returns true if a service waits only for the first one that requests it.
bool is_on_request(const ServiceReport& service) {
  if (service.state != ServiceState::waiting || service.waits_for.empty()) return false;
  return std::ranges::all_of(
      service.waits_for, [](std::string_view reason) { return reason.starts_with("a request "); });
}

/// Returns why a service is not ready, or an empty text.
std::string reason_of(const ServiceReport& service) {
  if (service.state == ServiceState::running || is_on_request(service)) return {};
  std::string reason;
  if (service.placement != Placement::shared) {
    reason = "on core " + std::to_string(service.core) + ": ";
  }
  reason += to_string(service.state);
  if (!service.failure.empty()) reason += ": " + service.failure;
  for (std::size_t i = 0; i < service.waits_for.size(); ++i) {
    reason += (i == 0 ? " for " : ", ") + service.waits_for[i];
  }
  return reason;
}

}  // namespace

std::vector<http::HealthPart> parts_of(const Explanation& explanation,
                                       std::span<const std::string> optional) {
  std::vector<http::HealthPart> parts;
  if (explanation.services.empty()) {
    parts.push_back({"app", false, "the app does not run"});
    return parts;
  }
  for (const ServiceReport& each : explanation.services) {
    std::string reason = reason_of(each);
    const bool needed = std::ranges::find(optional, each.name) == optional.end();
    const bool ready = reason.empty() || !needed;
    const auto known = std::ranges::find(parts, each.name, &http::HealthPart::name);
    if (known == parts.end()) {
      parts.push_back({each.name, ready, std::move(reason)});
    } else if (known->reason.empty()) {
      known->ready = ready;
      known->reason = std::move(reason);
    }
  }
  return parts;
}

void add_services(http::Health& health, const App& app, std::vector<std::string> optional) {
  health.set_parts([&app, optional = std::move(optional)]() -> Task<std::vector<http::HealthPart>> {
    const Explanation explanation = co_await app.explain_async();
    co_return parts_of(explanation, optional);
  });
}

}  // namespace weir::admin
