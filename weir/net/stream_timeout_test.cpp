// Tests of the timeouts of reads, writes and connection attempts.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/net/stream.hpp"
#include "weir/net/test/net_fixture.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir::stream_timeout_test {
namespace {

// GCC 12 would destroy another one twice within an expression that awaits.
static_assert(std::is_trivially_destructible_v<IoOptions>);

class StreamTimeoutTest : public NetTest {};
INSTANTIATE_TEST_SUITE_P(On, StreamTimeoutTest, every_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

/// Tests of backends that need no buffer for arrived bytes.
class UnbufferedStreamTimeoutTest : public NetTest {};
INSTANTIATE_TEST_SUITE_P(On, UnbufferedStreamTimeoutTest, net_kinds_without_read_ahead(),
                         [](const auto& info) { return std::string(info.param.name); });

/// Tests that need virtual time.
class SimulatedStreamTimeoutTest : public NetTest {
 protected:
  Duration elapsed() const { return platform_->now() - begin_; }
  /// Runs `use` with the stream of an accepted connection, whose client is a MemoryPeer.
  template <class Use>
  void run_with_peer(Use use, CancelSource* cancel = nullptr) {
    const auto talk = [this, &use]() -> Task<> {
      const Context own = co_await this_context();
      auto opening = in_context(Context{own.loop, nullptr}, listen_locally());
      tcp::Listener listener = co_await std::move(opening);
      MemoryPeer peer(*memory_, listener.local_address());
      auto accepting = in_context(Context{own.loop, nullptr}, as_task(listener.accept()));
      auto stream = co_await std::move(accepting);
      begin_ = platform_->now();
      co_await use(*stream, peer);
    };
    run(talk(), cancel);
  }

 private:
  Instant begin_{};
};
INSTANTIATE_TEST_SUITE_P(On, SimulatedStreamTimeoutTest, simulated_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(StreamTimeoutTest, ReadsTimeOutAndLoseNoData) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    EXPECT_EQ((co_await pair.server.read({.timeout = 1ms})).error(), Errc::timed_out);
    std::array<std::byte, 4> room{};
    const auto count = co_await pair.server.read_into(room, {.timeout = 1ms});
    EXPECT_FALSE(count);
    EXPECT_EQ(count ? std::error_code() : count.error(), Errc::timed_out);
    EXPECT_TRUE(co_await pair.client.write("late"));
    EXPECT_EQ(co_await read_some(pair.server, 4), "late");
    EXPECT_TRUE(co_await pair.client.write("later"));
    const auto in_time = co_await pair.server.read({.timeout = 1h});
    EXPECT_TRUE(in_time);
    EXPECT_EQ(in_time ? in_time->text() : "", "later");
  };
  run(talk());
}

TEST_P(StreamTimeoutTest, DataThatHasArrivedIsReadWithoutWaiting) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    for (int i = 0; i < 100; ++i) {
      const Duration none = i % 2 == 0 ? Duration(0) : Duration::min();
      EXPECT_TRUE(co_await pair.client.write("data"));
      const auto read = co_await pair.server.read({.timeout = none});
      EXPECT_TRUE(read) << i;
      EXPECT_EQ(read ? read->text() : "", "data");
      EXPECT_EQ((co_await pair.server.read({.timeout = none})).error(), Errc::timed_out);
    }
    pair.client.close();
    EXPECT_EQ((co_await pair.server.read({.timeout = 1h})).error(), Errc::end_of_stream);
  };
  run(talk());
}

TEST_P(StreamTimeoutTest, WritesTimeOutWithAPartSent) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    EXPECT_TRUE(co_await pair.client.write("", {.timeout = Duration(0)})) << "it need not wait";
    EXPECT_TRUE(co_await pair.client.write("first;", {.timeout = 1h}));
    const std::string much(64 << 20, 'x');
    EXPECT_EQ((co_await pair.client.write(much, {.timeout = 20ms})).error(), Errc::timed_out);
    EXPECT_EQ(pair.client.pending_write_sent(), 0U) << "no write is pending";
    pair.client.close();
    const auto heard = co_await read_to_end(pair.server);
    EXPECT_TRUE(heard.first.starts_with("first;"));
    EXPECT_LT(heard.first.size(), much.size());
  };
  run(talk());
}

/// Returns the number of threads that the kernel has started for requests of io_uring.
int kernel_workers() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name.starts_with("iou-wrk")) ++count;
  }
  return count;
}

// The end of the peer's sending wakes a send that waits in io_uring, although it has no room.
TEST_P(StreamTimeoutTest, WriteToAPeerThatHasFinishedTimesOutAndTakesNoThread) {
  const auto talk = []() -> Task<> {
    const std::string much(64 << 20, 'x');
    for (const bool before : {true, false}) {
      Pair pair = co_await connect_pair();
      if (before) {
        EXPECT_TRUE(pair.server.finish_writing());
      }
      const auto write = [](Stream& to, std::string_view text) -> Task<std::error_code> {
        co_return (co_await to.write(text, {.timeout = 30ms})).error();
      };
      const auto finish = [](Pair& of) -> Task<std::error_code> {
        std::ignore = co_await sleep(10ms);
        std::ignore = of.server.finish_writing();
        co_return (co_await of.client.read()).error();
      };
      const auto errors = co_await all(write(pair.client, much), finish(pair));
      EXPECT_TRUE(errors);
      EXPECT_EQ(std::get<0>(*errors), Errc::timed_out);
      EXPECT_EQ(std::get<1>(*errors), Errc::end_of_stream);
      EXPECT_EQ(kernel_workers(), 0);
    }
  };
  run(talk());
}

TEST_P(StreamTimeoutTest, WriteOfPiecesTimesOut) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    const std::string much(32 << 20, 'x');
    const std::array<Bytes, 2> pieces{to_bytes(much), to_bytes(much)};
    const auto sent = co_await pair.client.write(std::span<const Bytes>(pieces), {.timeout = 20ms});
    EXPECT_FALSE(sent);
    EXPECT_EQ(sent ? std::error_code() : sent.error(), Errc::timed_out);
  };
  run(talk());
}

TEST_P(StreamTimeoutTest, AReadAndAWriteTimeOutSeparately) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    const std::string much(64 << 20, 'x');
    const auto write = [](Stream& to, std::string_view text) -> Task<std::error_code> {
      co_return (co_await to.write(text, {.timeout = 30ms})).error();
    };
    const auto read = [](Stream& from) -> Task<std::error_code> {
      co_return (co_await from.read({.timeout = 10ms})).error();
    };
    const auto errors = co_await all(write(pair.client, much), read(pair.client));
    EXPECT_TRUE(errors);
    EXPECT_EQ(std::get<0>(*errors), Errc::timed_out);
    EXPECT_EQ(std::get<1>(*errors), Errc::timed_out);
  };
  run(talk());
}

// A frame and a buffer are blocks of the core.
TEST_P(StreamTimeoutTest, ReadThatTimesOutAllocatesNoBlock) {
  const auto talk = [this]() -> Task<> {
    Pair pair = co_await connect_pair();
    std::array<std::byte, 8> room{};
    // io_uring lends buffers to the kernel for the first read.
    EXPECT_FALSE(co_await pair.server.read_into(room, {.timeout = 1ms}));
    loop_->blocks().fail_after(0);
    const auto count = co_await pair.server.read_into(room, {.timeout = 1ms});
    EXPECT_TRUE(loop_->blocks().will_fail()) << "a block was allocated";
    EXPECT_EQ(count ? std::error_code() : count.error(), Errc::timed_out);
    EXPECT_THROW(static_cast<void>(Buffer::with_capacity()), std::bad_alloc);
  };
  run(talk());
}

TEST_P(UnbufferedStreamTimeoutTest, TimedOperationsAllocateNoBlock) {
  const auto talk = [this]() -> Task<> {
    Pair pair = co_await connect_pair();
    std::array<std::byte, 8> room{};
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn([](Stream& to, BlockPool& blocks) -> Task<> {
        co_await yield();
        blocks.fail_after(0);
        EXPECT_TRUE(co_await to.write("data", {.timeout = 1h}));
      }(pair.client, loop_->blocks()));
      const auto count = co_await pair.server.read_into(room, {.timeout = 1h});
      EXPECT_EQ(count.value(), 4U);
      EXPECT_TRUE(loop_->blocks().will_fail()) << "a block was allocated";
      EXPECT_THROW(static_cast<void>(Buffer::with_capacity()), std::bad_alloc);
    };
    EXPECT_TRUE(co_await with_scope(body));
  };
  run(talk());
}

TEST_P(StreamTimeoutTest, CancelledTaskReadsWithErrcCancelled) {
  CancelSource cancel;
  const auto talk = [](CancelSource& source) -> Task<> {
    const Context own = co_await this_context();
    Pair pair = co_await connect_pair();
    source.cancel();
    const auto read = [](Stream& from) -> Task<Result<Buffer>> {
      co_return co_await from.read({.timeout = Duration(0)});
    };
    auto reading = in_context(Context{own.loop, &source}, read(pair.client));
    EXPECT_EQ((co_await std::move(reading)).error(), Errc::cancelled);
  };
  run(talk(cancel));
}

TEST_P(StreamTimeoutTest, CancelReadBeforeTheTimeoutIsNoTimeout) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    const auto read = [](Stream& from) -> Task<std::error_code> {
      co_return (co_await from.read({.timeout = 1h})).error();
    };
    const auto cancel = [](Stream& of) -> Task<> {
      co_await yield();
      of.cancel_read();
    };
    const auto both = co_await all(read(pair.server), cancel(pair.server));
    EXPECT_TRUE(both);
    EXPECT_EQ(std::get<0>(*both), Errc::cancelled);
  };
  run(talk());
}

TEST_P(StreamTimeoutTest, ConnectTimesOut) {
  const auto talk = []() -> Task<> {
    // A full queue leaves new clients without an answer.
    const ListenOptions full{.backlog = 0};
    tcp::Listener listener = co_await listen_locally(full);
    std::vector<tcp::Stream> connected;
    Result<tcp::Stream> stream = fail(Errc::closed);
    for (int i = 0; i < 10; ++i) {
      stream = co_await tcp::connect(listener.local_address(), {.timeout = 20ms});
      if (!stream) break;
      connected.push_back(std::move(*stream));
    }
    EXPECT_EQ(stream.error(), Errc::timed_out);
  };
  run(talk());
}

TEST_P(SimulatedStreamTimeoutTest, TheTimeoutCountsFromTheAwait) {
  run_with_peer([this](tcp::Stream& stream, MemoryPeer&) -> Task<> {
    auto reading = stream.read({.timeout = 1s});
    memory_->clock().move_to(memory_->now() + 3s);  // in the middle of this turn
    EXPECT_EQ((co_await reading).error(), Errc::timed_out);
    EXPECT_EQ(elapsed(), 4s);
  });
}

TEST_P(SimulatedStreamTimeoutTest, ALongTimeoutAndNoneNeverPass) {
  run_with_peer([this](tcp::Stream& stream, MemoryPeer& peer) -> Task<> {
    memory_->at(memory_->now() + 24h, [&] { peer.send("day"); });
    EXPECT_TRUE(co_await stream.read({.timeout = Duration::max()}));
    memory_->at(memory_->now() + 24h, [&] { peer.send("day"); });
    const IoOptions none;
    EXPECT_TRUE(co_await stream.read(none));
    EXPECT_EQ(elapsed(), 48h);
  });
}

/// The ends of a read. The earliest one decides, in this order at the same time.
struct Times {
  Duration data;
  Duration cancellation;
  Duration timeout;
};
std::error_code expected_error(const Times& at) {
  if (at.data <= at.cancellation && at.data <= at.timeout) return {};
  return make_error_code(at.cancellation <= at.timeout ? Errc::cancelled : Errc::timed_out);
}

// The events of the platform happen in the loop's wait, before the timers fire.
TEST_P(SimulatedStreamTimeoutTest, TheEarliestOfDataCancellationAndTimeoutDecides) {
  constexpr std::array<Duration, 3> lengths{1ms, 2ms, 3ms};
  for (const Duration data : lengths) {
    for (const Duration cancellation : lengths) {
      for (const Duration timeout : lengths) {
        const Times at{data, cancellation, timeout};
        SCOPED_TRACE(testing::Message() << at.data.count() << " " << at.cancellation.count() << " "
                                        << at.timeout.count());
        CancelSource cancel;
        run_with_peer(
            [this, &cancel, &at](tcp::Stream& stream, MemoryPeer& peer) -> Task<> {
              const Context own = co_await this_context();
              memory_->at(memory_->now() + at.data, [&] { peer.send("data"); });
              memory_->at(memory_->now() + at.cancellation, [&] { cancel.cancel(); });
              const auto read = co_await stream.read({.timeout = at.timeout});
              EXPECT_EQ(read ? std::error_code() : read.error(), expected_error(at));
              EXPECT_EQ(elapsed(), std::min({at.data, at.cancellation, at.timeout}));
              EXPECT_EQ(loop_->timers().armed(), 0U);
              std::string text(read ? read->text() : "");
              auto rest =
                  in_context(Context{own.loop, nullptr}, read_some(stream, 4 - text.size()));
              text += co_await std::move(rest);
              EXPECT_EQ(text, "data");
              auto pause = in_context(Context{own.loop, nullptr}, as_task(sleep(5ms)));
              EXPECT_TRUE(co_await std::move(pause)) << "the other events come";
            },
            &cancel);
      }
    }
  }
}

TEST_P(SimulatedStreamTimeoutTest, ManyTimedReadsLeaveNoTimer) {
  run_with_peer([this](tcp::Stream& stream, MemoryPeer& peer) -> Task<> {
    int in_time = 0;
    for (int i = 0; i < 1000; ++i) {
      const Duration length = i % 2 == 0 ? 5ms : 15ms;
      memory_->at(memory_->now() + length, [&] { peer.send("x"); });
      const auto read = co_await stream.read({.timeout = 10ms});
      in_time += read ? 1 : 0;
      EXPECT_EQ(loop_->timers().armed(), 0U);
      if (!read) {
        EXPECT_TRUE(co_await stream.read()) << "no data is lost";
      }
    }
    EXPECT_EQ(in_time, 500);
  });
}

}  // namespace
}  // namespace weir::stream_timeout_test
