// Cancellation sources form a tree; cancelling a source cancels every wait below it.
#pragma once

#include <coroutine>
#include <string_view>
#include <utility>

#include "weir/base/detail/list.hpp"

namespace weir {

class CancelSource;
class TraceContext;

/// A CancelNode is a callback that its source calls once, when the source is cancelled. The
/// source unlinks the node before the call. The callback requests an action: it asks a backend to
/// cancel or a loop to run something. It never resumes a coroutine itself.
class CancelNode : public detail::ListNode {
 public:
  using Function = void (*)(CancelNode&);
  /// A Kind is a constant that all nodes of a type share. Reports of tasks read it; see
  /// report_tasks().
  struct Kind {
    Function cancel;
    std::string_view awaits = {};  ///< what the task of the node waits for: "sleep"
    /// Returns the suspended coroutine that waits. nullptr if the node is not that of a coroutine.
    std::coroutine_handle<> (*coroutine)(const CancelNode&) = nullptr;
  };
  /// The Kind of a node that reports leave out.
  template <Function cancel>
  static constexpr Kind unnamed_kind{cancel, {}, nullptr};

  explicit CancelNode(const Kind& kind) noexcept : kind_(&kind) {}
  const Kind& kind() const noexcept { return *kind_; }

  /// Joins `source`, which calls this node in cancel() unless the node has left. Does nothing if
  /// `source` is nullptr.
  /// Returns: false if the source has been cancelled already; it then does not call the node.
  [[nodiscard]] bool join(CancelSource* source) noexcept;
  /// Leaves the source, if this node has joined one and has not been called.
  void leave() noexcept { unlink(); }

 private:
  friend class CancelSource;
  const Kind* kind_;
};

/// A CancelSource cancels the work that runs under it, once and permanently. An await under a
/// cancelled source fails with Errc::cancelled immediately if it would have to wait. Cancelling
/// is a request; the code that cancels still waits for the work to finish. The cancellation of a
/// source also cancels its children.
/// Threads: one loop's.
/// Lifetime: the nodes and children of a source leave before it is destroyed (asserted).
class CancelSource : CancelNode {
 public:
  CancelSource() noexcept : CancelNode(source_kind) {}
  /// Makes a child of `parent`, or a source without a parent if `parent` is nullptr.
  explicit CancelSource(CancelSource* parent) noexcept : CancelSource() {
    if (parent == nullptr) return;
    trace_ = parent->trace_;
    cancelled_ = !join(parent);
  }
  ~CancelSource() { assert(has_only_cursors()); }
  CancelSource(const CancelSource&) = delete;
  CancelSource& operator=(const CancelSource&) = delete;

  bool cancelled() const noexcept { return cancelled_; }

  /// Returns the trace of the work that this source or a source above it cancels; nullptr if
  /// there is none. A task finds in it the work that it runs for. Sources that are made below
  /// this source inherit it.
  const TraceContext* trace() const noexcept { return trace_; }
  /// Sets the trace. The caller does this before anything runs under this source.
  void set_trace(const TraceContext* trace) noexcept { trace_ = trace; }

  void cancel() {
    if (std::exchange(cancelled_, true)) return;
    detail::List<CancelNode> cancelled_nodes;
    cancelled_nodes.splice_back(nodes_);
    while (CancelNode* node = cancelled_nodes.pop_front()) node->kind_->cancel(*node);
  }

  /// Links a source without a parent into `roots`, the list of its loop; see Loop::roots(). A
  /// report of the loop's tasks then finds the tasks below it. unlist() ends that, on the same
  /// loop, and so does the destructor.
  void list_in(detail::List<detail::ListNode>& roots) noexcept { roots.push_back(*this); }
  /// Ends list_in() for a source below which no task is left. A report that is at this source goes
  /// on above it, so that another thread may destroy the source afterwards.
  void unlist() noexcept {
    assert(has_only_cursors());
    leave();
    nodes_.clear();
  }

 private:
  friend class CancelNode;
  friend class TaskWalk;
  static void on_parent_cancelled(CancelNode& self) { static_cast<CancelSource&>(self).cancel(); }
  static constexpr Kind source_kind{&on_parent_cancelled};
  /// The kind of the node that marks how far a report has come. A source may end before it.
  static constexpr Kind cursor_kind{[](CancelNode&) {}};
  bool has_only_cursors() const noexcept {
    for (const CancelNode* node = nodes_.front(); node != nullptr; node = nodes_.next(*node))
      if (node->kind_ != &cursor_kind) return false;
    return true;
  }

  detail::List<CancelNode> nodes_;
  const TraceContext* trace_ = nullptr;
  bool cancelled_ = false;
};

inline bool CancelNode::join(CancelSource* source) noexcept {
  if (source == nullptr) return true;
  if (source->cancelled()) return false;
  source->nodes_.push_back(*this);
  return true;
}

}  // namespace weir
