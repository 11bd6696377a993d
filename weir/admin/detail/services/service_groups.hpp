// The services of an explanation, with all instances of a service in one group.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "weir/app/lifecycle/app_status.hpp"

namespace weir::drawing {

/// One service: all instances with the same id.
struct ServiceGroup {
  std::string name;
  Placement placement = Placement::shared;
  std::vector<std::size_t> members;     ///< indices of Explanation::services
  std::array<std::size_t, 5> states{};  ///< number of instances in each ServiceState

  /// Returns the most severe state: failed, then stopping, starting, waiting, running.
  ServiceState state() const noexcept;
  /// Returns "running", "running on core 2", or "3 of 4 running, 1 failed".
  std::string summary(const Explanation& of) const;
};

/// An edge between groups: an instance of `from` takes an instance of `to`.
struct GroupEdge {
  std::size_t from;
  std::size_t to;
  bool required;  ///< true if required, false if used while present
};

struct ServiceGroups {
  std::vector<ServiceGroup> all;  ///< in order of their first instances
  std::vector<GroupEdge> edges;   ///< without duplicates
};

ServiceGroups group_instances(const Explanation& explanation);

/// Returns the last part of a type's name: "weir::(anonymous namespace)::Web<a::B>" is "Web<B>".
std::string short_name(const std::string& name);

}  // namespace weir::drawing
