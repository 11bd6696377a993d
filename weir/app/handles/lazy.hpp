// inject::Lazy<T>: a service that is made, or waited for, when it is first used.
#pragma once

#include <cassert>
#include <functional>
#include <system_error>
#include <type_traits>

#include "weir/app/describe/detail/parameter.hpp"
#include "weir/app/describe/detail/slot_array.hpp"
#include "weir/task/detail/wait.hpp"

namespace weir::inject {

class CoreAgent;
struct LazyState;

/// Waits until the service of a Lazy parameter is available.
class LazyAwaiter : public QueuedWait {
 public:
  bool ready() const noexcept;
  bool begin(Loop&);
  void withdraw() noexcept { unlink(); }
  void complete_with_error(std::error_code error) {
    error_ = error;
    grant();
  }

 protected:
  explicit LazyAwaiter(void* given) noexcept : state_(static_cast<LazyState*>(given)) {}

  void* object() const noexcept;

  LazyState* state_;
  std::error_code error_;
};

/// The state of one Lazy parameter: its object and its waiters.
/// Threads: those of the requiring service.
struct LazyState {
  void* object = nullptr;
  bool request_pending = false;  ///< the request was sent and has not been answered
  std::error_code error{};       ///< reason why there is no object
  WaitQueue<LazyAwaiter> waiting;
  /// Sends a request to the app's core. The answer may already be there when it returns.
  void (*request)(LazyState&) = nullptr;
  CoreAgent* agent = nullptr;
  Index dependency = no_index;

  /// Returns false on a core other than the requiring service's, which must not read this state.
  bool is_on_own_core() const noexcept;
};

inline void* LazyAwaiter::object() const noexcept {
  return state_->object;
}
inline bool LazyAwaiter::ready() const noexcept {
  assert(state_->is_on_own_core() && "used on another core than its service's");
  return object() != nullptr;
}

/// A parameter for a service that need not exist when its requester is made. get() requests it
/// when it is needed. A service that is required only through Lazy parameters is made when get()
/// is first called; it then runs like any other service. The requester depends on the service as
/// on a T& once get() has returned it. The requester then stops before that service; if the
/// service stops, the requester starts again when the service is back. Cycles of dependencies
/// through a Lazy are therefore errors like all other cycles. A filter selects the first service
/// that it accepts. T is const for a shared service, and always in a shared service.
///
///   explicit Reports(inject::Lazy<Renderer> renderer) : renderer_(renderer) {}
///   ...
///   WEIR_CO_TRY(const auto renderer, co_await renderer_.get());
///   renderer.get().render(page);
///
/// Threads: the service's core (asserted), as for Optional.
/// Lifetime: the handle, which may be copied, and the result of get() live as long as the
/// requester.
template <class T, class Filter = void>
class Lazy {
 public:
  static constexpr Parameter parameter{&type<std::remove_const_t<T>>, filter_of<Filter>(),
                                       DependencyKind::lazy, !std::is_const_v<T>};
  explicit Lazy(void* given) noexcept : given_(given) {}

  class [[nodiscard]] Get : public LazyAwaiter {
   public:
    using Value = Result<std::reference_wrapper<T>>;
    explicit Get(void* given) noexcept : LazyAwaiter(given) {}
    Value value() const {
      if (error_) return fail(error_);
      return std::ref(*static_cast<T*>(object()));
    }
    WaitAwaiter<Get> operator co_await() && noexcept { return WaitAwaiter<Get>(*this); }
  };

  /// `co_await lazy.get()` returns a Result<std::reference_wrapper<T>>. It returns immediately if
  /// an earlier call has succeeded. Otherwise the service is made and started, and this waits for
  /// it, for as long as that service waits for its own providers.
  /// Errors: the error that making or starting the service failed with. Errc::not_found if no
  /// service provides it any more, or if it was stopped by App::stop(id). Errc::closed if it is
  /// not available and the requester is stopping. Errc::cancelled.
  /// Cancel: stops waiting; the requested service starts nevertheless.
  Get get() const noexcept { return Get(given_); }

 private:
  void* given_;
};

}  // namespace weir::inject
