// Groups service instances by service.
#include "weir/admin/detail/services/service_groups.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace weir::drawing {
namespace {

constexpr std::array<ServiceState, 5> by_severity{ServiceState::failed, ServiceState::stopping,
                                                  ServiceState::starting, ServiceState::waiting,
                                                  ServiceState::running};

std::size_t index_of(ServiceState state) noexcept {
  return static_cast<std::size_t>(state);
}

}  // namespace

ServiceState ServiceGroup::state() const noexcept {
  return *std::ranges::find_if(by_severity, [&](ServiceState each) {
    return states[index_of(each)] != 0 || each == ServiceState::running;
  });
}

std::string ServiceGroup::summary(const Explanation& of) const {
  const std::size_t count = members.size();
  if (count == 1) {
    std::string text(to_string(state()));
    if (placement != Placement::shared)
      text += " on core " + std::to_string(of.services[members[0]].core);
    return text;
  }
  if (states[index_of(state())] == count) {
    return "all " + std::to_string(count) + " " + std::string(to_string(state()));
  }
  std::string text = std::to_string(states[index_of(ServiceState::running)]) + " of " +
                     std::to_string(count) + " running";
  for (const ServiceState each : by_severity) {
    const std::size_t some = states[index_of(each)];
    if (some == 0 || each == ServiceState::running) continue;
    text += ", " + std::to_string(some) + " " + std::string(to_string(each));
  }
  return text;
}

ServiceGroups group_instances(const Explanation& explanation) {
  ServiceGroups groups;
  std::map<ServiceId, std::size_t> known;
  std::vector<std::size_t> group_of;
  for (std::size_t i = 0; i < explanation.services.size(); ++i) {
    const ServiceReport& each = explanation.services[i];
    const auto [at, fresh] = known.try_emplace(each.id, groups.all.size());
    if (fresh) groups.all.push_back({each.name, each.placement, {}, {}});
    ServiceGroup& group = groups.all[at->second];
    group.members.push_back(i);
    ++group.states[index_of(each.state)];
    group_of.push_back(at->second);
  }
  std::set<std::tuple<std::size_t, std::size_t, bool>> seen;
  const auto add = [&](std::size_t from, std::size_t to, bool required) {
    if (seen.insert({from, to, required}).second) groups.edges.push_back({from, to, required});
  };
  for (std::size_t i = 0; i < explanation.services.size(); ++i) {
    for (const std::size_t to : explanation.services[i].uses) add(group_of[i], group_of[to], true);
    for (const std::size_t to : explanation.services[i].may_use) {
      add(group_of[i], group_of[to], false);
    }
  }
  return groups;
}

std::string short_name(const std::string& name) {
  constexpr std::string_view anonymous = "(anonymous namespace)";
  std::string text;
  std::vector<std::size_t> parts{0};  // start of each open part of the name, outermost first
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.compare(i, anonymous.size(), anonymous) == 0) {
      i += anonymous.size() - 1;  // "::" follows
    } else if (name.compare(i, 2, "::") == 0 && i + 2 < name.size()) {
      text.resize(parts.back());
      ++i;
    } else {
      text += name[i];
      if (name[i] == '<' || name[i] == '(') parts.push_back(text.size());
      if ((name[i] == '>' || name[i] == ')') && parts.size() > 1) parts.pop_back();
      if (name[i] == ',' || name[i] == ' ') parts.back() = text.size();
    }
  }
  return text;
}

}  // namespace weir::drawing
