// Tests of CancelSource.
#include "weir/task/cancel.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/loop/contract/detail/trace_context.hpp"

namespace weir::cancel_test {
namespace {

class Note : public CancelNode {
 public:
  explicit Note(std::function<void()> call = {})
      : CancelNode(unnamed_kind<&on_cancel>), call_(std::move(call)) {}
  int calls = 0;

 private:
  static void on_cancel(CancelNode& node) { static_cast<Note&>(node).called(); }
  void called() {
    EXPECT_FALSE(linked());
    ++calls;
    if (call_) call_();
  }
  std::function<void()> call_;
};

TEST(CancelSource, CallsEachNodeOnceInOrder) {
  CancelSource source;
  std::vector<int> order;
  Note first([&] { order.push_back(1); });
  Note second([&] { order.push_back(2); });
  EXPECT_TRUE(first.join(&source));
  EXPECT_TRUE(second.join(&source));
  EXPECT_FALSE(source.cancelled());
  source.cancel();
  source.cancel();
  EXPECT_TRUE(source.cancelled());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(first.calls, 1);
}

TEST(CancelSource, DoesNotCallANodeThatHasLeft) {
  CancelSource source;
  Note note;
  {
    Note gone;
    EXPECT_TRUE(note.join(&source));
    EXPECT_TRUE(gone.join(&source));
  }
  note.leave();
  source.cancel();
  EXPECT_EQ(note.calls, 0);
}

TEST(CancelSource, ANodeMayUnlinkOthersDuringItsCall) {
  CancelSource source;
  std::optional<Note> second, third;
  Note first([&] {
    second.reset();
    third->unlink();
  });
  second.emplace();
  third.emplace();
  EXPECT_TRUE(first.join(&source));
  EXPECT_TRUE(second->join(&source));
  EXPECT_TRUE(third->join(&source));
  source.cancel();
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(third->calls, 0);
}

TEST(CancelSource, ReachesTheWholeTreeBelow) {
  CancelSource root, other;
  CancelSource left(&root), right(&root), leaf(&left);
  Note at_leaf, at_other;
  EXPECT_TRUE(at_leaf.join(&leaf));
  EXPECT_TRUE(at_other.join(&other));
  root.cancel();
  EXPECT_TRUE(left.cancelled() && right.cancelled() && leaf.cancelled());
  EXPECT_FALSE(other.cancelled());
  EXPECT_EQ(at_leaf.calls, 1);
  at_other.unlink();
}

TEST(CancelSource, DoesNotReachUpOrSideways) {
  CancelSource root;
  CancelSource left(&root), right(&root);
  left.cancel();
  EXPECT_TRUE(left.cancelled());
  EXPECT_FALSE(root.cancelled());
  EXPECT_FALSE(right.cancelled());
  root.cancel();
  EXPECT_TRUE(right.cancelled());
}

TEST(CancelSource, IsCancelledFromTheStartUnderACancelledParent) {
  CancelSource root;
  root.cancel();
  const CancelSource child(&root);
  EXPECT_TRUE(child.cancelled());
}

TEST(CancelSource, MayHaveNoParent) {
  CancelSource source(nullptr);
  EXPECT_FALSE(source.cancelled());
}

TEST(CancelSource, AChildMayLeaveBeforeItsParentIsCancelled) {
  CancelSource root;
  auto child = std::make_unique<CancelSource>(&root);
  child.reset();
  root.cancel();
  EXPECT_TRUE(root.cancelled());
}

TEST(CancelSource, IsCancelledAlreadyWhenItCallsItsNodes) {
  CancelSource source;
  std::vector<int> order;
  Note first([&] {
    EXPECT_TRUE(source.cancelled());
    const CancelSource child(&source);
    EXPECT_TRUE(child.cancelled());
    source.cancel();
    order.push_back(1);
  });
  Note second([&] { order.push_back(2); });
  EXPECT_TRUE(first.join(&source));
  EXPECT_TRUE(second.join(&source));
  source.cancel();
  EXPECT_EQ(order, (std::vector<int>{1, 2}))
      << "a second call has no effect, even inside the first";
}

TEST(CancelSource, InheritsTheTraceOfItsParent) {
  struct Job final : TraceContext {
    std::string_view kind() const noexcept override { return "job"; }
    std::string_view id(IdBuffer) const noexcept override { return "7"; }
  } const job, other;
  CancelSource root;
  EXPECT_EQ(root.trace(), nullptr);
  EXPECT_EQ(CancelSource(nullptr).trace(), nullptr);
  root.set_trace(&job);
  CancelSource child(&root);
  const CancelSource grandchild(&child);
  EXPECT_EQ(child.trace(), &job);
  EXPECT_EQ(grandchild.trace(), &job);
  child.set_trace(&other);
  EXPECT_EQ(root.trace(), &job);
  EXPECT_EQ(CancelSource(&child).trace(), &other);
  root.cancel();
  EXPECT_EQ(CancelSource(&root).trace(), &job) << "also below a cancelled source";
}

TEST(CancelSource, CancelsAThousandLevels) {
  std::vector<std::unique_ptr<CancelSource>> chain;
  chain.push_back(std::make_unique<CancelSource>());
  for (int i = 0; i < 1000; ++i) {
    chain.push_back(std::make_unique<CancelSource>(chain.back().get()));
  }
  chain.front()->cancel();
  EXPECT_TRUE(chain.back()->cancelled());
  while (!chain.empty()) chain.pop_back();
}

TEST(CancelSource, ACancelledSourceTakesNoNode) {
  CancelSource source;
  Note note;
  source.cancel();
  EXPECT_FALSE(note.join(&source));
  EXPECT_FALSE(note.linked());
}

TEST(CancelSource, ANodeMayJoinNoneAndThenAnother) {
  CancelSource source;
  Note note;
  EXPECT_TRUE(note.join(nullptr));
  EXPECT_FALSE(note.linked());
  EXPECT_TRUE(note.join(&source));
  source.cancel();
  EXPECT_EQ(note.calls, 1);
}

#ifndef NDEBUG
TEST(CancelSource, AssertsThatNodesAndChildrenLeaveBeforeIt) {
  const auto destroy = [](bool has_child) {
    auto source = std::make_unique<CancelSource>();
    Note note;
    EXPECT_TRUE(note.join(has_child ? nullptr : source.get()));
    const CancelSource child(has_child ? source.get() : nullptr);
    source.reset();
  };
  EXPECT_DEATH(destroy(false), "has_only_cursors");
  EXPECT_DEATH(destroy(true), "has_only_cursors");
}
#endif

}  // namespace
}  // namespace weir::cancel_test
