// Cancellation: a tree of sources; asking one to cancel reaches everything that waits below it.
#pragma once

#include <utility>

#include "weir/base/detail/list.hpp"

namespace weir {

class WorkUnit;

/// Called once when its source is cancelled, after it was unlinked from the source. It asks (a
/// backend to cancel, a loop to run something) and never resumes a coroutine itself.
class CancelNode : public ListNode {
 public:
  using Function = void (*)(CancelNode&);
  explicit CancelNode(Function cancel) noexcept : cancel_(cancel) {}

 private:
  friend class CancelSource;
  Function cancel_;
};

/// Something that can be cancelled, once and for good: awaiting under a cancelled source fails
/// with Errc::cancelled at once wherever it would have had to wait. Cancelling asks; who cancels
/// still waits for the work to finish. A source with a parent is cancelled with it.
/// Threads: one loop's. Lifetime: its nodes and children leave before it is destroyed (asserted).
class CancelSource {
 public:
  CancelSource() noexcept : in_parent_(*this) {}
  /// Under `parent`, when that is not nullptr.
  explicit CancelSource(CancelSource* parent) noexcept : in_parent_(*this) {
    if (parent == nullptr) return;
    unit_ = parent->unit_;
    cancelled_ = parent->cancelled_;
    if (!cancelled_) parent->nodes_.push_back(in_parent_);
  }
  ~CancelSource() { assert(nodes_.empty()); }
  CancelSource(const CancelSource&) = delete;
  CancelSource& operator=(const CancelSource&) = delete;

  bool cancelled() const noexcept { return cancelled_; }

  /// The unit of work that is cancelled by this source or by one above it; nullptr for none. So a
  /// task can be asked on whose behalf it runs. Sources made below it have it too.
  const WorkUnit* unit() const noexcept { return unit_; }
  /// Before anything runs under this source.
  void set_unit(const WorkUnit* unit) noexcept { unit_ = unit; }

  void cancel() {
    if (std::exchange(cancelled_, true)) return;
    List<CancelNode> asked;
    asked.splice_back(nodes_);
    while (CancelNode* node = asked.pop_front()) node->cancel_(*node);
  }

  /// Calls `node` on cancel() unless it is unlinked before. Not for a cancelled source (asserted).
  void add(CancelNode& node) noexcept {
    assert(!cancelled_);
    nodes_.push_back(node);
  }

 private:
  struct InParent : CancelNode {
    explicit InParent(CancelSource& source) noexcept
        : CancelNode([](CancelNode& self) { static_cast<InParent&>(self).source_.cancel(); }),
          source_(source) {}
    CancelSource& source_;
  };

  List<CancelNode> nodes_;
  InParent in_parent_;
  const WorkUnit* unit_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace weir
