// What a runtime does where it is a worker of several processes.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "weir/runtime/runtime.hpp"
#include "weir/loop/supervision.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {
namespace {

/// That of the second of two, which nobody orders to do anything.
class SecondSeat final : public WorkerSeat {
 public:
  std::size_t index() const noexcept override { return 1; }
  bool first_life() const noexcept override { return true; }
  WorkerOrder order() const noexcept override { return WorkerOrder::serve; }
  std::vector<Socket> take_sockets() override { return {}; }
};

/// Whoever would supervise becomes a worker.
class WorkersHost : public MemoryHost {
 public:
  WorkersHost() : MemoryHost({.cores = 4}) {}
  Supervised supervise(const SupervisionOptions&) override {
    return {.seat = std::make_unique<SecondSeat>()};
  }
};

TEST(RuntimeProcesses, AWorkerHasItsShareOfTheCoresAndRunsOnce) {
  WorkersHost host;
  Runtime runtime(host, {.announce = false, .processes = ProcessOptions{.count = 2}});
  int runs = 0;
  const auto body = [&](Scope&) -> Task<> {
    ++runs;
    co_return;
  };
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  EXPECT_EQ(runs, 2) << "on two of four cores";
  EXPECT_TRUE(host.logged().empty());
  EXPECT_EQ(runtime.run_on_each_core(body), 1);
  EXPECT_EQ(runs, 2);
  ASSERT_EQ(host.logged().size(), 1U);
  EXPECT_NE(host.logged()[0].find("a worker process runs once"), std::string::npos);
}

}  // namespace
}  // namespace weir
