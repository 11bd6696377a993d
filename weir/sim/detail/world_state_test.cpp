// Tests of the parts of a World's state: the trace, the links, and the random decisions of a host.
#include "weir/sim/detail/world_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "weir/loop/contract/detail/backend.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir::sim::world_state_test {
namespace {

using testing::ElementsAre;

const Endpoint one = Endpoint::ipv4({10, 0, 0, 1}, 0);
const Endpoint two = Endpoint::ipv4({10, 0, 0, 2}, 0);

WorldOptions with(const JitterOptions& jitter, bool trace = false) {
  return {.seed = 7, .jitter = jitter, .trace = trace};
}

TEST(Trace, HasOneLineForEachNote) {
  MemoryClock clock;
  Trace trace(clock, true);
  trace.note("begun");
  clock.move_to(after(clock.now(), 1s + 2ns));
  trace.set_location("server/1");
  trace.note("receive 3: 5");
  clock.move_to(after(clock.now(), 11s + 345'678'899ns));
  trace.note("late");
  trace.set_location("-");
  trace.note("end");
  EXPECT_EQ(trace.text(),
            "0.000000000 - begun\n"
            "1.000000002 server/1 receive 3: 5\n"
            "12.345678901 server/1 late\n"
            "12.345678901 - end\n");
  EXPECT_TRUE(trace.on());
}

TEST(Trace, IsEmptyUnlessItIsOn) {
  MemoryClock clock;
  Trace trace(clock, false);
  trace.note("something");
  EXPECT_EQ(trace.text(), "");
  EXPECT_FALSE(trace.on());
}

TEST(ThrownBy, ReturnsTheTextOfAnException) {
  bool called = false;
  EXPECT_EQ(thrown_by([&] { called = true; }), std::nullopt);
  EXPECT_TRUE(called);
  EXPECT_EQ(thrown_by([] { throw std::runtime_error("why"); }), "why");
  EXPECT_EQ(thrown_by([] { throw 1; }), "an exception of an unknown type");
}

TEST(FreshSeed, DiffersInBothHalves) {
  std::set<std::uint64_t> high;
  std::set<std::uint64_t> low;
  for (int seed = 0; seed < 8; ++seed) {
    const std::uint64_t fresh = fresh_seed();
    high.insert(fresh >> 32);
    low.insert(fresh & 0xffff'ffff);
  }
  EXPECT_EQ(high.size(), 8U);
  EXPECT_EQ(low.size(), 8U);
}

void use_cpu(Duration length) {
  const os::ThreadProbe own = os::ThreadProbe::of_this_thread();
  const Duration end = own.cpu_time() + length;
  while (own.cpu_time() < end) {
  }
}

// Another thread wakes the function after each 2 ms of its own CPU time. The function sleeps nearly
// always, in total for longer than the limit.
TEST(BlockingCallDetector, AllowsAFunctionThatUsesCpuTimeBetweenItsSleeps) {
  constexpr int wakes_max = 400;
  std::mutex mutex;
  std::condition_variable woken;
  int wakes = 0;
  BlockingCallDetector detector(600ms, "the replay");
  detector.on_call_begin();
  std::thread waking([&] {
    for (int each = 0; each < wakes_max; ++each) {
      use_cpu(2ms);
      const std::lock_guard lock(mutex);
      ++wakes;
      woken.notify_one();
    }
  });
  for (int seen = 0; seen < wakes_max;) {
    std::unique_lock lock(mutex);
    woken.wait(lock, [&] { return wakes > seen; });
    seen = wakes;
  }
  detector.on_call_end();
  waking.join();
}

// The other thread uses more CPU time than this thread may sleep in a function.
TEST(BlockingCallDetector, AllowsAThreadToSleepAfterAFunction) {
  BlockingCallDetector detector(100ms, "the replay");
  detector.on_call_begin();
  detector.on_call_end();
  std::thread([] { use_cpu(500ms); }).join();
}

/// The smallest and the largest of many values.
struct Range {
  Duration least = Duration::max();
  Duration most = Duration::min();
};
Range range_of(const std::function<Duration()>& draw, int count = 2000) {
  Range range;
  for (int draws = 0; draws < count; ++draws) {
    const Duration each = draw();
    range.least = std::min(range.least, each);
    range.most = std::max(range.most, each);
  }
  return range;
}

TEST(Link, DrawsADelayForEachSegment) {
  JitterOptions jitter = no_jitter;
  jitter.delay_min = 10us;
  jitter.delay_max = 2ms;
  WorldState state(with(jitter));
  Link link(state, false);
  const Range range = range_of([&] { return link.delay(); });
  EXPECT_GE(range.least, 10us);
  EXPECT_LT(range.least, 30us);
  EXPECT_LE(range.most, 2ms);
  EXPECT_GT(range.most, 1900us);
  link.set_extra_delay(1s);
  const Range slower = range_of([&] { return link.delay(); });
  EXPECT_GE(slower.least, 1s + 10us);
  EXPECT_LT(slower.least, 1s + 30us);
  EXPECT_LE(slower.most, 1s + 2ms);
}

TEST(Link, SomeSegmentsAreSlow) {
  JitterOptions jitter = no_jitter;
  jitter.slow_segment = 0.25;
  jitter.slow_segment_max = 400ms;
  WorldState state(with(jitter));
  Link link(state, false);
  int slow = 0;
  int unchanged = 0;
  for (int draws = 0; draws < 2000; ++draws) {
    const Duration delay = link.delay();
    EXPECT_GE(delay, 100us);
    EXPECT_LE(delay, 400ms);
    ++(delay == 100us ? unchanged : slow);
  }
  EXPECT_NEAR(slow, 500, 100);
  EXPECT_NEAR(unchanged, 1500, 100);
}

TEST(Link, WithinAHostIsFastAndNeverSlow) {
  JitterOptions jitter;
  jitter.delay_min = 20us;
  jitter.slow_segment = 1;
  WorldState state(with(jitter));
  Link link(state, true);
  link.set_extra_delay(1s);
  const Range range = range_of([&] { return link.delay(); });
  EXPECT_LT(range.least, 1us);
  EXPECT_LE(range.most, 20us);
  EXPECT_GT(range.most, 19us);
}

TEST(Link, SplitsSomeSegmentsAtARandomByte) {
  JitterOptions jitter = no_jitter;
  WorldState whole(with(jitter));
  Link whole_link(whole, false);
  EXPECT_EQ(whole_link.segment(1000), 1000U);
  jitter.split = 1;
  WorldState state(with(jitter));
  Link link(state, false);
  std::map<std::size_t, int> sizes;
  for (int draws = 0; draws < 1000; ++draws) ++sizes[link.segment(4)];
  EXPECT_EQ(sizes.size(), 4U);
  EXPECT_EQ(sizes.begin()->first, 1U);
  EXPECT_EQ(sizes.rbegin()->first, 4U);
  std::set<std::size_t> of_two;
  for (int draws = 0; draws < 100; ++draws) of_two.insert(link.segment(2));
  EXPECT_THAT(of_two, ElementsAre(1, 2));
  const std::uint64_t next = Random(state.random).next();
  EXPECT_EQ(link.segment(1), 1U);
  EXPECT_EQ(state.random.next(), next) << "one byte cannot be split";
}

TEST(Links, ExistForEachDirection) {
  WorldState state(with(no_jitter));
  SeededNondeterminism decisions(state, "host");
  MemoryNetwork networks[] = {{100, decisions}, {100, decisions}};
  MemoryDatagramNetwork datagrams[2];
  Links links(state);
  links.add(one, networks[0], datagrams[0]);
  links.add(two, networks[1], datagrams[1]);
  EXPECT_EQ(links.network_at(one.with_port(80)), &networks[0]);
  EXPECT_EQ(links.network_at(two), &networks[1]);
  EXPECT_EQ(links.network_at(Endpoint::ipv4({10, 0, 0, 3}, 0)), nullptr);
  EXPECT_EQ(links.datagrams_at(one), &datagrams[0]);
  EXPECT_EQ(links.datagrams_at(two.with_port(53)), &datagrams[1]);
  EXPECT_EQ(links.datagrams_at(Endpoint::ipv4({10, 0, 0, 3}, 0)), nullptr);
  Link& there = links.link(one, two);
  Link& back = links.link(two, one);
  EXPECT_NE(&there, &back);
  EXPECT_EQ(&links.link(one.with_port(1), two.with_port(2)), &there);
  EXPECT_TRUE(there.open());
  there.set_open(false);
  EXPECT_FALSE(links.link(one, two).open());
  EXPECT_TRUE(back.open());
  there.set_open(true);
  EXPECT_TRUE(there.open());
  EXPECT_EQ(there.delay(), 100us);
  EXPECT_LT(range_of([&] { return links.link(one, one).delay(); }).least, 50us) << "within a host";
  EXPECT_EQ(&there.clock(), &state.clock);
}

class SeededNondeterminismTest : public testing::Test {
 protected:
  explicit SeededNondeterminismTest(const JitterOptions& jitter = no_jitter)
      : state_(with(jitter, true)) {}
  /// Returns the lines of the trace, without their times and places.
  std::string traced() const {
    std::string text;
    for (std::size_t at = 0; at < state_.trace.text().size();) {
      const std::size_t end = state_.trace.text().find('\n', at);
      const std::string line = state_.trace.text().substr(at, end - at);
      text += line.substr(line.find(" - ") + 3) + "\n";
      at = end + 1;
    }
    return text;
  }

  WorldState state_;
  SeededNondeterminism decisions_{state_, "host"};
};

TEST_F(SeededNondeterminismTest, WithoutJitterEverythingIsImmediateAndComplete) {
  for (int draws = 0; draws < 100; ++draws) {
    EXPECT_TRUE(decisions_.completes_immediately());
    EXPECT_TRUE(decisions_.completes_when_cancelled());
    EXPECT_FALSE(decisions_.picks_first_listener());
    EXPECT_EQ(decisions_.transfer_size(1000), 1000U);
    EXPECT_EQ(decisions_.connect_delay(), 200us) << "there and back";
    EXPECT_EQ(decisions_.step_delay(), 0ns);
    EXPECT_EQ(decisions_.buffer_bytes(65'536), 65'536U);
  }
}

TEST_F(SeededNondeterminismTest, EachDecisionHasItsRate) {
  state_.jitter.deferred = 0.3;
  state_.jitter.cancelled = 0.6;
  state_.jitter.skewed_accept = 0.9;
  int immediate = 0;
  int completed = 0;
  int first = 0;
  for (int draws = 0; draws < 2000; ++draws) {
    immediate += decisions_.completes_immediately() ? 1 : 0;
    completed += decisions_.completes_when_cancelled() ? 1 : 0;
    first += decisions_.picks_first_listener() ? 1 : 0;
  }
  EXPECT_NEAR(immediate, 1400, 100);
  EXPECT_NEAR(completed, 800, 100);
  EXPECT_NEAR(first, 1800, 100);
}

TEST_F(SeededNondeterminismTest, PicksEachCandidate) {
  std::set<std::size_t> picked;
  for (int draws = 0; draws < 200; ++draws) picked.insert(decisions_.pick(3));
  EXPECT_THAT(picked, ElementsAre(0, 1, 2));
}

TEST_F(SeededNondeterminismTest, HalfOfThePartialTransfersAreSmall) {
  state_.jitter.partial = 1;
  int small = 0;
  std::size_t most = 0;
  for (int draws = 0; draws < 2000; ++draws) {
    const std::size_t size = decisions_.transfer_size(10'000);
    EXPECT_GE(size, 1U);
    EXPECT_LE(size, 10'000U);
    small += size <= 16 ? 1 : 0;
    most = std::max(most, size);
  }
  EXPECT_NEAR(small, 1000, 100);
  EXPECT_GT(most, 9900U);
  std::set<std::size_t> sizes;
  for (int draws = 0; draws < 200; ++draws) sizes.insert(decisions_.transfer_size(3));
  EXPECT_THAT(sizes, ElementsAre(1, 2, 3));
  sizes.clear();
  for (int draws = 0; draws < 100; ++draws) sizes.insert(decisions_.transfer_size(2));
  EXPECT_THAT(sizes, ElementsAre(1, 2));
  EXPECT_EQ(decisions_.transfer_size(1), 1U);
  EXPECT_EQ(decisions_.transfer_size(0), 0U);
}

TEST_F(SeededNondeterminismTest, StepsAndHandshakesTakeARandomTime) {
  state_.jitter.step_max = 5ms;
  state_.jitter.delay_min = 1ms;
  state_.jitter.delay_max = 2ms;
  const Range step = range_of([&] { return decisions_.step_delay(); });
  EXPECT_LT(step.least, 100us);
  EXPECT_GT(step.most, 4900us);
  EXPECT_LE(step.most, 5ms);
  const Range connect = range_of([&] { return decisions_.connect_delay(); });
  EXPECT_GE(connect.least, 2ms);
  EXPECT_LT(connect.least, 2100us);
  EXPECT_LE(connect.most, 4ms);
  EXPECT_GT(connect.most, 3900us);
}

TEST_F(SeededNondeterminismTest, BuffersAreHalvedDownToTheMinimum) {
  state_.jitter.buffer_bytes_min = 16;
  std::map<std::size_t, int> sizes;
  for (int draws = 0; draws < 2000; ++draws) ++sizes[decisions_.buffer_bytes(64)];
  EXPECT_EQ(sizes.size(), 3U);
  EXPECT_NEAR(sizes[64], 1000, 100);
  EXPECT_NEAR(sizes[32], 500, 100);
  EXPECT_NEAR(sizes[16], 500, 100);
  for (int draws = 0; draws < 100; ++draws) EXPECT_EQ(decisions_.buffer_bytes(31), 31U);
  state_.jitter.buffer_bytes_min = 1;
  bool halved = false;
  for (int draws = 0; draws < 100; ++draws) halved = halved || decisions_.buffer_bytes(2) == 1;
  EXPECT_TRUE(halved);
}

TEST_F(SeededNondeterminismTest, DatagramsAreCountedLostAndDoubled) {
  state_.faults.inject("host", 1, Fault::loss);
  state_.faults.inject("host", 2, Fault::doubling);
  state_.faults.inject("other", 0, Fault::loss);
  EXPECT_EQ(decisions_.datagram_copies(), 1U);
  EXPECT_EQ(decisions_.datagram_copies(), 0U);
  EXPECT_EQ(decisions_.datagram_copies(), 2U);
  EXPECT_EQ(decisions_.datagrams(), 3U);
  EXPECT_EQ(traced(), "loss of datagram 1\ndoubling of datagram 2\n");
  EXPECT_FALSE(decisions_.is_isolated());
  decisions_.set_isolated(true);
  EXPECT_TRUE(decisions_.is_isolated());
  EXPECT_EQ(decisions_.datagram_copies(), 0U);
  EXPECT_EQ(decisions_.datagrams(), 3U);
  decisions_.set_isolated(false);
  EXPECT_EQ(decisions_.datagram_copies(), 1U);
}

TEST_F(SeededNondeterminismTest, AcceptsAreCountedAndFail) {
  state_.faults.fail_accept("host", 1, system_error(ENFILE));
  EXPECT_EQ(decisions_.accept_error(), std::error_code());
  EXPECT_EQ(decisions_.accept_error(), system_error(ENFILE));
  EXPECT_EQ(decisions_.accept_error(), std::error_code());
  EXPECT_EQ(decisions_.accepts(), 3U);
  EXPECT_EQ(traced(), "accept fails: " + system_error(ENFILE).message() + "\n");
}

TEST_F(SeededNondeterminismTest, FinishedOperationsAreTraced) {
  loop::Socket socket{.descriptor = 5};
  ReceiveProbe receive;
  receive.pending_on(socket);
  receive.finish();
  decisions_.on_finish(receive, 12);
  SendProbe send;
  send.pending_on(socket);
  send.finish(system_error(EPIPE));
  decisions_.on_finish(send, 0);
  Probe<loop::FileOperation> file;
  decisions_.on_finish(file, 3);
  AcceptProbe accept;
  decisions_.on_finish(accept, 0);
  ConnectProbe connect;
  decisions_.on_finish(connect, 0);
  ReceiveDatagramsProbe receive_datagrams;
  decisions_.on_finish(receive_datagrams, 0);
  SendDatagramsProbe send_datagrams;
  decisions_.on_finish(send_datagrams, 0);
  EXPECT_EQ(traced(), "receive 5: 12\nsend 5: 0, " + system_error(EPIPE).message() +
                          "\nfile: 3\naccept: 0\nconnect: 0\nreceive datagrams: 0\n"
                          "send datagrams: 0\n");
}

TEST_F(SeededNondeterminismTest, OperationsOnConnectionsAreCounted) {
  loop::Socket socket{.descriptor = 5};
  SendProbe send;
  AcceptProbe accept;
  MemoryStream stream(100);
  decisions_.on_begin(accept, nullptr);
  EXPECT_EQ(decisions_.operations(), 0U) << "an accept is not one on a connection";
  state_.faults.inject("host", 1, Fault::reset);
  send.pending_on(socket);
  decisions_.on_begin(send, &stream);
  EXPECT_EQ(traced(), "");
  decisions_.on_begin(send, &stream);
  EXPECT_EQ(decisions_.operations(), 2U);
  EXPECT_EQ(traced(), "reset before operation 1, send 5\n");
  EXPECT_EQ(state_.faults.injected(Fault::reset), 1U);
  EXPECT_EQ(state_.faults.injected_connects(), 1U) << "the stream has no connection yet";
  send.finish();
}

/// A connection whose client is the stream of an operation.
class InjectedFaults : public SeededNondeterminismTest {
 protected:
  InjectedFaults() {
    EXPECT_EQ(network_.connect(client_, address_), MemoryNetwork::ConnectResult::established);
    server_ = listener_->take();
  }
  void inject(Fault fault) {
    state_.faults.inject("host", decisions_.operations(), fault);
    SendProbe send;
    decisions_.on_begin(send, &client_);
    EXPECT_EQ(state_.faults.injected(fault), 1U);
    EXPECT_EQ(state_.faults.injected(), 1U);
    EXPECT_EQ(state_.faults.injected_connects(), 0U);
    EXPECT_TRUE(state_.faults.has_injected(client_.local()));
    EXPECT_TRUE(state_.faults.has_injected(address_));
    EXPECT_FALSE(state_.faults.has_injected(one));
  }

  const Endpoint address_ = Endpoint::loopback(80);
  MemoryNetwork network_{100, decisions_};
  std::unique_ptr<MemoryListener> listener_ =
      network_.listen(address_, {.backlog = 1, .reuse_port = false, .require_unused = false})
          .value();
  MemoryStream client_{100};
  std::unique_ptr<MemoryStream> server_;
};

TEST_F(InjectedFaults, AResetIsSeenAtBothEnds) {
  inject(Fault::reset);
  EXPECT_EQ(client_.receivable(), system_error(ECONNRESET));
  EXPECT_EQ(server_->receivable(), system_error(ECONNRESET));
}

TEST_F(InjectedFaults, AHalfCloseEndsTheDataOfTheOtherSide) {
  inject(Fault::half_close);
  EXPECT_EQ(client_.receivable(), Errc::end_of_stream);
  EXPECT_EQ(server_->sendable(), system_error(EPIPE));
  EXPECT_EQ(client_.sendable(), std::error_code());
  EXPECT_EQ(server_->receivable(), system_error(EAGAIN));
}

TEST_F(InjectedFaults, AFullBufferEndsAfterARandomTime) {
  state_.faults.rates.stall_max = 20s;
  inject(Fault::full_buffer);
  EXPECT_EQ(client_.sendable(), system_error(EAGAIN));
  EXPECT_EQ(server_->sendable(), std::error_code());
  const Duration until = state_.clock.next() - state_.clock.now();
  EXPECT_GT(until, 10ms);
  EXPECT_LT(until, 20s);
  state_.clock.move_to(state_.clock.next());
  EXPECT_EQ(client_.sendable(), std::error_code());
}

TEST_F(InjectedFaults, AStallNeitherEndsNorFillsTheConnection) {
  inject(Fault::stall);
  EXPECT_EQ(client_.receivable(), system_error(EAGAIN));
  EXPECT_EQ(client_.sendable(), std::error_code());
  EXPECT_EQ(server_->sendable(), std::error_code());
  EXPECT_EQ(state_.clock.next(), never);
}

/// A connection between two hosts. Each segment takes 100 us. Faults are injected at the client.
class InjectedFaultsOnALink : public testing::Test {
 protected:
  static constexpr int draws = 300;

  InjectedFaultsOnALink() {
    const Endpoint addresses[] = {one, two};
    for (std::size_t host = 0; host < 2; ++host) {
      networks_[host].join(links_, addresses[host]);
      links_.add(addresses[host], networks_[host], datagrams_[host]);
    }
    listener_ =
        networks_[1]
            .listen(Endpoint::any(80), {.backlog = 1, .reuse_port = false, .require_unused = false})
            .value();
    EXPECT_EQ(networks_[0].connect(client_, two.with_port(80)),
              MemoryNetwork::ConnectResult::established);
    server_ = listener_->take();
    state_.faults.rates.stall_max = 5s;
  }
  void inject(Fault fault) {
    state_.faults.inject("host", decisions_.operations(), fault);
    ReceiveProbe receive;
    decisions_.on_begin(receive, &client_);
  }
  static std::string receive(MemoryStream& stream) {
    std::string text(10, '\0');
    text.resize(stream.receive(std::as_writable_bytes(std::span(text))).value_or(0));
    return text;
  }
  Instant now() const { return state_.clock.now(); }

  WorldState state_{with(no_jitter)};
  SeededNondeterminism decisions_{state_, "host"};
  Links links_{state_};
  MemoryNetwork networks_[2] = {{100, decisions_}, {100, decisions_}};
  MemoryDatagramNetwork datagrams_[2];
  std::unique_ptr<MemoryListener> listener_;
  MemoryStream client_{100};
  std::unique_ptr<MemoryStream> server_;
};

TEST_F(InjectedFaultsOnALink, AStallDelaysOnlyTheDataThatArrives) {
  const Range range = range_of(
      [&] {
        inject(Fault::stall);
        const Instant begun = now();
        EXPECT_TRUE(client_.send(to_bytes("there")));
        EXPECT_TRUE(server_->send(to_bytes("back")));
        state_.clock.move_to(after(begun, 100us));
        EXPECT_EQ(receive(*server_), "there") << "the other direction is not stalled";
        if (client_.unread() == 0) state_.clock.move_to(state_.clock.next());
        EXPECT_EQ(receive(client_), "back");
        return now() - begun;
      },
      draws);
  EXPECT_LT(range.least, 200ms);
  EXPECT_GT(range.most, 4800ms);
  EXPECT_LE(range.most, 5s) << "FaultRates::stall_max";
  state_.clock.move_to(after(now(), 5s));
  ASSERT_TRUE(server_->send(to_bytes("later")));
  state_.clock.move_to(after(now(), 100us));
  EXPECT_EQ(receive(client_), "later") << "the stall is over";
}

TEST_F(InjectedFaultsOnALink, AFullBufferLastsAtMostItsMaximum) {
  const Range range = range_of(
      [&] {
        inject(Fault::full_buffer);
        const Instant begun = now();
        EXPECT_EQ(client_.sendable(), system_error(EAGAIN));
        EXPECT_EQ(server_->sendable(), std::error_code());
        state_.clock.move_to(state_.clock.next());
        EXPECT_EQ(client_.sendable(), std::error_code());
        return now() - begun;
      },
      draws);
  EXPECT_LT(range.least, 200ms);
  EXPECT_GT(range.most, 4800ms);
  EXPECT_LE(range.most, 5s) << "FaultRates::stall_max";
}

}  // namespace
}  // namespace weir::sim::world_state_test
