// Tests of the calls of a simulated platform: their results and their errors, and what several
// processes of one machine share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/testing/test/probe.hpp"
#include "weir/testing/test/scripted_platform.hpp"

namespace weir::memory_platform_calls_test {
namespace {

using os::Address;
using testing::ElementsAre;

const std::error_code bad_descriptor = system_error(EBADF);

template <class T>
std::error_code error_of(const Result<T>& result) {
  return result ? std::error_code() : result.error();
}

TEST(MemoryPlatformCalls, KnowTheAddressesOfDescriptors) {
  MemoryPlatform platform;
  const loop::Descriptor listener = platform.listen(Address::loopback(80), {}).value();
  const loop::Descriptor stream = platform.open_stream(Address::loopback(80)).value();
  const loop::Descriptor bound = platform.open_datagrams({.local = Address::loopback(53)}).value();
  const loop::Descriptor connected =
      platform.open_datagrams({.peer = Address::loopback(53)}).value();
  EXPECT_EQ(platform.local_address(listener.value()).value(), Address::loopback(80));
  EXPECT_EQ(platform.local_address(bound.value()).value(), Address::loopback(53));
  EXPECT_EQ(platform.peer_address(connected.value()).value(), Address::loopback(53));
  EXPECT_EQ(error_of(platform.peer_address(bound.value())), system_error(ENOTCONN));
  EXPECT_EQ(error_of(platform.peer_address(stream.value())), system_error(ENOTCONN));
  EXPECT_EQ(error_of(platform.peer_address(listener.value())), bad_descriptor);
  MemoryStream& opened = *platform.descriptors().stream(stream.value());
  ASSERT_EQ(platform.network().connect(opened, Address::loopback(80)),
            MemoryNetwork::ConnectResult::established);
  EXPECT_EQ(platform.peer_address(stream.value()).value(), Address::loopback(80));
  EXPECT_EQ(platform.local_address(stream.value()).value(), opened.local());
  EXPECT_EQ(platform.unacked_bytes(stream.value()).value(), 0U);
}

TEST(MemoryPlatformCalls, FailForDescriptorsOfAnotherKind) {
  MemoryPlatform platform;
  const loop::Descriptor stream = platform.open_stream(Address::loopback(80)).value();
  const loop::Descriptor listener = platform.listen(Address::loopback(80), {}).value();
  const os::MulticastGroup group{Address::ipv4({239, 1, 1, 1}, 0), 0};
  for (const int wrong : {77, stream.value()}) {
    EXPECT_EQ(error_of(platform.join_group(wrong, group)), bad_descriptor);
    EXPECT_EQ(error_of(platform.leave_group(wrong, group)), bad_descriptor);
    EXPECT_EQ(error_of(platform.refuse_new_connections(wrong)), bad_descriptor);
  }
  for (const int wrong : {77, listener.value()}) {
    EXPECT_EQ(error_of(platform.unacked_bytes(wrong)), bad_descriptor);
    platform.reset_connection(wrong);
  }
  EXPECT_EQ(error_of(platform.configure(77, {})), bad_descriptor);
  EXPECT_EQ(error_of(platform.local_address(77)), bad_descriptor);
  EXPECT_EQ(error_of(platform.share(77)), bad_descriptor);
  EXPECT_TRUE(platform.configure(stream.value(), {}));
}

TEST(MemoryPlatformCalls, OpeningReportsEachError) {
  MemoryPlatform platform({.descriptors_max = 2});
  EXPECT_EQ(error_of(platform.open_stream({})), system_error(EAFNOSUPPORT));
  EXPECT_EQ(error_of(platform.listen({}, {})), system_error(EAFNOSUPPORT));
  EXPECT_EQ(error_of(platform.open_datagrams({})), system_error(EAFNOSUPPORT));
  const loop::Descriptor listener =
      platform.listen(Address::loopback(80), {.backlog = -5, .reuse_port = false}).value();
  EXPECT_EQ(error_of(platform.listen(Address::loopback(80), {})), system_error(EADDRINUSE));
  const loop::Descriptor shared = platform.share(listener.value()).value();
  EXPECT_EQ(platform.descriptors().find(shared.value()),
            platform.descriptors().find(listener.value()));
  const std::error_code full = system_error(EMFILE);
  EXPECT_EQ(error_of(platform.listen(Address::loopback(81), {})), full);
  EXPECT_EQ(error_of(platform.open_stream(Address::loopback(80))), full);
  EXPECT_EQ(error_of(platform.open_datagrams({.local = Address::loopback(53)})), full);
  EXPECT_EQ(error_of(platform.share(listener.value())), full);
  EXPECT_EQ(platform.descriptor_limit().descriptors_max, 2U);
  EXPECT_EQ(platform.descriptor_limit().explanation, "simulated");
  MemoryStream first(10);
  MemoryStream second(10);
  EXPECT_EQ(platform.network().connect(first, Address::loopback(80)),
            MemoryNetwork::ConnectResult::established);
  EXPECT_EQ(platform.network().connect(second, Address::loopback(80)),
            MemoryNetwork::ConnectResult::no_reply)
      << "a negative backlog is that of 0";
}

TEST(MemoryPlatformCalls, AnIsolatedProcessOpensNoPort) {
  ScriptedPlatform platform;
  platform.script.isolated = true;
  EXPECT_EQ(error_of(platform.listen(Address::loopback(80), {})), system_error(EINTR));
  EXPECT_EQ(error_of(platform.open_datagrams({.local = Address::loopback(53)})),
            system_error(EINTR));
}

TEST(MemoryPlatformCalls, DescribeTheMachine) {
  MemoryPlatform platform({.cores = 3, .limited_by_quota = true});
  const os::Topology topology = platform.topology();
  ASSERT_EQ(topology.cores.size(), 3U);
  for (int cpu = 0; cpu < 3; ++cpu) {
    EXPECT_EQ(topology.cores[static_cast<std::size_t>(cpu)].cpu, cpu);
    EXPECT_EQ(topology.cores[static_cast<std::size_t>(cpu)].numa_node, 0);
  }
  EXPECT_EQ(topology.cpus_online, 3U);
  EXPECT_EQ(topology.cpus_allowed, 3U);
  EXPECT_EQ(topology.physical_cores, 3U);
  EXPECT_TRUE(topology.limited_by_quota);
  EXPECT_EQ(topology.explanation, "3 simulated");
  EXPECT_EQ(platform.threads_max(), 1024U);
  EXPECT_TRUE(platform.clock_is_free());
  EXPECT_TRUE(platform.lock_memory().locked);
  platform.fail_memory_lock("no permission");
  EXPECT_FALSE(platform.lock_memory().locked);
  EXPECT_EQ(platform.lock_memory().explanation, "no permission");
}

TEST(MemoryPlatformCalls, HaveDocumentedDefaults) {
  MemoryPlatform platform;
  EXPECT_EQ(platform.topology().cores.size(), 1U);
  EXPECT_FALSE(platform.topology().limited_by_quota);
  EXPECT_EQ(platform.descriptor_limit().descriptors_max, std::size_t{1} << 20);
  EXPECT_EQ(platform.options().buffer_bytes, 65'536U);
  EXPECT_EQ(platform.options().files, MemoryFiles::by_backend);
  EXPECT_EQ(platform.options().seed, 1U);
  // 2025-01-01T00:00:00Z
  EXPECT_EQ(platform.wall_time(), WallTime(std::chrono::seconds(1'735'689'600)));
  // The first numbers of SplitMix64 from seed 0, as published with the generator.
  MemoryPlatform zero({.seed = 0});
  EXPECT_EQ(zero.random(), 0xe220a8397b1dcdafU);
  EXPECT_EQ(zero.random(), 0x6e789e6aa1b965f4U);
  EXPECT_EQ(zero.random(), 0x06c45d188009454fU);
}

TEST(MemoryPlatformCalls, SignalsAreTakenInOrder) {
  ScriptedPlatform platform;
  EXPECT_EQ(platform.take_signal(), std::nullopt);
  platform.raise(loop::Signal::interrupt);
  platform.raise(loop::Signal::terminate);
  EXPECT_EQ(platform.take_signal(), loop::Signal::interrupt);
  EXPECT_EQ(platform.take_signal(), loop::Signal::terminate);
  EXPECT_EQ(platform.take_signal(), std::nullopt);
}

TEST(MemoryPlatformCalls, LinesAreLoggedInOrder) {
  MemoryPlatform platform;
  platform.log("one");
  platform.log("two");
  EXPECT_THAT(platform.logged(), ElementsAre("one", "two"));
}

TEST(MemoryProcesses, ShareTheNetworkButNotTheDescriptors) {
  ScriptedPlatform machine;
  ScriptedPlatform process(machine);
  const loop::Descriptor listener = machine.listen(Address::loopback(80), {}).value();
  EXPECT_EQ(error_of(process.listen(Address::loopback(80), {.require_unused = true})),
            system_error(EADDRINUSE));
  const loop::Descriptor socket = machine.open_datagrams({.local = Address::loopback(53)}).value();
  EXPECT_EQ(error_of(process.open_datagrams({.local = Address::loopback(53)})),
            system_error(EADDRINUSE));
  EXPECT_EQ(machine.open_descriptors(), 2U);
  EXPECT_EQ(process.open_descriptors(), 0U);
  EXPECT_EQ(&machine.clock(), &process.clock());
  ScriptedPlatform another;
  EXPECT_TRUE(another.listen(Address::loopback(80), {.require_unused = true}));
  EXPECT_TRUE(another.open_datagrams({.local = Address::loopback(53)}));
}

std::unique_ptr<Loop> make_loop(MemoryPlatform& platform, unsigned core) {
  Loop::Options options;
  options.core = core;
  return Loop::make(platform, options).value();
}

TEST(MemoryPlatformDriver, ALoopThatHasStoppedIsNotTurned) {
  MemoryPlatform platform;
  const auto first = make_loop(platform, 0);
  const auto second = make_loop(platform, 1);
  TimerProbe early;
  TimerProbe late;
  first->timers().start(early, platform.now() + 1s);
  second->timers().start(late, platform.now() + 2s);
  late.then = [&] { second->stop(); };
  first->stop();
  CallProbe never_run([] { ADD_FAILURE() << "the loop has stopped"; });
  first->ready(never_run);
  const std::vector<loop::LoopPlacement> placements = {{first.get(), -1}, {second.get(), -1}};
  const Instant begun = platform.now();
  EXPECT_TRUE(platform.run(placements, nullptr));
  EXPECT_EQ(early.fired, 0);
  EXPECT_EQ(late.fired, 1);
  EXPECT_EQ(platform.now(), begun + 2s);
  early.cancel();
}

TEST(MemoryPlatformDriver, ADeadlockNamesEachLoop) {
  MemoryPlatform platform;
  const auto first = make_loop(platform, 0);
  const auto second = make_loop(platform, 1);
  first->stop();
  const std::vector<loop::LoopPlacement> placements = {{first.get(), -1}, {second.get(), -1}};
  EXPECT_EQ(error_of(platform.run(placements, nullptr)), system_error(EDEADLK));
  EXPECT_THAT(platform.logged(),
              ElementsAre("deadlock: nothing is ready, no timer is armed and nothing is "
                          "scheduled; loop 0 has stopped; loop 1 waits for nothing"));
}

TEST(MemoryPlatformDriver, ASignalDuringTheRunIsDelivered) {
  class Stopper final : public loop::RunControl {
   public:
    explicit Stopper(Loop& loop) : loop_(loop) {}
    void on_signal(loop::Signal signal) override {
      told = signal;
      loop_.stop();
    }
    std::optional<loop::Signal> told;

   private:
    Loop& loop_;
  };
  MemoryPlatform platform;
  const auto loop = make_loop(platform, 0);
  Stopper control(*loop);
  CallProbe raise([&] { platform.raise(loop::Signal::terminate); });
  loop->ready(raise);
  const loop::LoopPlacement placement{loop.get(), -1};
  EXPECT_TRUE(platform.run({&placement, 1}, &control)) << "no deadlock before the signal";
  EXPECT_EQ(control.told, loop::Signal::terminate);
}

TEST(MemoryPlatformDriver, ASignalWithoutAControlEndsARunThatHasBegun) {
  MemoryPlatform platform;
  const auto loop = make_loop(platform, 0);
  const Instant begun = platform.now();
  platform.at(begun + 3s, [&] { platform.raise(loop::Signal::terminate); });
  const loop::LoopPlacement placement{loop.get(), -1};
  EXPECT_EQ(error_of(platform.run({&placement, 1}, nullptr)), system_error(EINTR));
  EXPECT_EQ(platform.now(), begun + 3s);
  EXPECT_FALSE(loop->stopping());
  EXPECT_EQ(error_of(platform.run({&placement, 1}, nullptr)), system_error(EDEADLK))
      << "the signal is used up";
}

TEST(MemoryPlatformDriver, AnEventMayMakeDoneTrue) {
  MemoryPlatform platform;
  const auto loop = make_loop(platform, 0);
  bool happened = false;
  const Instant begun = platform.now();
  platform.at(begun + 5s, [&] { happened = true; });
  EXPECT_TRUE(platform.run_until(*loop, [&] { return happened; }));
  EXPECT_EQ(platform.now(), begun + 5s);
  platform.at(begun + 9s, [] {});
  EXPECT_TRUE(platform.run_until(*loop, [] { return true; }));
  EXPECT_EQ(platform.now(), begun + 5s) << "nothing is left to wait for";
  EXPECT_FALSE(platform.run_until(*loop, [] { return false; }));
  EXPECT_EQ(platform.now(), begun + 9s);
}

TEST(MemoryPlatformDriver, AdvanceIncludesItsEnd) {
  MemoryPlatform platform;
  const auto first = make_loop(platform, 0);
  const auto second = make_loop(platform, 1);
  TimerProbe timers[3];
  first->timers().start(timers[0], platform.now() + 1s);
  second->timers().start(timers[1], platform.now() + 2s);
  second->timers().start(timers[2], platform.now() + 2s + 1ms);
  const std::vector<Loop*> loops = {first.get(), second.get()};
  platform.advance(loops, 2s);
  EXPECT_EQ(timers[0].fired, 1);
  EXPECT_EQ(timers[1].fired, 1);
  EXPECT_EQ(timers[2].fired, 0);
  platform.advance(loops, 1ms);
  EXPECT_EQ(timers[2].fired, 1);
}

}  // namespace
}  // namespace weir::memory_platform_calls_test
