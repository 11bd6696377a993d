// Scoped<Seed>: services of which each request, connection or other piece of work has its own.
#pragma once

#include <functional>
#include <type_traits>

#include "weir/app/handles/handles.hpp"
#include "weir/app/handles/detail/scoped_factory.hpp"
#include "weir/app/used_provider.hpp"
#include "weir/base/result.hpp"

namespace weir {
namespace wiring {

/// A scope that is open, without the type of its seed.
class OpenScope {
 public:
  OpenScope(const OpenScope&) = delete;
  OpenScope& operator=(const OpenScope&) = delete;

 protected:
  OpenScope(const Providers& makers, void* seed) noexcept : makers_(makers), seed_(seed) {}
  ~OpenScope();
  Result<void*> get(const Type* type, const Filter* filter);

 private:
  /// Stands before an instance, in the same block.
  struct Instance;

  Instance* find(const ScopedMaker& maker) const noexcept;
  Result<Instance*> make_all(UsedProvider& provider);
  Result<Instance*> make(const ScopedMaker& maker, UsedProvider* used);
  void destroy_back_to(const Instance* kept) noexcept;

  const Providers& makers_;
  void* seed_;
  Instance* last_ = nullptr;
};

}  // namespace wiring

/// One scope, such as a request: it has an instance of each scoped service that is asked for, made
/// when it is first needed, and those that this one needs before it. All go with the scope, in
/// reverse. Making them allocates one block each, opening the scope none.
/// Threads: the core's. Lifetime: within that of its seed and of the service that opened it.
template <class Seed>
class [[nodiscard]] ServiceScope : wiring::OpenScope {
 public:
  ServiceScope(const wiring::Providers& makers, Seed& seed) noexcept : OpenScope(makers, &seed) {}

  /// This scope's T: what was registered by App::scoped<Seed>(). With a filter, the first that it
  /// accepts. Valid as long as the scope. Throws what a constructor or factory throws; nothing that
  /// was made for it stays then. Errors: those of the factories, likewise; Errc::not_found where
  /// nobody provides it, or what does waits for others (see App::explain()); Errc::conflict where
  /// several do and there is no filter.
  template <class T, class Filter = void>
  Result<std::reference_wrapper<T>> get() {
    const Result<void*> found =
        OpenScope::get(&wiring::type<std::remove_const_t<T>>, wiring::filter_of<Filter>());
    if (!found) return fail(found.error());
    return std::ref(*static_cast<T*>(*found));
  }
};

/// A parameter by which a service opens scopes, each around a piece of its work that it has a Seed
/// for:
///
///   app.scoped<http::Request>([](http::Request& of, Database& database) { return Session(...); });
///   ...
///   explicit Web(Scoped<http::Request> requests) : requests_(requests) {}
///   Task<http::Response> page(http::Request& request) {
///     auto scope = requests_.open(request);
///     const auto session = scope.get<Session>();
///     if (!session) co_return http::status(503);
///     ...
///
/// A scoped service may take the seed, services of its core and shared ones, like those of the core
/// themselves, and other scoped ones of the same seed; nobody else may take those. It does without
/// start() and stop(). What it takes does not stop before the scopes that have an instance are
/// closed; on_change() tells when that is awaited.
/// Threads: the service's core. Lifetime: of the handle, which may be copied, and of what it opens,
/// that of the service.
template <class Seed>
class Scoped : public wiring::ProvidersHandle {
 public:
  static constexpr wiring::Parameter needs{&wiring::type<wiring::MadeFor<Seed>>, nullptr,
                                           wiring::Need::opened, true};
  static_assert(!std::is_const_v<Seed>, "scopes are opened for objects that may change");
  using ProvidersHandle::ProvidersHandle;

  ServiceScope<Seed> open(Seed& seed) const noexcept {
    return ServiceScope<Seed>(this->of(), seed);
  }
};

}  // namespace weir
