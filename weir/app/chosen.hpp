// Chosen<T, Filter>: the one service of a type that a filter accepts.
#pragma once

#include "weir/app/parameter.hpp"

namespace weir {

/// A parameter that requires a T whose properties `Filter` accepts: the first registered one that
/// is on this core. A filter is a class with `bool operator()(const P&) const` for some property P
/// (who lacks it is not chosen) or for `const Properties&`. T is const for a shared service.
/// Lifetime: like a reference, as long as the service that asked.
template <class T, class Filter>
class Chosen {
 public:
  static constexpr wiring::Parameter needs{&wiring::type<std::remove_const_t<T>>,
                                           &wiring::filter<Filter>, wiring::Need::required,
                                           !std::is_const_v<T>};
  explicit Chosen(void* given) noexcept : object_(static_cast<T*>(given)) {}

  T& get() const noexcept { return *object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }

 private:
  T* object_;
};

}  // namespace weir
