// Factories of scoped services: they stand in the graph for services with one instance for each
// scope.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "weir/app/describe/detail/descriptor.hpp"

namespace weir::inject {

struct Instance;

/// The type that all factories for scopes of a Root are found by.
template <class Root>
struct ScopedFactoryKey {};

/// One core's factory of a scoped service. It holds the arguments of the instances, so that no
/// argument stops before the scopes.
/// Threads: those of its core.
class ScopedFactory {
 public:
  ScopedFactory(const ScopedFactory&) = delete;
  ScopedFactory& operator=(const ScopedFactory&) = delete;

  /// Returns the descriptor of the instances.
  const TypeDescriptor& descriptor() const noexcept { return descriptor_; }
  const void* factory() const noexcept { return factory_; }
  /// Returns true if the instances provide that type and the filter, if any, accepts them.
  bool provides(const Type* type, const Filter* filter) const;
  /// Returns the instance in `memory` as a pointer to that type.
  void* cast(void* memory, const Type* type) const noexcept;

  enum class Source : std::uint8_t {
    core,   ///< argument() is the argument itself
    scope,  ///< argument() is the ScopedFactory of the argument
    root,   ///< the argument is the scope's root
  };
  Source source(std::size_t parameter) const noexcept { return sources_[parameter]; }
  void* argument(std::size_t parameter) const noexcept { return arguments_[parameter]; }

 protected:
  /// `given` holds an argument for each parameter of the instances. `instance` has a dependency
  /// for each of them.
  ScopedFactory(const TypeDescriptor& descriptor, const void* factory, void* const* given,
                const Instance& instance, const Type* root, void** arguments,
                Source* sources) noexcept;
  ~ScopedFactory() = default;

 private:
  const TypeDescriptor& descriptor_;
  const void* factory_;
  const Instance& instance_;
  void* const* arguments_;
  const Source* sources_;
};

namespace detail {

/// The storage of a factory whose instances have `count` parameters.
template <std::size_t count>
struct ScopedFactoryStorage {
  std::array<void*, count> arguments;
  std::array<ScopedFactory::Source, count> sources;
};

/// The storage is the first base, because the constructor of ScopedFactory fills it.
template <std::size_t count>
class ScopedFactoryImpl : ScopedFactoryStorage<count>, public ScopedFactory {
 public:
  ScopedFactoryImpl(const TypeDescriptor& descriptor, const void* factory, void* const* given,
                    const Type* root)
      : ScopedFactory(descriptor, factory, given, *static_cast<const Instance*>(given[count]), root,
                      this->arguments.data(), this->sources.data()) {}
};

template <class Root, class P>
constexpr Parameter scoped_parameter() {
  if constexpr (std::is_same_v<std::remove_cvref_t<P>, Root>) {
    static_assert(std::is_lvalue_reference_v<P>, "a scoped service takes the root by reference");
    return {&type<Root>, nullptr, DependencyKind::root, false};
  } else {
    constexpr Parameter parameter = parameter_of<P>();
    static_assert(
        parameter.kind != DependencyKind::scope && parameter.kind != DependencyKind::routes,
        "a scoped service takes no Scope& and no http::ServiceRoutes&, which would outlive it");
    static_assert(parameter.kind != DependencyKind::requester,
                  "a scoped service takes no Requester: it is made for a scope");
    return parameter;
  }
}

/// The parameters of an instance, followed by the factory's own instance.
template <class Root, class Taken>
struct ScopedParameters;
template <class Root, class... P>
struct ScopedParameters<Root, Parameters<P...>> {
  static constexpr std::size_t count = sizeof...(P);
  static_assert(count < parameters_max, "a scoped service takes at most 15 parameters");
  static constexpr std::array<Parameter, count + 1> parameters{
      scoped_parameter<Root, P>()..., Parameter{&type<Root>, nullptr, DependencyKind::self, false}};
};

template <class Impl>
void* as_scoped_factory(void* memory) {
  return static_cast<ScopedFactory*>(static_cast<Impl*>(memory));
}

/// The functions of a factory's descriptor. A descriptor<F, Taken, Stored, Types...> makes the
/// instances.
template <class Root, class F, class Taken, class Stored, class... Types>
struct ScopedFactoryFunctions {
  using ScopedTypes = ScopedParameters<Root, Taken>;
  using Impl = ScopedFactoryImpl<ScopedTypes::count>;

  static Result<> make(void* memory, const void* factory, void* const* arguments) {
    ::new (memory) Impl(descriptor<F, Taken, Stored, Types...>, factory, arguments, &type<Root>);
    return {};
  }
  static constexpr std::array<ProvidedType, sizeof...(Types) + 1> provided{
      ProvidedType{&type<Types>, &as_scoped_factory<Impl>}...,
      ProvidedType{&type<ScopedFactoryKey<Root>>, &as_scoped_factory<Impl>}};
};

template <class Root, class F, class Taken, class Stored, class Service, class... Interfaces>
inline constexpr TypeDescriptor scoped_factory_descriptor{
    &type<Service>,
    ScopedFactoryFunctions<Root, F, Taken, Stored, Service, Interfaces...>::provided,
    ScopedParameters<Root, Taken>::parameters,
    sizeof(typename ScopedFactoryFunctions<Root, F, Taken, Stored, Service, Interfaces...>::Impl),
    alignof(typename ScopedFactoryFunctions<Root, F, Taken, Stored, Service, Interfaces...>::Impl),
    &ScopedFactoryFunctions<Root, F, Taken, Stored, Service, Interfaces...>::make,
    &destroy<typename ScopedFactoryFunctions<Root, F, Taken, Stored, Service, Interfaces...>::Impl>,
    nullptr,
    nullptr,
    false,
};

template <class T>
constexpr bool has_start_or_stop =
    requires(T& service) { service.start(); } || requires(T& service) { service.stop(); };

template <class Root, class F, class Taken, class Stored, class Service, class... Interfaces>
RegistrationInput scoped_registration(F factory) {
  static_assert(std::is_class_v<Root> && !std::is_const_v<Root>,
                "scoped<Root>: the root is an object of a class");
  static_assert((std::is_base_of_v<Interfaces, Service> && ...),
                "scoped<Root, ...>: the service does not derive from its interfaces");
  static_assert(!has_start_or_stop<Service>,
                "a scoped service is made and destroyed with its scope, without waiting: it has "
                "no start() and no stop()");
  static_assert(alignof(Stored) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__,
                "a scoped service is not over-aligned");
  return {&scoped_factory_descriptor<Root, F, Taken, Stored, Service, Interfaces...>,
          store_factory(std::move(factory)), &type<Root>};
}

}  // namespace detail

template <class Root, class T, class... Interfaces>
RegistrationInput scoped_constructor_registration() {
  using F = ConstructorTag<T>;
  return detail::scoped_registration<Root, F, decltype(constructor_parameters<T>()), T, T,
                                     Interfaces...>(F());
}

template <class Root, class F, class... Interfaces>
RegistrationInput scoped_factory_registration(F factory) {
  using Of = FactoryOf<F>;
  static_assert(std::is_class_v<typename Of::Service>, "a factory returns an object of a class");
  return detail::scoped_registration<Root, F, typename Of::ParameterTypes, typename Of::Stored,
                                     typename Of::Service, Interfaces...>(std::move(factory));
}

}  // namespace weir::inject
