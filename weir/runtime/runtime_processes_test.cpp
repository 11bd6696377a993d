// Test of a runtime in a worker of several processes.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "weir/loop/contract/detail/supervision.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {
namespace {

/// Handle of the second of two workers, which never gets a command.
class SecondWorker final : public WorkerHandle {
 public:
  std::size_t index() const noexcept override { return 1; }
  bool is_first_run() const noexcept override { return true; }
  WorkerCommand command() const noexcept override { return WorkerCommand::serve; }
  std::vector<Socket> take_sockets() override { return {}; }
};

/// A platform whose supervise() returns in a worker.
class WorkersPlatform : public MemoryPlatform {
 public:
  WorkersPlatform() : MemoryPlatform({.cores = 4}) {}
  Supervised supervise(const SupervisionOptions&) override {
    return {.worker = std::make_unique<SecondWorker>()};
  }
};

TEST(RuntimeProcesses, AWorkerHasItsShareOfTheCoresAndRunsOnce) {
  WorkersPlatform platform;
  Runtime runtime(platform, {.announce = false, .processes = ProcessOptions{.count = 2}});
  int runs = 0;
  const auto body = [&](Scope&) -> Task<> {
    ++runs;
    co_return;
  };
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  EXPECT_EQ(runs, 2) << "on two of four cores";
  EXPECT_TRUE(platform.logged().empty());
  EXPECT_EQ(runtime.run_on_each_core(body), 1);
  EXPECT_EQ(runs, 2);
  ASSERT_EQ(platform.logged().size(), 1U);
  EXPECT_NE(platform.logged()[0].find("cannot run again in a worker process"), std::string::npos);
}

}  // namespace
}  // namespace weir
