// What can be said of a service when it is registered, and the name that registering gives it.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

#include "weir/app/describe/service_options.hpp"
#include "weir/base/time.hpp"

namespace weir {

/// How a service is replaced while it runs; see App::replace().
enum class Replacing : std::uint8_t {
  side_by_side,  ///< the new one and its dependants start beside the old, which stop afterwards
  exclusive,     ///< for what cannot exist twice (ports, locks): the old one stops first
};

struct ServiceOptions {
  Properties properties = {};  ///< for filters
  /// start() and stop() are cancelled when they take longer: a start has failed then, a stop is
  /// taken as done once it returns.
  Duration start_deadline = std::chrono::seconds(30);
  Duration stop_deadline = std::chrono::seconds(10);
  Replacing replacing = Replacing::side_by_side;
};

/// Where instances of a service live.
enum class Place : std::uint8_t {
  shared,    ///< one, on the core that the app is started on; all cores may use it as const
  per_core,  ///< one on each core
  on_core,   ///< one, on the core that was named
};

/// A service that was registered with an App. A value; of a removed one it names nothing.
class ServiceId {
 public:
  ServiceId() noexcept = default;
  ServiceId(std::uint32_t index, std::uint32_t serial) noexcept : index_(index), serial_(serial) {}
  std::uint32_t index() const noexcept { return index_; }
  /// Tells it from others that had the same index before.
  std::uint32_t serial() const noexcept { return serial_; }
  auto operator<=>(const ServiceId&) const noexcept = default;

 private:
  std::uint32_t index_ = UINT32_MAX;
  std::uint32_t serial_ = 0;
};

}  // namespace weir
