// Plans: all that the wiring knows of a service's type, as one constant; templates end here.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "weir/app/describe/detail/signature.hpp"
#include "weir/app/factory.hpp"
#include "weir/app/parameter.hpp"
#include "weir/base/detail/type_name.hpp"
#include "weir/base/result.hpp"
#include "weir/task/task.hpp"

namespace weir::wiring {

/// A type under which others may ask for the service; `cast` gives them the pointer, from memory
/// that holds what was made. Threads: any.
struct Provided {
  const Type* type;
  void* (*cast)(void* memory);
};

/// How to make, start, stop and destroy a service. Functions are called on the service's core.
struct Plan {
  const Type* type;
  std::span<const Provided> provided;  ///< its own type first
  std::span<const Parameter> parameters;
  std::size_t bytes;
  std::size_t alignment;
  /// Calls the factory with what was found for each parameter. May throw what that throws.
  Result<> (*make)(void* memory, const void* factory, void* const* arguments);
  void (*destroy)(void* memory) noexcept;
  Task<Result<>> (*start)(void* memory);  ///< or nullptr
  Task<> (*stop)(void* memory);           ///< or nullptr
  bool has_cells;  ///< a parameter is something of its own: a Scope&, or Routes&
};

namespace detail {

/// What is kept: a T itself, or a std::unique_ptr<T>.
template <class Stored, class Service>
Service& service_in(void* memory) {
  Stored& stored = *std::launder(static_cast<Stored*>(memory));
  if constexpr (std::is_same_v<Stored, Service>) {
    return stored;
  } else {
    return *stored;
  }
}

template <class Stored, class Service, class Interface>
void* cast(void* memory) {
  return static_cast<Interface*>(&service_in<Stored, Service>(memory));
}

template <class F, class Taken>
struct Maker;
template <class F, class... P>
struct Maker<F, Parameters<P...>> {
  static_assert(sizeof...(P) <= parameters_max, "a service asks for at most 16 things");
  static constexpr std::array<Parameter, sizeof...(P)> parameters{parameter_of<P>()...};
  static constexpr bool has_cells =
      (false || ... ||
       (parameter_of<P>().need == Need::scope || parameter_of<P>().need == Need::routes));

  template <class Stored>
  static Result<> make(void* memory, const void* factory, void* const* arguments) {
    return call<Stored>(memory, *static_cast<const F*>(factory), arguments,
                        std::index_sequence_for<P...>());
  }

 private:
  template <class Stored, std::size_t... I>
  static Result<> call(void* memory, [[maybe_unused]] const F& factory,
                       [[maybe_unused]] void* const* arguments, std::index_sequence<I...>) {
    if constexpr (std::is_same_v<F, Constructing<Stored>>) {
      // Not by a call: what is trivially copied may return in registers, and move.
      ::new (memory) Stored(argument<P>(arguments[I])...);
    } else if constexpr (is_result<decltype(factory(argument<P>(arguments[I])...))>) {
      auto made = factory(argument<P>(arguments[I])...);
      if (!made) return fail(made.error());
      ::new (memory) Stored(std::move(*made));
    } else {
      ::new (memory) Stored(factory(argument<P>(arguments[I])...));
    }
    return {};
  }
};

template <class T>
void destroy(void* memory) noexcept {
  std::launder(static_cast<T*>(memory))->~T();
}

template <class T>
constexpr bool starts() {
  if constexpr (requires(T& service) { service.start(); }) {
    constexpr bool fits = requires(T& service) {
      { service.start() } -> std::same_as<Task<Result<>>>;
    };
    static_assert(fits, "start() of a service returns a Task<Result<>>");
    return fits;
  } else {
    return false;
  }
}
template <class T>
constexpr bool stops() {
  if constexpr (requires(T& service) { service.stop(); }) {
    constexpr bool fits = requires(T& service) {
      { service.stop() } -> std::same_as<Task<>>;
    };
    static_assert(fits, "stop() of a service returns a Task<>");
    return fits;
  } else {
    return false;
  }
}

template <class Stored, class Service>
constexpr auto start_of() {
  Task<Result<>> (*function)(void*) = nullptr;
  if constexpr (starts<Service>()) {
    function = [](void* memory) { return service_in<Stored, Service>(memory).start(); };
  }
  return function;
}
template <class Stored, class Service>
constexpr auto stop_of() {
  Task<> (*function)(void*) = nullptr;
  if constexpr (stops<Service>()) {
    function = [](void* memory) { return service_in<Stored, Service>(memory).stop(); };
  }
  return function;
}

template <class Stored, class Service, class... Interfaces>
inline constexpr std::array<Provided, 1 + sizeof...(Interfaces)> provided{
    Provided{&type<Service>, &cast<Stored, Service, Service>},
    Provided{&type<Interfaces>, &cast<Stored, Service, Interfaces>}...};

}  // namespace detail

/// The plan of what F, with parameters Taken, makes: a Service kept as a Stored, also provided as
/// each of the Interfaces.
template <class F, class Taken, class Stored, class Service, class... Interfaces>
inline constexpr Plan plan{
    &type<Service>,
    detail::provided<Stored, Service, Interfaces...>,
    detail::Maker<F, Taken>::parameters,
    sizeof(Stored),
    alignof(Stored),
    &detail::Maker<F, Taken>::template make<Stored>,
    &detail::destroy<Stored>,
    detail::start_of<Stored, Service>(),
    detail::stop_of<Stored, Service>(),
    detail::Maker<F, Taken>::has_cells,
};

/// Whether nothing is taken that might be changed.
template <class... P>
constexpr bool only_reads(Parameters<P...>) {
  [[maybe_unused]] const auto reads = [](const Parameter& each) {
    return !each.writable || !is_for_others(each.need);
  };
  return (true && ... && reads(parameter_of<P>()));
}

/// A factory without its type.
using FactoryPtr = std::unique_ptr<const void, void (*)(const void*)>;

/// What App's templates hand over.
struct Blueprint {
  const Plan* plan;
  FactoryPtr factory;
  const Type* seed = nullptr;  ///< of a scoped service
};

template <class F>
FactoryPtr keep_factory(F factory) {
  if constexpr (std::is_empty_v<F> && std::is_trivially_default_constructible_v<F>) {
    static constexpr F only{};
    return {&only, [](const void*) {}};
  } else {
    return {new F(std::move(factory)),
            [](const void* kept) { delete static_cast<const F*>(kept); }};
  }
}

template <class T, class... Interfaces>
Blueprint blueprint_of_constructor() {
  static_assert((std::is_base_of_v<Interfaces, T> && ...),
                "per_core<T, Interfaces...>: a T is none of its interfaces");
  using F = Constructing<T>;
  return {&plan<F, decltype(constructor_parameters<T>()), T, T, Interfaces...>, keep_factory(F())};
}

template <class F, class... Interfaces>
Blueprint blueprint_of_factory(F factory) {
  using Of = FactoryOf<F>;
  using Service = typename Of::Service;
  static_assert(std::is_class_v<Service>, "a factory returns an object of a class");
  static_assert((std::is_base_of_v<Interfaces, Service> && ...),
                "per_core<Interfaces...>(factory): what it makes is none of its interfaces");
  return {&plan<F, typename Of::Taken, typename Of::Stored, Service, Interfaces...>,
          keep_factory(std::move(factory))};
}

}  // namespace weir::wiring
