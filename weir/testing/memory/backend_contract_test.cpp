// Runs the contract test of backends on the simulated platform, in the tests of this floor.
#include "weir/testing/test/contract/backend_contract.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "weir/testing/memory/memory_platform.hpp"

namespace weir::backend_contract_test {
namespace {

class SimulatedEnvironment final : public ContractEnvironment {
 public:
  loop::Platform& platform() override { return platform_; }
  std::size_t open_descriptors() override { return platform_.open_descriptors(); }
  void forbid_descriptors() override {
    platform_.set_descriptors_max(platform_.open_descriptors());
  }
  void allow_descriptors() override { platform_.set_descriptors_max(1 << 20); }
  void reset_on_close(int descriptor) override { platform_.reset_connection(descriptor); }
  os::Address fresh_local_address() override {
    return os::Address::local("/contract/" + std::to_string(++last_name_)).value();
  }

 private:
  MemoryPlatform platform_;
  int last_name_ = 0;
};

struct SimulatedClause {
  ContractClause clause;

  friend void PrintTo(const SimulatedClause& each, std::ostream* out) { *out << each.clause.name; }
};

std::vector<SimulatedClause> simulated_clauses() {
  std::vector<SimulatedClause> all;
  for (const ContractClause& each : backend_contract()) {
    if (each.requirement != ContractRequirement::real_time) all.push_back({each});
  }
  return all;
}

class MemoryBackendContract : public testing::TestWithParam<SimulatedClause> {};

TEST_P(MemoryBackendContract, Holds) {
  SimulatedEnvironment environment;
  {
    ContractFixture fixture({environment, BackendChoice::automatic});
    GetParam().clause.check(fixture);
  }
  EXPECT_EQ(environment.open_descriptors(), 0U);
}

INSTANTIATE_TEST_SUITE_P(All, MemoryBackendContract, testing::ValuesIn(simulated_clauses()),
                         [](const auto& each) { return std::string(each.param.clause.name); });

}  // namespace
}  // namespace weir::backend_contract_test
