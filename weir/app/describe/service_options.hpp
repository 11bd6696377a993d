// Options, properties, placement and id of a registered service.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/base/detail/type_name.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

namespace weir {

// Typed properties of services, and filters that select by them.

/// Values that describe a service besides its type, of the user's own types, at most one of each.
///
///   enum class Region { europe, asia };
///   app.per_core<Database>({.properties = {Region::europe}});
///
/// Threads: those of its owner; a copy shares the values, which do not change.
class Properties {
 public:
  Properties() = default;
  template <class... Values>
    requires(sizeof...(Values) != 0 &&
             (!std::is_same_v<std::remove_cvref_t<Values>, Properties> && ...))
  Properties(Values&&... values) {
    (values_.emplace_back(
         &inject::type<std::remove_cvref_t<Values>>,
         std::make_shared<const std::remove_cvref_t<Values>>(std::forward<Values>(values))),
     ...);
  }

  bool empty() const noexcept { return values_.empty(); }
  /// Returns the value of that type, or nullptr.
  template <class Value>
  const Value* get() const noexcept {
    for (const auto& [type, value] : values_) {
      if (type == &inject::type<Value>) return static_cast<const Value*>(value.get());
    }
    return nullptr;
  }

 private:
  std::vector<std::pair<const inject::Type*, std::shared_ptr<const void>>> values_;
};

namespace inject {

/// A filter function, which never throws. The address of this object is the filter's identity.
struct Filter {
  bool (*accepts)(const Properties&) noexcept;
};

namespace detail {
template <class F, class Value>
Value property_of(bool (F::*)(const Value&) const);
template <class F, class Value>
Value property_of(bool (F::*)(const Value&) const noexcept);
template <class F, class Value>
Value property_of(bool (F::*)(Value) const);
template <class F, class Value>
Value property_of(bool (F::*)(Value) const noexcept);

template <class F>
bool accepts(const Properties& properties) noexcept {
  try {
    if constexpr (requires { static_cast<bool>(F()(properties)); }) {
      return F()(properties);
    } else {
      const auto* const value = properties.get<decltype(property_of(&F::operator()))>();
      return value != nullptr && F()(*value);
    }
  } catch (...) {
    return false;  // an exception would leave a change of the services half done
  }
}
}  // namespace detail

template <class F>
inline constexpr Filter filter{&detail::accepts<F>};

/// Returns the filter's object, or nullptr for `void`, which means no filter.
template <class F>
constexpr const Filter* filter_of() {
  if constexpr (std::is_void_v<F>) {
    return nullptr;
  } else {
    return &filter<F>;
  }
}

}  // namespace inject

/// The way to replace a running service; see App::replace().
enum class ReplacePolicy : std::uint8_t {
  side_by_side,  ///< new instances start beside the old ones, which stop afterwards
  exclusive,     ///< old instances stop first, for services that cannot exist twice (ports, locks)
};

/// ServiceOptions sets the properties, the timeouts and the replacement of a service.
struct ServiceOptions {
  Properties properties = {};  ///< values that filters select by
  /// Maximum durations of start() and stop(). The app cancels a call that takes longer. A
  /// cancelled start() has failed if it returns an error; otherwise the service has started. A
  /// cancelled stop() counts as done when it returns.
  Duration start_timeout = std::chrono::seconds(30);
  Duration stop_timeout = std::chrono::seconds(10);
  ReplacePolicy replace_policy = ReplacePolicy::side_by_side;
};

/// The placement of a service's instances.
enum class Placement : std::uint8_t {
  shared,    ///< one instance, on the core that the app is started on; all cores use it as const
  per_core,  ///< one instance on each core
  on_core,   ///< one instance, on the given core
};

/// The id of a service that was registered with an App. It is a value. The id of a removed service
/// matches no other service.
class ServiceId {
 public:
  ServiceId() noexcept = default;
  ServiceId(std::uint32_t index, std::uint32_t serial) noexcept : index_(index), serial_(serial) {}
  std::uint32_t index() const noexcept { return index_; }
  /// Distinguishes this service from earlier ones with the same index.
  std::uint32_t serial() const noexcept { return serial_; }
  auto operator<=>(const ServiceId&) const noexcept = default;

 private:
  std::uint32_t index_ = UINT32_MAX;
  std::uint32_t serial_ = 0;
};

}  // namespace weir
