// The result of App::explain(): every service, its state, and the services that it waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/app/describe/service_options.hpp"
#include "weir/base/time.hpp"

namespace weir {

/// The state of one instance of a service.
enum class ServiceState : std::uint8_t { waiting, starting, running, stopping, failed };

/// Returns the word that all formats use, such as "running" or "per core".
std::string_view to_string(ServiceState state) noexcept;
std::string_view to_string(Placement placement) noexcept;

/// One instance of a service. A per-core service has one report for each core.
struct ServiceReport {
  std::string name;  ///< name of the service's type
  ServiceId id;
  Placement placement = Placement::shared;
  unsigned core = 0;  ///< core that the instance lives on
  ServiceState state = ServiceState::waiting;
  Duration state_duration{};  ///< time since the instance entered its state
  /// Reasons in words; empty unless the state is waiting or stopping.
  std::vector<std::string> waits_for;
  std::string failure;            ///< reason in words; empty unless the state is failed
  std::vector<std::size_t> uses;  ///< required services, as indices of Explanation::services
  /// Optional services in use, as indices of Explanation::services.
  std::vector<std::size_t> may_use;
};

/// A snapshot of all services, which later changes do not affect.
/// Threads: any.
struct Explanation {
  /// Instances in order of registration; those made by request come last.
  std::vector<ServiceReport> services;

  /// Returns one line for each service, such as `Web on core 1: waiting for Database (since 2.5
  /// s)`.
  std::string to_text() const;
  /// Returns a graph in Graphviz' DOT language.
  std::string to_dot() const;
  /// Returns {"services": [{"name": ..., "placement": ..., "core": ..., "state": ..., "seconds":
  /// ..., "waits_for": [...], "failure": ..., "uses": [...], "may_use": [...]}, ...]}.
  std::string to_json() const;
};

}  // namespace weir
