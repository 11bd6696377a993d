// Remote<T>: a service that lives on another core, called from this one.
#pragma once

#include <cassert>
#include <functional>
#include <type_traits>
#include <utility>

#include "weir/app/handles/handles.hpp"
#include "weir/app/used_provider.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/task.hpp"
#include "weir/task/timeout.hpp"

namespace weir {
namespace wiring {

/// What a method gives in the end, there.
template <class Method, class T, class... Args>
using RemoteValue = typename weir::detail::Awaited<std::invoke_result_t<Method, T&, Args...>>::type;

template <class T>
inline constexpr bool is_reference_to_another_core = std::is_reference_v<T>;
template <class T>
inline constexpr bool is_reference_to_another_core<std::reference_wrapper<T>> = true;

}  // namespace wiring

/// A method of T that may be called from another core: by arguments that are moved there, also
/// where it takes them by `const&`, never by a reference that it could write through; and what it
/// gives, itself or by its task, is a value.
template <class Method, class T, class... Args>
concept RemoteMethod =
    std::is_member_function_pointer_v<Method> && std::is_invocable_v<Method, T&, Args...> &&
    (!wiring::is_reference_to_another_core<Args> && ...) &&
    !wiring::is_reference_to_another_core<wiring::RemoteValue<Method, T, Args...>>;

/// A parameter for a service that was registered by App::on_core() and lives there: its methods are
/// called there, on its own core, whichever that is. It comes and goes, as for an Optional: nobody
/// waits for it, and each call says whether it was there. With a filter, it is the first there is
/// that the filter accepts. A provider stops when the calls under way have come to their end; those
/// that take longer than its stop_deadline are cancelled.
///
///   explicit Web(Remote<Ledger> ledger) : ledger_(ledger) {}
///   ...
///   const auto balance = co_await ledger_.call(&Ledger::add, account, 5);
///   if (!balance) co_return http::status(503);
///
/// Threads: of call(), any of the runtime's loops, so that a shared service may use it in what
/// others call from their cores: a call from another core than that service's own goes by that one.
/// Of everything else, the service's core (asserted). Lifetime: of the handle, which may be copied,
/// and of its calls, that of the service.
template <class T, class Filter = void>
class Remote : public wiring::ProvidersHandle {
 public:
  static constexpr wiring::Parameter needs{&wiring::type<std::remove_const_t<T>>,
                                           wiring::filter_of<Filter>(), wiring::Need::remote,
                                           false};
  using ProvidersHandle::ProvidersHandle;

  /// Whether somebody is there now.
  explicit operator bool() const noexcept { return !empty(); }

  /// `co_await remote.call(&T::method, arguments...)`: calls it on the service's core; gives a
  /// Result<U> where the method returns a U, a Result<U>, or a task of one of them, and throws what
  /// that throws. The arguments are moved in and live here until the end. Errors: those of the
  /// method; Errc::not_found when nobody is there, in which case nothing was called.
  /// Cancel: passed on to the method's task; returns when that has finished.
  template <class Method, class... Args>
    requires RemoteMethod<Method, T, Args...>
  auto call(Method method, Args... arguments) const {
    return call_at(this->of_any_core(), method, std::move(arguments)...);
  }

 private:
  template <class Method, class... Args>
  static auto call_at(const wiring::Providers& providers, Method method, Args... arguments)
      -> Task<typename detail::AsResult<wiring::RemoteValue<Method, T, Args...>>::type> {
    using Value = wiring::RemoteValue<Method, T, Args...>;
    Context context = co_await this_context();
    assert(&context.loop->group() == &providers.home->group() && "of another runtime");
    if (context.loop != providers.home) {
      auto hop = on_core(providers.home->core(), &Remote::template call_at<Method, Args...>,
                         std::cref(providers), method, std::move(arguments)...);
      co_return co_await std::move(hop);
    }
    assert(providers.is_at_home());
    if (providers.objects.empty()) co_return fail(Errc::not_found);
    auto& provider = *static_cast<wiring::UsedProvider*>(providers.objects.front());
    CancelSource cancel(context.cancel);
    const wiring::ProviderUse use(provider, &cancel);
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

}  // namespace weir
