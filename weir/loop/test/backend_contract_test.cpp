// Runs the contract test of backends on every backend that this machine has.
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
#include <thread>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/loop/test/readiness_fixture.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::loop::backend_contract_test {
namespace {

class MemoryEnvironment final : public ContractEnvironment {
 public:
  Platform& platform() override { return platform_; }
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

class OsEnvironment final : public ContractEnvironment {
 public:
  OsEnvironment() {
    platform_.descriptor_limit();  // raises the limit, once
    ::getrlimit(RLIMIT_NOFILE, &limit_);
  }
  ~OsEnvironment() override { allow_descriptors(); }

  Platform& platform() override { return platform_; }

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
  OsPlatform platform_;
  rlimit limit_{};
};

struct Candidate {
  std::string name;
  BackendChoice choice;
  bool simulated;
  std::size_t unread_overshoot = 256 * 1024;

  ContractFixture::Subject in(ContractEnvironment& environment) const {
    return {environment, choice, unread_overshoot};
  }
};

std::unique_ptr<ContractEnvironment> make_environment(const Candidate& candidate) {
  if (candidate.simulated) return std::make_unique<MemoryEnvironment>();
  return std::make_unique<OsEnvironment>();
}

// The log names the backends that were not tested, and the reasons.
std::vector<Candidate> candidates() {
  const std::array<Candidate, 5> wanted = {{
      {"memory", BackendChoice::automatic, true},
      {"epoll", BackendChoice::epoll, false},
      {"poll", BackendChoice::poll, false},
      {"uring", BackendChoice::uring, false},
      // A multishot receive has no limit before Linux 6.17. One burst takes what the kernel holds,
      // at most all buffers of the core's ring.
      {"uring_6_1", BackendChoice::uring_6_1, false, 256 * Buffer::default_capacity},
  }};
  std::vector<Candidate> here;
  for (const Candidate& each : wanted) {
    const auto environment = make_environment(each);
    RunQueue ready;
    const auto made = environment->platform().make_backend(each.choice, ready);
    if (made) {
      here.push_back(each);
    } else {
      std::cerr << "NOT TESTED here: backend " << each.name << ": " << made.error().message()
                << '\n';
    }
  }
  return here;
}

bool has(const Candidate& candidate, ContractRequirement requirement) {
  switch (requirement) {
    case ContractRequirement::nothing:
      return true;
    case ContractRequirement::real_time:
      return !candidate.simulated;
    case ContractRequirement::ipv6: {
      const os::Address loopback = os::Address::parse("[::1]:0").value();
      return make_environment(candidate)->platform().listen(loopback, {}).has_value();
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
      if (has(candidate, clause.requirement)) all.push_back({candidate, clause});
    }
  }
  return all;
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return info.param.candidate.name + "_" + std::string(info.param.clause.name);
}

class BackendContract : public ::testing::TestWithParam<Case> {};

TEST_P(BackendContract, Holds) {
  const auto environment = make_environment(GetParam().candidate);
  {
    const ContractFixture once({*environment, GetParam().candidate.choice});
  }  // opens what stays open
  const std::size_t open_before = environment->open_descriptors();
  {
    ContractFixture fixture(GetParam().candidate.in(*environment));
    GetParam().clause.check(fixture);
  }
  EXPECT_EQ(environment->open_descriptors(), open_before);
}

INSTANTIATE_TEST_SUITE_P(All, BackendContract, ::testing::ValuesIn(cases()), name_of);

// The clauses test a backend only if it is the requested one.
TEST(BackendContractSubjects, AreTheRequestedBackends) {
  const auto here = candidates();
  ASSERT_GE(here.size(), 3u) << "memory, epoll and poll work everywhere";
  for (const Candidate& each : here) {
    const auto environment = make_environment(each);
    RunQueue ready;
    std::string name(environment->platform().make_backend(each.choice, ready)->backend->name());
    std::replace_if(name.begin(), name.end(), [](char c) { return c == ':' || c == '.'; }, '_');
    EXPECT_EQ(name, each.name);
  }
}

TEST(BackendContractSubjects, AcceptNonBlockingConnectionsThatAreClosedOnExec) {
  for (const Candidate& each : candidates()) {
    if (each.simulated) continue;
    ReadinessFixture fixture(each.choice);
    auto listener = os::open_listener(os::Address::loopback(0));
    const os::Address address = os::local_address(listener->get()).value();
    Socket* const socket = fixture.adopt(std::move(*listener), SocketRole::listener);
    const os::Fd client = os::open_stream(os::AddressFamily::ipv4).value();
    ASSERT_TRUE(os::start_connect(client.get(), address));
    Recorded<AcceptOperation> accept;
    if (!fixture.backend().accept(*socket, accept)) fixture.finish(accept);
    ASSERT_TRUE(accept.accepted) << each.name;
    EXPECT_EQ(::fcntl(accept.accepted.value(), F_GETFD), FD_CLOEXEC) << each.name;
    EXPECT_NE(::fcntl(accept.accepted.value(), F_GETFL) & O_NONBLOCK, 0) << each.name;
    fixture.backend().close(*socket);
  }
}

/// Adopts a socket of each role, which no operation uses.
void adopt_each_role(Platform& platform, Backend& backend) {
  const os::Address loopback = os::Address::loopback(0);
  auto listener = platform.listen(loopback, {});
  auto stream = platform.open_stream(loopback);
  auto datagrams = platform.open_datagrams({.local = loopback});
  ASSERT_TRUE(listener && stream && datagrams);
  EXPECT_TRUE(backend.adopt(std::move(*listener), {.role = SocketRole::listener}));
  EXPECT_TRUE(backend.adopt(std::move(*stream), {.role = SocketRole::stream}));
  EXPECT_TRUE(backend.adopt(std::move(*datagrams), {.role = SocketRole::datagrams}));
}

enum class Wait { never, on_this_thread, on_another_thread };

/// Destroys a backend with open sockets after it has waited.
void destroy_with_open_sockets(const Candidate& candidate, Platform& platform, Wait wait) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  RunQueue ready;
  const auto made = platform.make_backend(candidate.choice, ready);
  ASSERT_TRUE(made);
  adopt_each_role(platform, *made->backend);
  if (wait == Wait::on_this_thread) made->backend->wait(Instant::min());
  if (wait == Wait::on_another_thread) {
    std::thread([&] { made->backend->wait(Instant::min()); }).join();
  }
}

TEST(BackendContractSubjects, CloseTheSocketsThatAreLeftOpen) {
  for (const Candidate& each : candidates()) {
    const auto environment = make_environment(each);
    destroy_with_open_sockets(each, environment->platform(), Wait::never);  // opens what stays open
    const std::size_t before = environment->open_descriptors();
    for (const Wait wait : {Wait::never, Wait::on_this_thread, Wait::on_another_thread}) {
      destroy_with_open_sockets(each, environment->platform(), wait);
      EXPECT_EQ(environment->open_descriptors(), before)
          << each.name << ' ' << static_cast<int>(wait);
    }
  }
}

}  // namespace
}  // namespace weir::loop::backend_contract_test
