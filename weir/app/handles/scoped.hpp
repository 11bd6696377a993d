// inject::Scoped<Root>: services with one instance for each request, connection or other scope.
#pragma once

#include <functional>
#include <type_traits>

#include "weir/app/handles/detail/provider_ref.hpp"
#include "weir/app/handles/detail/scoped_factory.hpp"
#include "weir/app/handles/handles.hpp"
#include "weir/base/result.hpp"

namespace weir::inject {

/// An open scope, without the type of its root.
class ScopeBase {
 public:
  ScopeBase(const ScopeBase&) = delete;
  ScopeBase& operator=(const ScopeBase&) = delete;

 protected:
  ScopeBase(const Providers& factories, void* root) noexcept : factories_(factories), root_(root) {}
  ~ScopeBase();
  Result<void*> get(const Type* type, const Filter* filter);

 private:
  /// The header in front of an instance, in the same block.
  struct InstanceHeader;

  InstanceHeader* find(const ScopedFactory& scoped_factory) const noexcept;
  Result<InstanceHeader*> make_all(CountedProvider& provider);
  Result<InstanceHeader*> make(const ScopedFactory& scoped_factory, CountedProvider* used);
  void destroy_back_to(const InstanceHeader* kept) noexcept;

  const Providers& factories_;
  void* root_;
  InstanceHeader* last_ = nullptr;
};

/// One scope, such as a request. It has one instance of each scoped service that is requested. The
/// scope makes an instance when it is first needed, after the scoped services that the instance
/// needs. All instances are destroyed with the scope, in reverse order. Each instance allocates
/// one block; opening the scope allocates nothing.
/// Threads: the core that opened it.
/// Lifetime: its root and the service that opened it outlive it.
template <class Root>
class [[nodiscard]] ServiceScope : ScopeBase {
 public:
  ServiceScope(const Providers& factories, Root& root) noexcept : ScopeBase(factories, &root) {}

  /// Returns this scope's T, which was registered by App::scoped<Root>(). A filter selects the
  /// first one that it accepts. The reference is valid as long as the scope. Exceptions of
  /// constructors and factories are passed on. The instances that were made for a failed one are
  /// destroyed, also after an exception.
  /// Errors: those of the factories. Errc::not_found if no service provides a T, or if the
  /// provider waits for others (see App::explain()). Errc::conflict if several services provide a
  /// T and there is no filter.
  template <class T, class Filter = void>
  Result<std::reference_wrapper<T>> get() {
    WEIR_TRY(void* found, ScopeBase::get(&type<std::remove_const_t<T>>, filter_of<Filter>()));
    return std::ref(*static_cast<T*>(found));
  }
};

/// A parameter by which a service opens scopes, each around a piece of work that has a Root:
///
///   app.scoped<http::Request>([](http::Request& of, Database& database) { return Session(...); });
///   ...
///   explicit Web(inject::Scoped<http::Request> requests) : requests_(requests) {}
///   Task<http::Response> page(http::Request& request) {
///     auto scope = requests_.open(request);
///     const auto session = scope.get<Session>();
///     if (!session) co_return http::Response(http::Status::service_unavailable);
///     ...
///
/// A scoped service may take the root, the services that a per-core service may take, and other
/// scoped services of the same root. No other service may take a scoped service. A scoped service
/// has no start() and no stop(). Its dependencies stop only when all scopes that have an instance
/// are closed; on_change() reports that such a stop is waiting.
/// Threads: the service's core.
/// Lifetime: the handle, which may be copied, and its scopes live as long as the service.
template <class Root>
class Scoped : public ProvidersHandle {
 public:
  static constexpr Parameter parameter{&type<ScopedFactoryKey<Root>>, nullptr,
                                       DependencyKind::scoped, true};
  static_assert(!std::is_const_v<Root>, "Scoped<Root>: Root is not const");
  using ProvidersHandle::ProvidersHandle;

  inject::ServiceScope<Root> open(Root& root) const noexcept {
    return inject::ServiceScope<Root>(this->providers(), root);
  }
};

}  // namespace weir::inject
