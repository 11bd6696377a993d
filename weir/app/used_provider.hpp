// Providers that are used for a while at a time, and do not stop while they are.
#pragma once

#include "weir/app/describe/detail/slot_array.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/loop/detail/timers.hpp"
#include "weir/task/cancel.hpp"

namespace weir {
class Loop;
}

namespace weir::wiring {

class CoreServices;
class ProviderUse;
struct Node;
struct Providers;

/// One provider of a parameter that uses it now and then, such as a Remote with its calls.
/// Threads: those of the service that uses it. Lifetime: that of its uses, at least.
class UsedProvider : Timer {
 public:
  /// `object` is what the parameter takes from the node `of`.
  UsedProvider(void* object, const Node& of) noexcept
      : Timer(&UsedProvider::out_of_patience), object_(object), node_(of) {}

  void* object() const noexcept { return object_; }
  const Node& node() const noexcept { return node_; }
  /// The core it lives on.
  unsigned core() const noexcept;
  bool used() const noexcept { return !uses_.empty(); }

  /// What is to be done when the last use of one that shall go has ended.
  struct Farewell {
    void (*unused)(UsedProvider& provider, const Farewell& farewell);  ///< destroys it
    CoreServices* services;
    Node* user;
    Index edge;
    Providers* among;
  };
  /// While it is used: no more uses come. Those that have not ended by the provider's own stop
  /// deadline are cancelled, and waited for all the same.
  void let_go(Loop& loop, const Farewell& farewell) noexcept;

 private:
  friend class ProviderUse;
  static void out_of_patience(Timer& self);

  void* object_;
  const Node& node_;
  List<ProviderUse> uses_;
  Farewell farewell_{};
};

/// A use, from construction to destruction.
class ProviderUse : public ListNode {
 public:
  /// `cancel`, if any, is cancelled when the provider shall go and has lost patience.
  ProviderUse(UsedProvider& of, CancelSource* cancel) noexcept : of_(of), cancel_(cancel) {
    of.uses_.push_back(*this);
  }
  ~ProviderUse() {
    unlink();
    if (of_.farewell_.unused != nullptr && !of_.used()) end();
  }
  ProviderUse(const ProviderUse&) = delete;
  ProviderUse& operator=(const ProviderUse&) = delete;

 private:
  friend class UsedProvider;
  void end();

  UsedProvider& of_;
  CancelSource* cancel_;
};

}  // namespace weir::wiring
