// Requester: tells a factory who asks, so that each asker gets an instance of its own.
#pragma once

#include <string_view>

#include "weir/app/parameter.hpp"

namespace weir {

/// A parameter by which a service is made once for each service that requires it, on that one's
/// core, before it; it goes with it. Lifetime: a value; the name lives as long as the program.
///
///   app.per_core([](Requester who) { return Logger(who.name()); });
class Requester {
 public:
  static constexpr wiring::Parameter needs{&wiring::type<Requester>, nullptr,
                                           wiring::Need::requester, false};
  /// Who asks, as the wiring keeps it.
  struct Asking {
    const wiring::Type* type;
    const Properties* properties;
    unsigned core;
  };
  explicit Requester(void* given) noexcept : of_(*static_cast<const Asking*>(given)) {}

  /// The requesting service's type, with its namespaces.
  std::string_view name() const noexcept { return of_.type->name; }
  unsigned core() const noexcept { return of_.core; }
  /// Valid while the requesting service is registered.
  const Properties& properties() const noexcept { return *of_.properties; }
  template <class T>
  bool is() const noexcept {
    return of_.type == &wiring::type<T>;
  }

 private:
  Asking of_;
};

}  // namespace weir
