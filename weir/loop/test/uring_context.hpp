// Fixture for tests of io_uring sockets: a ring that is never submitted, in virtual time. The test
// takes the place of the kernel.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "weir/base/detail/block_pool.hpp"
#include "weir/loop/detail/uring/socket.hpp"
#include "weir/loop/test/readiness_fixture.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::loop::uring {

/// A platform that records the descriptors that it closes.
class ClosingPlatform final : public MemoryPlatform {
 public:
  void close(int descriptor) noexcept override { closed.push_back(descriptor); }
  std::vector<int> closed;
};

/// The context of sockets whose requests the test completes.
class UringContextTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!context_.ring.open() || !context_.buffers.open(context_.ring.native())) {
      GTEST_SKIP() << "this machine refuses io_uring";
    }
  }
  void TearDown() override { context_.ring.close(); }

  /// Returns the requests that were recorded since the last call.
  std::vector<io_uring_sqe> recorded() {
    const auto& queue = context_.ring.native().sq;
    std::vector<io_uring_sqe> entries;
    for (; seen_ != queue.sqe_tail; ++seen_) {
      entries.push_back(queue.sqes[seen_ & *queue.kring_mask]);
    }
    return entries;
  }
  /// Returns the operations of the requests that were recorded since the last call.
  std::vector<int> recorded_operations() {
    std::vector<int> operations;
    for (const io_uring_sqe& each : recorded()) operations.push_back(each.opcode);
    return operations;
  }
  /// Runs the finished operations. Returns their number.
  int run_ready() {
    int count = 0;
    for (; Runnable* runnable = ready_.pop(); ++count) runnable->run();
    return count;
  }

  ClosingPlatform platform_;
  BlockPool pool_;
  ScopedBlockPool use_{pool_};
  RunQueue ready_;
  BackendCounters counters_;
  BackendContext context_{platform_, ready_, counters_};

 private:
  unsigned seen_ = 0;
};

}  // namespace weir::loop::uring
