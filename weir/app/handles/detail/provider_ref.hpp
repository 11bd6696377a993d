// Counted references to providers, which stop only when no reference is left.
#pragma once

#include "weir/app/describe/detail/slot_array.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/loop/detail/timers.hpp"
#include "weir/task/cancel.hpp"

namespace weir {
class Loop;
}

namespace weir::inject {

class CoreAgent;
class ProviderRef;
struct Instance;
struct Providers;

/// One provider of a parameter that uses it from time to time, such as a Remote with its calls.
/// Threads: those of the service that uses it.
/// Lifetime: outlives its references.
class CountedProvider : loop::Timer {
 public:
  /// `object` is the object that the parameter takes from the instance `of`.
  CountedProvider(void* object, const Instance& of) noexcept
      : loop::Timer(&CountedProvider::on_timeout), object_(object), instance_(of) {}

  void* object() const noexcept { return object_; }
  const Instance& instance() const noexcept { return instance_; }
  /// Returns the core that the provider lives on.
  unsigned core() const noexcept;
  bool in_use() const noexcept { return !refs_.empty(); }

  /// The action after the last reference to a leaving provider has ended.
  struct OnUnused {
    /// Destroys the provider.
    void (*callback)(CountedProvider& provider, const OnUnused& on_unused);
    CoreAgent* agent;
    Index dependency;
    Providers* providers;
  };
  /// Requests that the provider leaves; no new references are made. References that are still held
  /// after the provider's own stop timeout are cancelled, and still waited for. Call it while the
  /// provider is in use.
  void release_when_unused(Loop& loop, const OnUnused& on_unused) noexcept;

 private:
  friend class ProviderRef;
  static void on_timeout(loop::Timer& self);

  void* object_;
  const Instance& instance_;
  weir::detail::List<ProviderRef> refs_;
  OnUnused on_unused_{};
};

/// A reference to a provider from construction to destruction.
class ProviderRef : public weir::detail::ListNode {
 public:
  /// `cancel`, if not null, is cancelled if the provider leaves and its stop timeout has passed.
  ProviderRef(CountedProvider& of, CancelSource* cancel) noexcept : of_(of), cancel_(cancel) {
    of.refs_.push_back(*this);
  }
  ~ProviderRef() {
    unlink();
    if (of_.on_unused_.callback != nullptr && !of_.in_use()) end();
  }
  ProviderRef(const ProviderRef&) = delete;
  ProviderRef& operator=(const ProviderRef&) = delete;

 private:
  friend class CountedProvider;
  void end();

  CountedProvider& of_;
  CancelSource* cancel_;
};

}  // namespace weir::inject
