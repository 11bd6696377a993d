// Type descriptors: everything that the container needs to know of a service's type, as one
// constant.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/app/describe/detail/parameter.hpp"
#include "weir/app/describe/detail/signature.hpp"
#include "weir/base/detail/type_name.hpp"
#include "weir/base/result.hpp"
#include "weir/task/task.hpp"

namespace weir::inject {

/// A type that a service is provided as. `cast` returns the pointer for memory that holds the
/// stored object.
/// Threads: any.
struct ProvidedType {
  const Type* type;
  void* (*cast)(void* memory);
};

/// The functions that make, start, stop and destroy a service. They run on the service's core.
struct TypeDescriptor {
  const Type* type;
  std::span<const ProvidedType> provided;  ///< the service's own type first
  std::span<const Parameter> parameters;
  std::size_t size;
  std::size_t alignment;
  /// Calls the factory with the argument of each parameter. Passes its exceptions on.
  Result<> (*make)(void* memory, const void* factory, void* const* arguments);
  void (*destroy)(void* memory) noexcept;
  Task<Result<>> (*start)(void* memory);  ///< nullptr if the service has no start()
  Task<> (*stop)(void* memory);           ///< nullptr if the service has no stop()
  /// True if a parameter is a Scope& or ServiceRoutes&, which belongs to the service alone.
  bool has_owned_arguments;
  std::string_view advice = {};  ///< what to do besides if no service provides a parameter's type
};

namespace detail {

/// Returns the service in `memory`, which holds a T or a std::unique_ptr<T>.
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
struct Invoker;
template <class F, class... P>
struct Invoker<F, Parameters<P...>> {
  static_assert(sizeof...(P) <= parameters_max, "a service takes at most 16 parameters");
  static constexpr std::array<Parameter, sizeof...(P)> parameters{parameter_of<P>()...};
  static constexpr bool has_owned_arguments = (false || ... ||
                                               (parameter_of<P>().kind == DependencyKind::scope ||
                                                parameter_of<P>().kind == DependencyKind::routes));

  template <class Stored>
  static Result<> make(void* memory, const void* factory, void* const* arguments) {
    return call<Stored>(memory, *static_cast<const F*>(factory), arguments,
                        std::index_sequence_for<P...>());
  }

 private:
  template <class Stored, std::size_t... I>
  static Result<> call(void* memory, [[maybe_unused]] const F& factory,
                       [[maybe_unused]] void* const* arguments, std::index_sequence<I...>) {
    if constexpr (std::is_same_v<F, ConstructorTag<Stored>>) {
      // A call might return a trivially copyable object in registers, which would move it.
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
inline constexpr std::array<ProvidedType, 1 + sizeof...(Interfaces)> provided{
    ProvidedType{&type<Service>, &cast<Stored, Service, Service>},
    ProvidedType{&type<Interfaces>, &cast<Stored, Service, Interfaces>}...};

}  // namespace detail

/// The descriptor of a Service that F makes from parameters Taken. It is kept as a Stored and also
/// provided as each of the Interfaces.
template <class F, class Taken, class Stored, class Service, class... Interfaces>
inline constexpr TypeDescriptor descriptor{
    &type<Service>,
    detail::provided<Stored, Service, Interfaces...>,
    detail::Invoker<F, Taken>::parameters,
    sizeof(Stored),
    alignof(Stored),
    &detail::Invoker<F, Taken>::template make<Stored>,
    &detail::destroy<Stored>,
    detail::start_of<Stored, Service>(),
    detail::stop_of<Stored, Service>(),
    detail::Invoker<F, Taken>::has_owned_arguments,
};

/// Returns true if no parameter may change the service that it takes.
template <class... P>
constexpr bool has_only_const_dependencies(Parameters<P...>) {
  [[maybe_unused]] const auto reads = [](const Parameter& each) {
    return !each.writable || !is_service_kind(each.kind);
  };
  return (true && ... && reads(parameter_of<P>()));
}

/// Does not own the service.
struct NoDelete {
  template <class T>
  void operator()(T*) const noexcept {}
};
template <class T>
using Borrowed = std::unique_ptr<T, NoDelete>;  ///< a service that its factory owns

/// A factory without its type.
using FactoryPtr = std::unique_ptr<const void, void (*)(const void*)>;

/// The arguments of App::add(), which App's templates make.
struct RegistrationInput {
  const TypeDescriptor* descriptor;
  FactoryPtr factory;
  const Type* root = nullptr;  ///< root of a scoped service, else nullptr
};

template <class F>
FactoryPtr store_factory(F factory) {
  if constexpr (std::is_empty_v<F> && std::is_trivially_default_constructible_v<F>) {
    static constexpr F only{};
    return {&only, [](const void*) {}};
  } else {
    return {new F(std::move(factory)),
            [](const void* kept) { delete static_cast<const F*>(kept); }};
  }
}

template <class T, class... Interfaces>
RegistrationInput constructor_registration() {
  static_assert((std::is_base_of_v<Interfaces, T> && ...),
                "per_core<T, Interfaces...>: T does not derive from its interfaces");
  using F = ConstructorTag<T>;
  return {&descriptor<F, decltype(constructor_parameters<T>()), T, T, Interfaces...>,
          store_factory(F())};
}

template <class F, class... Interfaces>
RegistrationInput factory_registration(F factory) {
  using Of = FactoryOf<F>;
  using Service = typename Of::Service;
  static_assert(std::is_class_v<Service>, "a factory returns an object of a class");
  static_assert(
      (std::is_base_of_v<Interfaces, Service> && ...),
      "per_core<Interfaces...>(factory): the service does not derive from its interfaces");
  return {&descriptor<F, typename Of::ParameterTypes, typename Of::Stored, Service, Interfaces...>,
          store_factory(std::move(factory))};
}

}  // namespace weir::inject
