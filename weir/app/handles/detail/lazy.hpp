// Lazy<T>: another service that is made, or waited for, when it is first used.
#pragma once

#include <cassert>
#include <functional>
#include <system_error>
#include <type_traits>

#include "weir/app/parameter.hpp"
#include "weir/app/describe/detail/slot_array.hpp"
#include "weir/task/detail/wait.hpp"

namespace weir {
namespace wiring {

class CoreServices;
struct Deferred;
struct Node;

/// Waiting for what a Lazy stands for.
class DeferredWait : public QueuedWait {
 public:
  bool ready() const noexcept;
  bool begin(Loop&);
  void withdraw() noexcept { unlink(); }
  void refuse(std::error_code error) {
    error_ = error;
    grant();
  }

 protected:
  explicit DeferredWait(void* given) noexcept : of_(static_cast<Deferred*>(given)) {}

  void* object() const noexcept;

  Deferred* of_;
  std::error_code error_;
};

/// What a Lazy parameter has been given, or who waits for it.
/// Threads: those of the service that asks; `refusal` is the home core's until the order to refuse.
struct Deferred {
  void* object = nullptr;
  bool asking = false;        ///< and no answer has come
  std::error_code refusal{};  ///< why there is none
  WaitQueue<DeferredWait> waiting;
  /// Sends the home core the question, and may have the answer when it returns.
  void (*ask)(Deferred&) = nullptr;
  CoreServices* services = nullptr;
  Node* node = nullptr;
  Index edge = none;

  /// False on another core than that of the service that asks, which must not look at this.
  bool is_at_home() const noexcept;
};

inline void* DeferredWait::object() const noexcept {
  return of_->object;
}
inline bool DeferredWait::ready() const noexcept {
  assert(of_->is_at_home() && "used on another core than its service's");
  return object() != nullptr;
}

}  // namespace wiring

/// A parameter for a service that is not waited for before its requester is made: get() asks for it
/// when it is needed. What others take as Lazy only is not made before the first of them asks; from
/// then on it runs like any other. Once get() has given it, the requester depends on it as on a T&:
/// it stops before it and, should it go, starts again when it is back. Everybody who takes part in
/// a circle of dependencies would have to stop before the others, so circles through a Lazy are
/// reported like all others. With a filter, it is the first that the filter accepts. T is const for
/// a shared service (and always in one).
///
///   explicit Reports(Lazy<Renderer> renderer) : renderer_(renderer) {}
///   ...
///   const auto renderer = co_await renderer_.get();
///   if (!renderer) co_return fail(renderer.error());
///   renderer->get().render(page);
///
/// Threads: the service's core (asserted), as for an Optional. Lifetime: of the handle, which may
/// be copied, and of what get() gave, that of the service.
template <class T, class Filter = void>
class Lazy {
 public:
  static constexpr wiring::Parameter needs{&wiring::type<std::remove_const_t<T>>,
                                           wiring::filter_of<Filter>(), wiring::Need::lazy,
                                           !std::is_const_v<T>};
  explicit Lazy(void* given) noexcept : given_(given) {}

  class [[nodiscard]] Get : public wiring::DeferredWait {
   public:
    using Value = Result<std::reference_wrapper<T>>;
    explicit Get(void* given) noexcept : DeferredWait(given) {}
    Value value() const {
      if (error_) return fail(error_);
      return std::ref(*static_cast<T*>(object()));
    }
    Awaiting<Get> operator co_await() && noexcept { return Awaiting<Get>(*this); }
  };

  /// `co_await lazy.get()`: a Result<std::reference_wrapper<T>>, at once if it was given before.
  /// Otherwise the service is made and started, and this waits for it, as long as that one waits
  /// for others. Errors: that with which it could not be made or started; Errc::not_found when
  /// nobody provides it any more, or it was stopped by hand; Errc::closed when it is not there and
  /// the requester stops; Errc::cancelled.
  /// Cancel: stops waiting; what was asked for is started all the same.
  Get get() const noexcept { return Get(given_); }

 private:
  void* given_;
};

}  // namespace weir
