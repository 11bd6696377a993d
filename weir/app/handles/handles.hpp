// inject::Where, Optional, All and Requester: parameters of services besides plain references.
#pragma once

#include <cassert>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/app/describe/detail/parameter.hpp"
#include "weir/app/handles/detail/provider_ref.hpp"

namespace weir {
class Loop;
}  // namespace weir

namespace weir::inject {

// inject::Requester: makes one instance for each requiring service.

/// A parameter that makes the service once for each service that requires it. The instance lives
/// on the requiring service's core. It is made before the requiring service and removed with it.
///
///   app.per_core([](inject::Requester requester) { return Logger(requester.name()); });
///
/// Lifetime: a value; the name lives as long as the program.
class Requester {
 public:
  static constexpr Parameter parameter{&type<Requester>, nullptr, DependencyKind::requester, false};
  /// The container's data on the requiring service.
  struct Data {
    const Type* type;
    const Properties* properties;
    unsigned core;
  };
  explicit Requester(void* given) noexcept : data_(*static_cast<const Data*>(given)) {}

  /// Returns the type name of the requiring service, with namespaces.
  std::string_view name() const noexcept { return data_.type->name; }
  unsigned core() const noexcept { return data_.core; }
  /// Returns the properties of the requiring service; valid while that service is registered.
  const Properties& properties() const noexcept { return *data_.properties; }
  template <class T>
  bool is() const noexcept {
    return data_.type == &type<T>;
  }

 private:
  Data data_;
};

// inject::Where<T, Filter>: the service of a type that a filter accepts.

/// A parameter that requires a T whose properties `Filter` accepts. It gets the service that was
/// registered first, among those that are accepted and visible on its core. A filter is a class
/// with `bool operator()(const P&) const` for some property P, or for `const Properties&`. A
/// service without a P is not accepted, and a service is not accepted if the filter throws. T is
/// const for a shared service.
/// Lifetime: that of the requiring service; the object stays valid as long.
template <class T, class Filter>
class Where {
 public:
  static constexpr Parameter parameter{&type<std::remove_const_t<T>>, &filter<Filter>,
                                       DependencyKind::required, !std::is_const_v<T>};
  explicit Where(void* given) noexcept : object_(static_cast<T*>(given)) {}

  T& get() const noexcept { return *object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }

 private:
  T* object_;
};

/// The providers that are present for one parameter of one service. The set changes between two
/// runnables of a loop turn, never within one.
/// Threads: those of the service's core.
struct Providers {
  std::vector<void*> objects;  ///< for a Remote: the entries of `counted` that are not stopping
  std::function<void()> changed;
  std::vector<std::unique_ptr<CountedProvider>> counted;
  Loop* loop = nullptr;  ///< loop of the service's core; set before the service is made

  /// Returns false on another core, which may read only `loop`.
  bool is_on_own_core() const noexcept;
};

/// The common base of Optional, All, Remote and Scoped: handles that may be copied within their
/// service.
class ProvidersHandle {
 public:
  explicit ProvidersHandle(void* given) noexcept : providers_(static_cast<Providers*>(given)) {}

  std::size_t size() const noexcept { return providers().objects.size(); }
  bool empty() const noexcept { return providers().objects.empty(); }

  /// Sets a callback for changes. This core calls `changed` after each arrival of a provider, and
  /// for each departure before that provider stops. A parameter has one callback: a second call
  /// replaces the first. The callback is destroyed with the service.
  void on_change(std::function<void()> changed) const {
    assert(providers_->is_on_own_core() && "used on another core than its service's");
    providers_->changed = std::move(changed);
  }

 protected:
  ~ProvidersHandle() = default;
  const Providers& providers() const noexcept {
    assert(providers_->is_on_own_core() && "used on another core than its service's");
    return *providers_;
  }
  const Providers& providers_from_any_core() const noexcept { return *providers_; }

 private:
  Providers* providers_;
};

/// A parameter that may be absent, and may appear or disappear: `if (cache) cache->put(...)`. It
/// refers to the provider that arrived first if there are several. T is const for a shared service,
/// and always in a shared service.
/// Threads: the service's core (asserted). A shared service uses it in its start() and stop(), in
/// its scope's tasks and in on_change(). Functions that other services call on their cores must
/// not use it; these services take the parameter themselves.
/// Lifetime: the handle lives as long as the service. The object is valid until the next co_await;
/// a provider stops only after on_change() has reported its departure.
template <class T, class Filter = void>
class Optional : public ProvidersHandle {
 public:
  static constexpr Parameter parameter{&type<std::remove_const_t<T>>, filter_of<Filter>(),
                                       DependencyKind::optional, !std::is_const_v<T>};
  using ProvidersHandle::ProvidersHandle;

  explicit operator bool() const noexcept { return !empty(); }
  T* get() const noexcept {
    return empty() ? nullptr : static_cast<T*>(providers().objects.front());
  }
  T& operator*() const noexcept {
    assert(!empty());
    return *get();
  }
  T* operator->() const noexcept { return &**this; }
};

/// A parameter for all present providers, in order of arrival: `for (T& each : all)`. An iteration
/// must not contain a co_await.
/// Threads: the service's core (asserted); the rules of Optional for shared services apply.
/// Lifetime: the handle lives as long as the service. The objects are valid until the next
/// co_await; a provider stops only after on_change() has reported its departure.
template <class T, class Filter = void>
class All : public ProvidersHandle {
 public:
  static constexpr Parameter parameter = inject::Optional<T, Filter>::parameter;
  using ProvidersHandle::ProvidersHandle;

  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    Iterator() noexcept = default;
    explicit Iterator(std::vector<void*>::const_iterator at) noexcept : at_(at) {}
    T& operator*() const noexcept { return *static_cast<T*>(*at_); }
    T* operator->() const noexcept { return static_cast<T*>(*at_); }
    Iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    Iterator operator++(int) noexcept { return Iterator(at_++); }
    bool operator==(const Iterator&) const noexcept = default;

   private:
    std::vector<void*>::const_iterator at_;
  };
  Iterator begin() const noexcept { return Iterator(providers().objects.begin()); }
  Iterator end() const noexcept { return Iterator(providers().objects.end()); }
};

}  // namespace weir::inject
