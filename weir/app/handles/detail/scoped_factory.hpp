// Makers of scoped services: what stands in the graph for a service of which each scope has its
// own instance.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "weir/app/describe/detail/descriptor.hpp"

namespace weir::wiring {

struct Node;

/// Under this type all makers for scopes of a Seed are found.
template <class Seed>
struct MadeFor {};

/// One core's: holds what the instances are given, so that none of it stops before the scopes.
/// Threads: that core's.
class ScopedMaker {
 public:
  ScopedMaker(const ScopedMaker&) = delete;
  ScopedMaker& operator=(const ScopedMaker&) = delete;

  /// Of the instances.
  const Plan& plan() const noexcept { return plan_; }
  const void* factory() const noexcept { return factory_; }
  /// Whether they are of that type, or have it as an interface, and the filter accepts them.
  bool provides(const Type* type, const Filter* filter) const;
  /// The object of an instance, which lies in `memory`, as that type.
  void* cast(void* memory, const Type* type) const noexcept;

  enum class Source : std::uint8_t {
    core,   ///< argument() is what the instance is given
    scope,  ///< argument() is the ScopedMaker of what it is given
    seed,   ///< that is given
  };
  Source source(std::size_t parameter) const noexcept { return sources_[parameter]; }
  void* argument(std::size_t parameter) const noexcept { return arguments_[parameter]; }

 protected:
  /// `given` has an argument for each parameter of the instances, and `node` an edge.
  ScopedMaker(const Plan& plan, const void* factory, void* const* given, const Node& node,
              const Type* seed, void** arguments, Source* sources) noexcept;
  ~ScopedMaker() = default;

 private:
  const Plan& plan_;
  const void* factory_;
  const Node& node_;
  void* const* arguments_;
  const Source* sources_;
};

namespace detail {

/// What a maker keeps of so many parameters.
template <std::size_t count>
struct ScopedMakerRoom {
  std::array<void*, count> arguments;
  std::array<ScopedMaker::Source, count> sources;
};

/// The room comes first: it is filled while the maker is made.
template <std::size_t count>
class ScopedMakerFor : ScopedMakerRoom<count>, public ScopedMaker {
 public:
  ScopedMakerFor(const Plan& plan, const void* factory, void* const* given, const Type* seed)
      : ScopedMaker(plan, factory, given, *static_cast<const Node*>(given[count]), seed,
                    this->arguments.data(), this->sources.data()) {}
};

template <class Seed, class P>
constexpr Parameter scoped_parameter() {
  if constexpr (std::is_same_v<std::remove_cvref_t<P>, Seed>) {
    static_assert(std::is_lvalue_reference_v<P>, "a scoped service takes the seed by reference");
    return {&type<Seed>, nullptr, Need::seed, false};
  } else {
    constexpr Parameter parameter = parameter_of<P>();
    static_assert(parameter.need != Need::scope && parameter.need != Need::routes,
                  "a scoped service takes no Scope& and no http::Routes&, which would outlive it");
    static_assert(parameter.need != Need::requester,
                  "a scoped service takes no Requester: it is made for a scope");
    return parameter;
  }
}

/// The parameters of an instance, and the node itself behind them.
template <class Seed, class Taken>
struct ScopedParameters;
template <class Seed, class... P>
struct ScopedParameters<Seed, Parameters<P...>> {
  static constexpr std::size_t count = sizeof...(P);
  static_assert(count < parameters_max, "a scoped service asks for at most 15 things");
  static constexpr std::array<Parameter, count + 1> parameters{
      scoped_parameter<Seed, P>()..., Parameter{&type<Seed>, nullptr, Need::self, false}};
};

template <class Maker>
void* as_maker(void* memory) {
  return static_cast<ScopedMaker*>(static_cast<Maker*>(memory));
}

/// The plan of makers, whose instances are made by a plan<F, Taken, Stored, Types...>.
template <class Seed, class F, class Taken, class Stored, class... Types>
struct MakerPlan {
  using Needs = ScopedParameters<Seed, Taken>;
  using Maker = ScopedMakerFor<Needs::count>;

  static Result<> make(void* memory, const void* factory, void* const* arguments) {
    ::new (memory) Maker(plan<F, Taken, Stored, Types...>, factory, arguments, &type<Seed>);
    return {};
  }
  static constexpr std::array<Provided, sizeof...(Types) + 1> provided{
      Provided{&type<Types>, &as_maker<Maker>}...,
      Provided{&type<MadeFor<Seed>>, &as_maker<Maker>}};
};

template <class Seed, class F, class Taken, class Stored, class Service, class... Interfaces>
inline constexpr Plan maker_plan{
    &type<Service>,
    MakerPlan<Seed, F, Taken, Stored, Service, Interfaces...>::provided,
    ScopedParameters<Seed, Taken>::parameters,
    sizeof(typename MakerPlan<Seed, F, Taken, Stored, Service, Interfaces...>::Maker),
    alignof(typename MakerPlan<Seed, F, Taken, Stored, Service, Interfaces...>::Maker),
    &MakerPlan<Seed, F, Taken, Stored, Service, Interfaces...>::make,
    &destroy<typename MakerPlan<Seed, F, Taken, Stored, Service, Interfaces...>::Maker>,
    nullptr,
    nullptr,
    false,
};

template <class T>
constexpr bool waits_to_start_or_stop =
    requires(T& service) { service.start(); } || requires(T& service) { service.stop(); };

template <class Seed, class F, class Taken, class Stored, class Service, class... Interfaces>
Blueprint scoped_blueprint(F factory) {
  static_assert(std::is_class_v<Seed> && !std::is_const_v<Seed>,
                "scoped<Seed>: the seed is an object of a class");
  static_assert((std::is_base_of_v<Interfaces, Service> && ...),
                "scoped<Seed, ...>: a service is none of its interfaces");
  static_assert(!waits_to_start_or_stop<Service>,
                "a scoped service is made and destroyed with its scope, without waiting: it has "
                "no start() and no stop()");
  static_assert(alignof(Stored) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__,
                "a scoped service is aligned as others are");
  return {&maker_plan<Seed, F, Taken, Stored, Service, Interfaces...>,
          keep_factory(std::move(factory)), &type<Seed>};
}

}  // namespace detail

template <class Seed, class T, class... Interfaces>
Blueprint scoped_blueprint_of_constructor() {
  using F = Constructing<T>;
  return detail::scoped_blueprint<Seed, F, decltype(constructor_parameters<T>()), T, T,
                                  Interfaces...>(F());
}

template <class Seed, class F, class... Interfaces>
Blueprint scoped_blueprint_of_factory(F factory) {
  using Of = FactoryOf<F>;
  static_assert(std::is_class_v<typename Of::Service>, "a factory returns an object of a class");
  return detail::scoped_blueprint<Seed, F, typename Of::Taken, typename Of::Stored,
                                  typename Of::Service, Interfaces...>(std::move(factory));
}

}  // namespace weir::wiring
