// inject::Remote<T>: a service on another core, which is called from this core.
#pragma once

#include <cassert>
#include <functional>
#include <type_traits>
#include <utility>

#include "weir/app/handles/detail/provider_ref.hpp"
#include "weir/app/handles/handles.hpp"
#include "weir/loop/loop.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/task/task.hpp"
#include "weir/task/timeout.hpp"

namespace weir::inject {

/// The value that a method returns, directly or through its task.
template <class Method, class T, class... Args>
using RemoteValue = typename weir::detail::Awaited<std::invoke_result_t<Method, T&, Args...>>::type;

template <class T>
inline constexpr bool is_reference_to_another_core = std::is_reference_v<T>;
template <class T>
inline constexpr bool is_reference_to_another_core<std::reference_wrapper<T>> = true;

/// A method of T that may be called from another core. Its arguments are moved there, also if it
/// takes them by `const&`. It takes no reference that it could write through. It returns a value,
/// directly or through its task.
template <class Method, class T, class... Args>
concept RemoteMethod =
    std::is_member_function_pointer_v<Method> && std::is_invocable_v<Method, T&, Args...> &&
    (!is_reference_to_another_core<Args> && ...) &&
    !is_reference_to_another_core<RemoteValue<Method, T, Args...>>;

/// A parameter for a service that was registered by App::on_core(). Its methods run on that
/// service's own core. The service may appear and disappear, as for Optional. The requester does
/// not wait for it; a call returns an error if it is absent. A filter selects the first present
/// service that it accepts. A provider stops when the running calls have ended. Calls that
/// still run after its stop_timeout are cancelled.
///
///   explicit Web(inject::Remote<Ledger> ledger) : ledger_(ledger) {}
///   ...
///   const auto balance = co_await ledger_.call(&Ledger::add, account, 5);
///   if (!balance) co_return http::Response(http::Status::service_unavailable);
///
/// Threads: call() on any of the runtime's loops; all other functions on the service's core
/// (asserted). A shared service may therefore use call() in functions that other services call on
/// their cores. Such a call first moves to the core of the service that owns the handle.
/// Lifetime: the handle, which may be copied, and its calls live as long as the service that owns
/// it.
template <class T, class Filter = void>
class Remote : public ProvidersHandle {
 public:
  static constexpr Parameter parameter{&type<std::remove_const_t<T>>, filter_of<Filter>(),
                                       DependencyKind::remote, false};
  using ProvidersHandle::ProvidersHandle;

  /// Returns true if the service is present now.
  explicit operator bool() const noexcept { return !empty(); }

  /// `co_await remote.call(&T::method, arguments...)` calls the method on the service's core. The
  /// result is a Result<U> if the method returns a U, a Result<U>, or a task of one of them. The
  /// call throws the exceptions of the method. The arguments are moved in and live here until the
  /// call ends.
  /// Errors: those of the method; Errc::not_found if the service is absent, and then nothing was
  /// called.
  /// Cancel: passed on to the method's task; returns when that task has finished.
  template <class Method, class... Args>
    requires RemoteMethod<Method, T, Args...>
  auto call(Method method, Args... arguments) const {
    return call_at(this->providers_from_any_core(), method, std::move(arguments)...);
  }

 private:
  template <class Method, class... Args>
  static auto call_at(const Providers& providers, Method method, Args... arguments)
      -> Task<typename weir::detail::AsResult<RemoteValue<Method, T, Args...>>::type> {
    using Value = RemoteValue<Method, T, Args...>;
    Context context = co_await this_context();
    assert(&context.loop->group() == &providers.loop->group() &&
           "the calling loop belongs to another runtime");
    if (context.loop != providers.loop) {
      auto hop = on_core(providers.loop->core(), &Remote::template call_at<Method, Args...>,
                         std::cref(providers), method, std::move(arguments)...);
      co_return co_await std::move(hop);
    }
    assert(providers.is_on_own_core());
    if (providers.objects.empty()) co_return fail(Errc::not_found);
    auto& provider = *static_cast<CountedProvider*>(providers.objects.front());
    CancelSource cancel(context.cancel);
    const ProviderRef use(provider, &cancel);
    context.cancel = &cancel;
    auto task = on_core(provider.core(), method, std::ref(*static_cast<T*>(provider.object())),
                        std::move(arguments)...);
    auto calling = in_context(context, std::move(task));
    if constexpr (std::is_void_v<Value>) {
      co_await std::move(calling);
      co_return {};
    } else {
      co_return co_await std::move(calling);
    }
  }
};

}  // namespace weir::inject
