// The services of an explanation, each once, whatever the number of its instances.
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
  Place place = Place::shared;
  std::vector<std::size_t> members;     ///< as indices of Explanation::services
  std::array<std::size_t, 5> states{};  ///< how many are in each ServiceState

  /// The state that is most worth being seen: failed, before stopping, starting, waiting, running.
  ServiceState state() const noexcept;
  /// "running", "running on core 2", "3 of 4 running, 1 failed".
  std::string summary(const Explanation& of) const;
};

/// Some instance of `from` takes one of `to`.
struct GroupEdge {
  std::size_t from;
  std::size_t to;
  bool required;  ///< or taken while it is there
};

struct ServiceGroups {
  std::vector<ServiceGroup> all;  ///< in the order of their first instances
  std::vector<GroupEdge> edges;   ///< no two alike
};

ServiceGroups group(const Explanation& explanation);

/// The last part of a type's name: "weir::(anonymous namespace)::Web<a::B>" is "Web<B>".
std::string last_part(const std::string& name);

}  // namespace weir::drawing
