// Runs the contract of backends on every backend that this machine has.
#include "weir/testing/test/contract/backend_contract.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {
namespace {

class MemoryWorld final : public ContractWorld {
 public:
  Host& host() override { return host_; }
  std::size_t open_descriptors() override { return host_.open_descriptors(); }
  void forbid_descriptors() override { host_.set_descriptors_max(host_.open_descriptors()); }
  void allow_descriptors() override { host_.set_descriptors_max(1 << 20); }
  void reset_on_close(int descriptor) override { host_.reset_connection(descriptor); }
  os::Address fresh_local_address() override {
    return os::Address::local("/contract/" + std::to_string(++last_name_)).value();
  }

 private:
  MemoryHost host_;
  int last_name_ = 0;
};

class OsWorld final : public ContractWorld {
 public:
  OsWorld() {
    host_.descriptor_limit();  // raises it, once
    ::getrlimit(RLIMIT_NOFILE, &limit_);
  }
  ~OsWorld() override { allow_descriptors(); }

  Host& host() override { return host_; }

  std::size_t open_descriptors() override {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(open), end(open)));
  }

  void forbid_descriptors() override {
    const int lowest_free = ::dup(0);
    ASSERT_GE(lowest_free, 0);
    ::close(lowest_free);
    rlimit lowered = limit_;
    lowered.rlim_cur = static_cast<rlim_t>(lowest_free);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &lowered), 0);
  }
  void allow_descriptors() override { ::setrlimit(RLIMIT_NOFILE, &limit_); }

  void reset_on_close(int descriptor) override {
    ASSERT_TRUE(os::set_linger(descriptor, std::chrono::seconds(0)));
  }

  os::Address fresh_local_address() override {
    static int last_name = 0;
    return os::Address::local("@weir-contract-" + std::to_string(::getpid()) + "-" +
                              std::to_string(++last_name))
        .value();
  }

 private:
  OsHost host_;
  rlimit limit_{};
};

struct Candidate {
  std::string name;
  BackendChoice choice;
  bool simulated;
  std::size_t unread_overshoot = 256 * 1024;

  ContractBench::Subject in(ContractWorld& world) const {
    return {world, choice, unread_overshoot};
  }
};

std::unique_ptr<ContractWorld> make_world(const Candidate& candidate) {
  if (candidate.simulated) return std::make_unique<MemoryWorld>();
  return std::make_unique<OsWorld>();
}

// Whoever reads the log has to see which backends were not tried, and why.
std::vector<Candidate> candidates() {
  const std::array<Candidate, 5> wanted = {{
      {"memory", BackendChoice::automatic, true},
      {"epoll", BackendChoice::epoll, false},
      {"poll", BackendChoice::poll, false},
      {"uring", BackendChoice::uring, false},
      // Before Linux 6.17 a multishot receive cannot be told to end after so many bytes: in one
      // burst it takes what the kernel holds, at most all buffers of the core's ring.
      {"uring_6_1", BackendChoice::uring_6_1, false, 256 * Buffer::default_capacity},
  }};
  std::vector<Candidate> here;
  for (const Candidate& each : wanted) {
    const auto world = make_world(each);
    RunQueue ready;
    const auto made = world->host().make_backend(each.choice, ready);
    if (made) {
      here.push_back(each);
    } else {
      std::cerr << "NOT TESTED here: backend " << each.name << ": " << made.error().message()
                << '\n';
    }
  }
  return here;
}

bool has(const Candidate& candidate, ContractNeed need) {
  switch (need) {
    case ContractNeed::nothing:
      return true;
    case ContractNeed::real_time:
      return !candidate.simulated;
    case ContractNeed::ipv6: {
      const os::Address loopback = os::Address::parse("[::1]:0").value();
      return make_world(candidate)->host().listen(loopback, {}).has_value();
    }
  }
  return false;
}

struct Case {
  Candidate candidate;
  ContractClause clause;
};

void PrintTo(const Case& each, std::ostream* out) {
  *out << each.clause.name << " on " << each.candidate.name;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Candidate& candidate : candidates()) {
    for (const ContractClause& clause : backend_contract()) {
      if (has(candidate, clause.need)) all.push_back({candidate, clause});
    }
  }
  return all;
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return info.param.candidate.name + "_" + std::string(info.param.clause.name);
}

class BackendContract : public ::testing::TestWithParam<Case> {};

TEST_P(BackendContract, Holds) {
  const auto world = make_world(GetParam().candidate);
  {
    const ContractBench once({*world, GetParam().candidate.choice});
  }  // what is opened for good
  const std::size_t open_before = world->open_descriptors();
  {
    ContractBench bench(GetParam().candidate.in(*world));
    GetParam().clause.check(bench);
  }
  EXPECT_EQ(world->open_descriptors(), open_before);
}

INSTANTIATE_TEST_SUITE_P(All, BackendContract, ::testing::ValuesIn(cases()), name_of);

// The clauses do what they say only on the backend that was asked for.
TEST(BackendContractSubjects, AreTheBackendsThatWereAskedFor) {
  const auto here = candidates();
  ASSERT_GE(here.size(), 3u) << "memory, epoll and poll work everywhere";
  for (const Candidate& each : here) {
    const auto world = make_world(each);
    RunQueue ready;
    std::string name(world->host().make_backend(each.choice, ready)->backend->name());
    std::replace_if(name.begin(), name.end(), [](char c) { return c == ':' || c == '.'; }, '_');
    EXPECT_EQ(name, each.name);
  }
}

}  // namespace
}  // namespace weir
