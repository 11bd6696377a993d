// A test fixture with one loop on a platform in memory.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {

/// LoopTest runs a loop in virtual time. It fails if a test leaves a frame, a buffer, a timer or
/// a descriptor behind.
class LoopTest : public testing::Test {
 protected:
  explicit LoopTest(const MemoryPlatformOptions& options = {})
      : platform_(options), loop_(Loop::make(platform_, {}).value()) {}

  void TearDown() override {
    platform_.run_until_idle(*loop_);
    EXPECT_EQ(frames(), 0U) << "blocks of the pool are still in use";
    EXPECT_EQ(loop_->timers().armed(), 0U);
    EXPECT_EQ(platform_.open_descriptors(), 0U);
  }

  template <class T>
  T run(Task<T> task, CancelSource* cancel = nullptr) {
    return weir::run(*loop_, std::move(task), cancel);
  }
  /// Calls `function` with the loop's memory, as a coroutine on the loop does, and runs the task
  /// that it returns.
  template <class Function, class... Args>
  auto run_made(Function function, Args... args) {
    const ScopedBlockPool blocks(loop_->blocks());
    return weir::run(*loop_, function(std::move(args)...));
  }

  /// Returns the number of blocks of the loop's pool that are in use. They are coroutine frames
  /// if no buffer is in use.
  std::size_t frames() {
    loop_->blocks().collect();
    return loop_->blocks().blocks_in_use();
  }
  Duration elapsed() const { return loop_->platform().now() - started_; }

  MemoryPlatform platform_;
  std::unique_ptr<Loop> loop_;
  Instant started_ = platform_.now();
};

}  // namespace weir
