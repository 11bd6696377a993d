// What App::explain() says: every service, its state, what it waits for, since when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/app/service_options.hpp"
#include "weir/base/time.hpp"

namespace weir {

enum class ServiceState : std::uint8_t { waiting, starting, running, stopping, failed };

/// "running", "per core": the words of all forms of an explanation.
std::string_view word_for(ServiceState state) noexcept;
std::string_view word_for(Place place) noexcept;

/// One instance of a service: a service that is per core has one for each.
struct ServiceReport {
  std::string name;  ///< its type
  ServiceId id;
  Place place = Place::shared;
  unsigned core = 0;  ///< the one it lives on
  ServiceState state = ServiceState::waiting;
  Duration in_state{};                 ///< how long it has been in it
  std::vector<std::string> waits_for;  ///< in words; empty unless waiting or stopping
  std::string failure;                 ///< of a failed one
  std::vector<std::size_t> uses;       ///< what it requires, as indices of Explanation::services
  std::vector<std::size_t> may_use;    ///< what it takes while it is there
};

/// Values that stay as they are, whatever happens to the services. Threads: any.
struct Explanation {
  std::vector<ServiceReport> services;  ///< as they were registered; what is by request comes last

  /// A line for each service: `Web on core 1: waiting for Database for 2.5 s`.
  std::string to_text() const;
  /// A graph for Graphviz.
  std::string to_dot() const;
  /// {"services": [{"name": ..., "place": ..., "core": ..., "state": ..., "seconds": ...,
  /// "waits_for": [...], "failure": ..., "uses": [...], "may_use": [...]}, ...]}
  std::string to_json() const;
};

}  // namespace weir
