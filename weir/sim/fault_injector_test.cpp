// Tests of the decisions of a FaultInjector, without a World.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "weir/base/result.hpp"
#include "weir/sim/faults.hpp"

namespace weir::sim::fault_injector_test {
namespace {

using testing::ElementsAre;

constexpr std::array all_faults = {Fault::reset,       Fault::half_close,     Fault::stall,
                                   Fault::full_buffer, Fault::accept_failure, Fault::allocation,
                                   Fault::loss,        Fault::doubling,       Fault::file_failure};
constexpr std::array operation_faults = {Fault::reset, Fault::half_close, Fault::stall,
                                         Fault::full_buffer};

class FaultInjectorTest : public testing::Test {
 protected:
  std::optional<Fault> at_operation(const char* host, std::uint64_t number) {
    return faults_.at_operation(host, number, random_);
  }
  std::error_code at_accept(const char* host, std::uint64_t number) {
    return faults_.at_accept(host, number, random_);
  }
  std::optional<Fault> at_datagram(const char* host, std::uint64_t number) {
    return faults_.at_datagram(host, number, random_);
  }

  Random random_{1};
  FaultInjector faults_;
};

TEST_F(FaultInjectorTest, NothingHappensByDefault) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    EXPECT_EQ(at_operation("host", number), std::nullopt);
    EXPECT_EQ(at_accept("host", number), std::error_code());
    EXPECT_EQ(at_datagram("host", number), std::nullopt);
    EXPECT_EQ(faults_.failing_allocation("host", 0), std::nullopt);
  }
  EXPECT_EQ(faults_.injected(), 0U);
  EXPECT_EQ(faults_.injected_connects(), 0U);
  EXPECT_EQ(faults_.rates.stall_max, 20s);
  EXPECT_THAT(faults_.planned_hosts(), ElementsAre());
}

TEST_F(FaultInjectorTest, APlannedFaultHappensOnceAtItsPoint) {
  for (const Fault fault : operation_faults) {
    faults_.inject("host", 3, fault);
    EXPECT_EQ(at_operation("host", 2), std::nullopt);
    EXPECT_EQ(at_operation("other", 3), std::nullopt);
    EXPECT_EQ(at_accept("host", 3), std::error_code());
    EXPECT_EQ(at_datagram("host", 3), std::nullopt);
    EXPECT_THAT(faults_.planned_hosts(), ElementsAre("host"));
    EXPECT_EQ(at_operation("host", 3), fault);
    EXPECT_EQ(at_operation("host", 3), std::nullopt);
    EXPECT_EQ(faults_.injected(fault), 1U) << to_string(fault);
    EXPECT_THAT(faults_.planned_hosts(), ElementsAre());
  }
  EXPECT_EQ(faults_.injected(), 4U);
}

TEST_F(FaultInjectorTest, PlannedFaultsOfDatagramsAndAcceptsAreSeparate) {
  for (const Fault fault : {Fault::loss, Fault::doubling}) {
    faults_.inject("host", 0, fault);
    EXPECT_EQ(at_operation("host", 0), std::nullopt);
    EXPECT_EQ(at_accept("host", 0), std::error_code());
    EXPECT_EQ(at_datagram("host", 1), std::nullopt);
    EXPECT_EQ(at_datagram("host", 0), fault);
    EXPECT_EQ(faults_.injected(fault), 1U);
  }
  faults_.inject("host", 5, Fault::accept_failure);
  EXPECT_EQ(at_operation("host", 5), std::nullopt);
  EXPECT_EQ(at_datagram("host", 5), std::nullopt);
  EXPECT_NE(at_accept("host", 5), std::error_code()) << "a reason is drawn";
  EXPECT_EQ(at_accept("host", 5), std::error_code());
  EXPECT_EQ(faults_.injected(Fault::accept_failure), 1U);
  EXPECT_EQ(faults_.injected(), 3U);
}

TEST_F(FaultInjectorTest, APlannedFaultDoesNotHappenAfterItsPoint) {
  faults_.inject("host", 3, Fault::reset);
  faults_.inject("host", 3, Fault::loss);
  faults_.fail_accept("host", 3, system_error(EMFILE));
  for (std::uint64_t number = 4; number < 10; ++number) {
    EXPECT_EQ(at_operation("host", number), std::nullopt);
    EXPECT_EQ(at_datagram("host", number), std::nullopt);
    EXPECT_EQ(at_accept("host", number), std::error_code());
  }
  EXPECT_EQ(faults_.injected(), 0U);
  EXPECT_THAT(faults_.planned_hosts(), ElementsAre("host")) << "the faults have not happened";
}

TEST_F(FaultInjectorTest, SeveralFaultsCanBePlannedForOnePoint) {
  faults_.inject("host", 0, Fault::stall);
  faults_.inject("host", 0, Fault::reset);
  faults_.inject("host", 1, Fault::half_close);
  EXPECT_EQ(at_operation("host", 0), Fault::stall);
  EXPECT_EQ(at_operation("host", 0), Fault::reset);
  EXPECT_EQ(at_operation("host", 1), Fault::half_close);
}

TEST_F(FaultInjectorTest, AnAcceptFailsWithThePlannedOrADrawnReason) {
  for (const int reason : {EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    faults_.fail_accept("host", 7, system_error(reason));
    EXPECT_EQ(at_accept("host", 7), system_error(reason));
  }
  faults_.rates.accept_failure = 1;
  std::set<int> drawn;
  for (std::uint64_t number = 0; number < 200; ++number) {
    drawn.insert(at_accept("host", number).value());
  }
  EXPECT_EQ(drawn, (std::set<int>{EMFILE, ENFILE, ENOBUFS, ENOMEM}));
  faults_.fail_accept("host", 7, system_error(ENFILE));
  EXPECT_EQ(at_accept("host", 7), system_error(ENFILE)) << "the planned reason wins";
  EXPECT_EQ(faults_.injected(Fault::accept_failure), 205U);
}

TEST_F(FaultInjectorTest, ARateOfOneInjectsAlways) {
  for (const Fault fault : operation_faults) {
    faults_.rates = {};
    (fault == Fault::reset        ? faults_.rates.reset
     : fault == Fault::half_close ? faults_.rates.half_close
     : fault == Fault::stall      ? faults_.rates.stall
                                  : faults_.rates.full_buffer) = 1;
    const std::uint64_t before = faults_.injected(fault);
    for (std::uint64_t number = 0; number < 10; ++number) {
      EXPECT_EQ(at_operation("host", number), fault);
      EXPECT_EQ(at_datagram("host", number), std::nullopt);
    }
    EXPECT_EQ(faults_.injected(fault), before + 10);
    faults_.inject("host", 0, Fault::stall);
    EXPECT_EQ(at_operation("host", 0), Fault::stall) << "the planned fault wins";
    faults_.inject("host", 0, Fault::reset);
    EXPECT_EQ(at_operation("host", 0), Fault::reset) << "the planned fault wins";
  }
  faults_.rates = {.loss = 1};
  EXPECT_EQ(at_datagram("host", 0), Fault::loss);
  EXPECT_EQ(at_operation("host", 0), std::nullopt);
  faults_.inject("host", 0, Fault::doubling);
  EXPECT_EQ(at_datagram("host", 0), Fault::doubling) << "the planned fault wins";
  faults_.rates = {.doubling = 1};
  EXPECT_EQ(at_datagram("host", 0), Fault::doubling);
  faults_.inject("host", 0, Fault::loss);
  EXPECT_EQ(at_datagram("host", 0), Fault::loss) << "the planned fault wins";
}

TEST_F(FaultInjectorTest, EachFaultHasItsOwnRate) {
  faults_.rates = {.reset = 0.1, .half_close = 0.2, .stall = 0.25, .full_buffer = 0.5};
  for (std::uint64_t number = 0; number < 2000; ++number) at_operation("host", number);
  // A fault is drawn only if no earlier one has happened.
  EXPECT_NEAR(static_cast<double>(faults_.injected(Fault::reset)), 200, 60);
  EXPECT_NEAR(static_cast<double>(faults_.injected(Fault::half_close)), 360, 70);
  EXPECT_NEAR(static_cast<double>(faults_.injected(Fault::stall)), 360, 70);
  EXPECT_NEAR(static_cast<double>(faults_.injected(Fault::full_buffer)), 540, 80);
}

TEST_F(FaultInjectorTest, AnAllocationIsThatOfAHostAndACore) {
  faults_.fail_allocation("host", 1, 77);
  faults_.fail_allocation("host", 0, 5);
  EXPECT_EQ(faults_.failing_allocation("other", 1), std::nullopt);
  EXPECT_EQ(faults_.failing_allocation("host", 2), std::nullopt);
  EXPECT_EQ(faults_.failing_allocation("host", 0), 5U);
  EXPECT_EQ(faults_.failing_allocation("host", 0), std::nullopt) << "it happens once";
  EXPECT_THAT(faults_.planned_hosts(), ElementsAre("host"));
  EXPECT_EQ(faults_.failing_allocation("host", 1), 77U);
  EXPECT_THAT(faults_.planned_hosts(), ElementsAre());
}

TEST_F(FaultInjectorTest, EachRunOfACoreTakesOnePlannedAllocation) {
  for (const std::size_t number : {9U, 3U, 9U}) faults_.fail_allocation("host", 0, number);
  EXPECT_EQ(faults_.failing_allocation("host", 0), 9U);
  EXPECT_EQ(faults_.failing_allocation("host", 0), 3U);
  EXPECT_THAT(faults_.planned_hosts(), ElementsAre("host"));
  EXPECT_EQ(faults_.failing_allocation("host", 0), 9U);
  EXPECT_EQ(faults_.failing_allocation("host", 0), std::nullopt);
}

TEST_F(FaultInjectorTest, StopDropsEverything) {
  faults_.rates = {.reset = 1, .accept_failure = 1, .loss = 1};
  faults_.inject("one", 0, Fault::reset);
  faults_.fail_accept("two", 0, system_error(EMFILE));
  faults_.fail_allocation("three", 0, 0);
  faults_.inject("one", 1, Fault::loss);
  faults_.add_injected(os::Address::loopback(1), os::Address::loopback(2));
  faults_.count_injected_connect();
  EXPECT_EQ(at_operation("four", 0), Fault::reset);
  EXPECT_THAT(faults_.planned_hosts(), ElementsAre("one", "three", "two")) << "sorted, each once";
  faults_.stop();
  EXPECT_THAT(faults_.planned_hosts(), ElementsAre());
  EXPECT_EQ(at_operation("one", 0), std::nullopt);
  EXPECT_EQ(at_accept("two", 0), std::error_code());
  EXPECT_EQ(at_datagram("one", 1), std::nullopt);
  EXPECT_EQ(faults_.failing_allocation("three", 0), std::nullopt);
  EXPECT_EQ(faults_.rates.stall_max, 20s);
  EXPECT_EQ(faults_.injected(Fault::reset), 1U) << "the counts stay";
  EXPECT_EQ(faults_.injected(), 1U);
  EXPECT_EQ(faults_.injected_connects(), 1U);
  EXPECT_TRUE(faults_.has_injected(os::Address::loopback(2)));
}

TEST_F(FaultInjectorTest, KnowsTheConnectionsWithAFault) {
  const os::Address one = os::Address::loopback(1);
  const os::Address other = os::Address::loopback(2);
  EXPECT_FALSE(faults_.has_injected(one));
  faults_.add_injected(one, other);
  EXPECT_TRUE(faults_.has_injected(one));
  EXPECT_TRUE(faults_.has_injected(other));
  EXPECT_FALSE(faults_.has_injected(os::Address::loopback(3)));
  faults_.count_injected_connect();
  EXPECT_EQ(faults_.injected_connects(), 1U);
}

TEST_F(FaultInjectorTest, AFileFailureHappensOnceOrByItsRate) {
  const auto at_file = [this](const char* host, std::uint64_t number) {
    return faults_.at_file(host, number, random_);
  };
  faults_.inject("host", 2, Fault::file_failure);
  EXPECT_FALSE(at_file("host", 1));
  EXPECT_FALSE(at_file("other", 2));
  EXPECT_EQ(at_operation("host", 2), std::nullopt) << "operations are counted separately";
  EXPECT_TRUE(at_file("host", 2));
  EXPECT_FALSE(at_file("host", 2)) << "only once";
  faults_.rates.file_failure = 1;
  EXPECT_TRUE(at_file("host", 3));
  EXPECT_EQ(faults_.injected(Fault::file_failure), 2U);
}

TEST_F(FaultInjectorTest, CountsEachFaultSeparately) {
  std::set<std::string_view> names;
  std::uint64_t all = 0;
  for (const Fault fault : all_faults) {
    EXPECT_EQ(faults_.injected(fault), 0U);
    faults_.count(fault);
    EXPECT_EQ(faults_.injected(fault), 1U);
    EXPECT_EQ(faults_.injected(), ++all);
    names.insert(to_string(fault));
  }
  EXPECT_EQ(names.size(), fault_count);
  EXPECT_EQ(to_string(Fault::full_buffer), "full buffer");
  EXPECT_EQ(to_string(Fault::doubling), "doubling");
  EXPECT_EQ(to_string(Fault::file_failure), "file failure");
}

}  // namespace
}  // namespace weir::sim::fault_injector_test
