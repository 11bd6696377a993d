// One loop on a host in memory, for unit tests of what runs on loops.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {

/// Virtual time; at the end nothing may be left: no frame or buffer, no timer, no descriptor.
class LoopTest : public testing::Test {
 protected:
  explicit LoopTest(const MemoryHostOptions& options = {})
      : host_(options), loop_(Loop::make(host_, {}).value()) {}

  void TearDown() override {
    host_.run_until_idle(*loop_);
    EXPECT_EQ(frames(), 0U) << "blocks of the pool are still in use";
    EXPECT_EQ(loop_->timers().armed(), 0U);
    EXPECT_EQ(host_.open_descriptors(), 0U);
  }

  template <class T>
  T run(Task<T> task, CancelSource* cancel = nullptr) {
    return weir::run(*loop_, std::move(task), cancel);
  }
  /// The task, made and run as a coroutine on the loop is: with its memory.
  template <class Function, class... Args>
  auto run_made(Function function, Args... args) {
    const BlockPool::Use blocks(loop_->blocks());
    return weir::run(*loop_, function(std::move(args)...));
  }

  /// Blocks of the loop's pool that are in use: coroutine frames, while no buffer is.
  std::size_t frames() {
    loop_->blocks().collect();
    return loop_->blocks().blocks_in_use();
  }
  Duration elapsed() const { return loop_->host().now() - started_; }

  MemoryHost host_;
  std::unique_ptr<Loop> loop_;
  Instant started_ = host_.now();
};

}  // namespace weir
