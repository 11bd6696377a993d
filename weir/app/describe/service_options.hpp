// Typed properties of services, and filters that choose by them.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/base/detail/type_name.hpp"
#include "weir/base/result.hpp"

namespace weir {

/// What is known of a service beside its type: values of the user's own types, at most one of each.
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
         &wiring::type<std::remove_cvref_t<Values>>,
         std::make_shared<const std::remove_cvref_t<Values>>(std::forward<Values>(values))),
     ...);
  }

  bool empty() const noexcept { return values_.empty(); }
  /// The value of that type, or nullptr.
  template <class Value>
  const Value* get() const noexcept {
    for (const auto& [type, value] : values_) {
      if (type == &wiring::type<Value>) return static_cast<const Value*>(value.get());
    }
    return nullptr;
  }

 private:
  std::vector<std::pair<const wiring::Type*, std::shared_ptr<const void>>> values_;
};

namespace wiring {

/// A filter's judgement; its address is the filter's identity.
struct Filter {
  bool (*accepts)(const Properties&);
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
bool accepts(const Properties& properties) {
  if constexpr (requires { static_cast<bool>(F()(properties)); }) {
    return F()(properties);
  } else {
    const auto* const value = properties.get<decltype(property_of(&F::operator()))>();
    return value != nullptr && F()(*value);
  }
}
}  // namespace detail

template <class F>
inline constexpr Filter filter{&detail::accepts<F>};

/// nullptr for `void`, which is no filter.
template <class F>
constexpr const Filter* filter_of() {
  if constexpr (std::is_void_v<F>) {
    return nullptr;
  } else {
    return &filter<F>;
  }
}

}  // namespace wiring
}  // namespace weir
