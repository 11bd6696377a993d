#include "weir/net/stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "weir/net/test/net_fixture.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir::stream_test {
namespace {

class StreamTest : public NetTest {
 protected:
  /// Returns true if the kernel works on operations and buffers of the loop in the background.
  bool reads_ahead() const { return loop_->backend().name().starts_with("uring"); }
};
INSTANTIATE_TEST_SUITE_P(On, StreamTest, every_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

/// The tests of backends that leave arrived bytes in the kernel until a read.
class UnbufferedStreamTest : public StreamTest {};
INSTANTIATE_TEST_SUITE_P(On, UnbufferedStreamTest, net_kinds_without_read_ahead(),
                         [](const auto& info) { return std::string(info.param.name); });

/// Tests that need simulated sockets: for equal runs, or to wait in virtual time.
class SimulatedStreamTest : public StreamTest {};
INSTANTIATE_TEST_SUITE_P(On, SimulatedStreamTest, simulated_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + (i * 7 + i / 251) % 26);
  return text;
}

bool is_gone(std::error_code error) {
  return error == std::errc::connection_reset || error == std::errc::broken_pipe;
}

TEST_P(StreamTest, CarriesBytesBothWays) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    EXPECT_TRUE(co_await pair.client.write("question"));
    EXPECT_EQ(co_await read_some(pair.server, 8), "question");
    EXPECT_TRUE(co_await pair.server.write("answer"));
    EXPECT_EQ(co_await read_some(pair.client, 6), "answer");
    EXPECT_EQ(pair.client.local_address(), pair.server.peer_address());
    EXPECT_EQ(pair.client.peer_address(), pair.server.local_address());
    EXPECT_TRUE(pair.client.set_no_delay(false));
  };
  run(talk());
}

TEST_P(StreamTest, ReadsIntoTheCallersMemory) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    EXPECT_TRUE(co_await pair.client.write("hello, world"));
    std::string text;
    std::array<std::byte, 5> room{};
    while (text.size() < 12) {
      const auto count = co_await pair.server.read_into(room);
      EXPECT_TRUE(count);
      if (!count) break;
      EXPECT_GE(*count, 1U);
      text += to_text(Bytes(room).first(*count));
    }
    EXPECT_EQ(text, "hello, world");
    // Both kinds of reads are mixed, and no byte is read twice.
    EXPECT_TRUE(co_await pair.client.write("123456789"));
    const auto first = co_await pair.server.read_into(room);
    std::string digits(to_text(Bytes(room).first(first.value())));
    digits += co_await read_some(pair.server, 9 - *first);
    EXPECT_EQ(digits, "123456789");
  };
  run(talk());
}

TEST_P(StreamTest, WritesManyPiecesInOrder) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    std::vector<std::string> texts;
    std::string whole;
    for (std::size_t i = 0; i < 3000; ++i) {
      texts.push_back(i % 7 == 0 ? "" : pattern(i % 97));
      whole += texts.back();
    }
    std::vector<Bytes> pieces;
    for (const std::string& text : texts) pieces.push_back(to_bytes(text));
    const auto write = [](Stream& to, std::span<const Bytes> all) -> Task<Result<>> {
      co_return co_await to.write(all);
    };
    const auto both =
        co_await all(write(pair.client, pieces), read_some(pair.server, whole.size()));
    EXPECT_TRUE(both);
    EXPECT_EQ(std::get<1>(*both), whole);
    EXPECT_TRUE(co_await pair.client.write(std::string_view()));
    EXPECT_TRUE(co_await pair.client.write(std::span<const Bytes>()));
    EXPECT_TRUE(co_await pair.client.write("end"));
    EXPECT_EQ(co_await read_some(pair.server, 3), "end");
  };
  run(talk());
}

TEST_P(StreamTest, PartialWritesTakeWhatFitsInOrder) {
  const std::string sent = pattern(8'000'000);
  const auto write = [](Stream& to, std::string_view text) -> Task<> {
    while (!text.empty()) {
      const Bytes rest = to_bytes(text);
      const std::array pieces{rest.first(rest.size() / 3), rest.subspan(rest.size() / 3)};
      const auto count = to.try_write(pieces);
      EXPECT_TRUE(count);
      if (!count) co_return;
      text.remove_prefix(*count);
      const std::size_t next = std::min<std::size_t>(text.size(), 1000);
      EXPECT_TRUE(co_await to.write(text.substr(0, next)));  // waits for room
      text.remove_prefix(next);
    }
  };
  const auto talk = [&]() -> Task<> {
    Pair pair = co_await connect_pair();
    const auto both = co_await all(write(pair.client, sent), read_some(pair.server, sent.size()));
    EXPECT_TRUE(both);
    EXPECT_TRUE(std::get<1>(*both) == sent);
    pair.client.close();
    EXPECT_EQ(pair.client.try_write({}).error(), Errc::closed);
  };
  run(talk());
}

TEST_P(StreamTest, CarriesMegabytesBothWaysConcurrently) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    const std::string up = pattern(8 << 20), down = pattern(5'000'001);
    const auto write = [](Stream& to, std::string_view text) -> Task<Result<>> {
      auto written = co_await to.write(text);
      if (written) written = to.finish_writing();
      co_return written;
    };
    const auto all_of = co_await all(write(pair.client, up), write(pair.server, down),
                                     read_to_end(pair.client), read_to_end(pair.server));
    EXPECT_TRUE(all_of);
    if (!all_of) co_return;
    EXPECT_TRUE(std::get<2>(*all_of).first == down);
    EXPECT_TRUE(std::get<3>(*all_of).first == up);
    EXPECT_EQ(std::get<2>(*all_of).second, Errc::end_of_stream);
    EXPECT_EQ(std::get<3>(*all_of).second, Errc::end_of_stream);
  };
  run(talk());
}

TEST_P(StreamTest, HalfClosedStreamCarriesTheOtherDirection) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    EXPECT_TRUE(co_await pair.client.write("last words"));
    EXPECT_TRUE(pair.client.finish_writing());
    const auto heard = co_await read_to_end(pair.server);
    EXPECT_EQ(heard.first, "last words");
    EXPECT_EQ(heard.second, Errc::end_of_stream);
    EXPECT_EQ((co_await pair.server.read()).error(), Errc::end_of_stream) << "on every later call";
    std::array<std::byte, 1> room{};
    EXPECT_EQ((co_await pair.server.read_into(room)).error(), Errc::end_of_stream);
    EXPECT_TRUE(co_await pair.server.write("I heard you"));
    EXPECT_EQ(co_await read_some(pair.client, 11), "I heard you");
    const auto written = co_await pair.client.write("more");
    EXPECT_TRUE(!written && is_gone(written.error()));
  };
  run(talk());
}

TEST_P(StreamTest, PeerSeesTheClose) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    EXPECT_TRUE(co_await pair.client.write("bye"));
    pair.client.close();
    pair.client.close();
    EXPECT_EQ((co_await pair.client.read()).error(), Errc::closed);
    EXPECT_EQ((co_await pair.client.write("x")).error(), Errc::closed);
    EXPECT_EQ(pair.client.finish_writing().error(), Errc::closed);
    EXPECT_EQ(pair.client.set_no_delay(true).error(), Errc::closed);
    EXPECT_EQ(pair.client.local_address(), os::Address());
    const auto heard = co_await read_to_end(pair.server);
    EXPECT_EQ(heard.first, "bye");
    EXPECT_EQ(heard.second, Errc::end_of_stream);
    // A write to a closed peer returns an error sooner or later.
    Result<> written;
    for (int i = 0; i < 100 && written; ++i) {
      written = co_await pair.server.write(pattern(100'000));
      co_await yield();
    }
    EXPECT_TRUE(!written && is_gone(written.error()));
  };
  run(talk());
}

TEST_P(UnbufferedStreamTest, CloseWithUnreadBytesResets) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    EXPECT_TRUE(co_await pair.client.write("never read"));
    EXPECT_TRUE(co_await pair.server.write("x"));
    EXPECT_EQ(co_await read_some(pair.client, 1), "x");
    pair.server.close();
    const auto heard = co_await pair.client.read();
    EXPECT_EQ(heard.error(), std::errc::connection_reset);
  };
  run(talk());
}

TEST_P(SimulatedStreamTest, ResetEndsAPendingReadAndWrite) {
  const auto talk = [this]() -> Task<> {
    Pair pair = co_await connect_pair();
    const auto write = [](Stream& to) -> Task<std::error_code> {
      co_return (co_await to.write(pattern(1 << 20))).error();
    };
    const auto read = [](Stream& from) -> Task<std::error_code> {
      co_return (co_await from.read()).error();
    };
    const auto reset = [](MemoryPlatform& platform, tcp::Stream& of) -> Task<> {
      co_await yield();
      for (int descriptor = 0; descriptor < 100; ++descriptor) {
        const auto address = platform.local_address(descriptor);
        if (address && *address == of.local_address()) platform.reset_connection(descriptor);
      }
    };
    const auto outcomes =
        co_await all(write(pair.client), read(pair.client), reset(*memory_, pair.client));
    EXPECT_TRUE(outcomes);
    EXPECT_TRUE(is_gone(std::get<0>(*outcomes)));
    EXPECT_TRUE(is_gone(std::get<1>(*outcomes)));
  };
  run(talk());
}

TEST_P(StreamTest, CancelledReadLosesNoData) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    std::string sent, heard;
    for (int i = 0; i < 200; ++i) {
      const auto write = [](Stream& to, std::string text, int after) -> Task<Result<>> {
        for (int turn = 0; turn < after; ++turn) std::ignore = co_await sleep(0s);
        co_return co_await to.write(text);
      };
      const auto read = [](Stream& from) -> Task<Result<std::string>> {
        WEIR_CO_TRY(const auto bytes, co_await from.read());
        co_return std::string(bytes.text());
      };
      const auto hurry = [](Stream& of, int after) -> Task<> {
        for (int turn = 0; turn < after; ++turn) std::ignore = co_await sleep(0s);
        of.cancel_read();
      };
      const std::string text = std::to_string(i) + ";";
      sent += text;
      const auto outcomes = co_await all(
          write(pair.client, text, i % 5),
          [](Task<Result<std::string>> task) -> Task<std::string> {
            const auto got = co_await std::move(task);
            if (!got) {
              EXPECT_EQ(got.error(), Errc::cancelled);
            }
            co_return got ? *got : "";
          }(read(pair.server)),
          hurry(pair.server, (i / 5) % 7));
      EXPECT_TRUE(outcomes);
      heard += std::get<1>(*outcomes);
    }
    pair.client.close();
    heard += (co_await read_to_end(pair.server)).first;
    EXPECT_EQ(heard, sent);
  };
  run(talk());
}

TEST_P(StreamTest, ReadsFailInACancelledTask) {
  CancelSource cancel;
  const auto talk = [](CancelSource& source) -> Task<> {
    const Context own = co_await this_context();
    Pair pair = co_await connect_pair();
    source.cancel();
    EXPECT_TRUE(co_await pair.client.write("there")) << "a write that does not wait succeeds";
    const auto read = [](Stream& from) -> Task<Result<Buffer>> { co_return co_await from.read(); };
    const Context cancelled{own.loop, &source};
    EXPECT_EQ((co_await in_context(cancelled, read(pair.client))).error(), Errc::cancelled);
    std::array<std::byte, 10> room{};
    const auto into = [](Stream& from, MutableBytes to) -> Task<Result<std::size_t>> {
      co_return co_await from.read_into(to);
    };
    EXPECT_EQ((co_await in_context(cancelled, into(pair.client, room))).error(), Errc::cancelled);
    EXPECT_EQ(co_await read_some(pair.server, 5), "there");
  };
  run(talk(cancel));
}

TEST_P(StreamTest, ReadTimesOut) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    EXPECT_EQ((co_await timeout(1ms, pair.server.read())).error(), Errc::timed_out);
    EXPECT_TRUE(co_await pair.client.write("late"));
    EXPECT_EQ(co_await read_some(pair.server, 4), "late");
  };
  run(talk());
}

TEST_P(StreamTest, CancelledWriteReturnsWithAPartSent) {
  const auto talk = [this]() -> Task<> {
    Pair pair = co_await connect_pair();
    const std::string text = pattern(64 << 20);
    EXPECT_EQ(pair.client.pending_write_sent(), 0U);
    std::size_t sent = 0;
    const auto write = [](Stream& to, std::string_view all) -> Task<std::error_code> {
      co_return (co_await to.write(all)).error();
    };
    const auto cancel = [](Stream& of, std::size_t& so_far) -> Task<> {
      for (int i = 0; i < 10; ++i) std::ignore = co_await sleep(0s);
      so_far = of.pending_write_sent();
      of.cancel_write();
    };
    const auto outcomes = co_await all(write(pair.client, text), cancel(pair.client, sent));
    EXPECT_TRUE(outcomes);
    EXPECT_EQ(std::get<0>(*outcomes), Errc::cancelled);
    EXPECT_LT(sent, text.size());
    EXPECT_EQ(pair.client.pending_write_sent(), 0U) << "no write is pending";
    if (!simulated()) {
      EXPECT_GT(pair.client.unacked_bytes(), 0U) << "the peer has not read";
    }
    pair.client.close();
    const auto heard = co_await read_to_end(pair.server);
    if (reads_ahead()) {
      EXPECT_GE(heard.first.size(), sent);
    } else {
      EXPECT_GT(sent, 0U);
      EXPECT_EQ(heard.first.size(), sent);
    }
    EXPECT_LT(heard.first.size(), text.size());
    EXPECT_TRUE(text.starts_with(heard.first));
  };
  run(talk());
}

TEST_P(StreamTest, NotifiesOfTheHangupOfThePeer) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    HangupProbe replaced;
    pair.server.observe_hangup(&replaced);
    HangupProbe probe;
    pair.server.observe_hangup(&probe);
    EXPECT_TRUE(pair.client.finish_writing());
    EXPECT_EQ((co_await pair.server.read()).error(), Errc::end_of_stream);
    EXPECT_EQ(probe.calls, 0) << "the peer still reads";
    EXPECT_TRUE(co_await pair.server.write("to nobody"));
    pair.client.close();  // unread bytes cause a reset
    for (int i = 0; i < 1000 && probe.calls == 0; ++i) {
      EXPECT_TRUE(co_await sleep(1ms));
    }
    EXPECT_EQ(probe.calls, 1);
    HangupProbe late;
    pair.server.observe_hangup(&late);
    EXPECT_EQ(late.calls, 1) << "the stream is known to be dead";
    pair.server.observe_hangup(nullptr);
    EXPECT_EQ(probe.calls, 1);
    EXPECT_EQ(replaced.calls, 0);
  };
  run(talk());
}

TEST_P(StreamTest, MovesWhileNothingIsPending) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    Pair other = co_await connect_pair();
    tcp::Stream moved = std::move(pair.client);
    EXPECT_TRUE(co_await moved.write("a"));
    EXPECT_EQ(co_await read_some(pair.server, 1), "a");
    EXPECT_EQ((co_await pair.client.write("x")).error(), Errc::closed);
    other.client = std::move(moved);  // closes the old stream
    EXPECT_EQ((co_await other.server.read()).error(), Errc::end_of_stream);
    EXPECT_TRUE(co_await other.client.write("b"));
    EXPECT_EQ(co_await read_some(pair.server, 1), "b");
  };
  run(talk());
}

TEST_P(StreamTest, ClosedStreamHasNoAddressAndNoPendingBytes) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    EXPECT_EQ(pair.client.unacked_bytes(), 0U);
    EXPECT_NE(pair.client.peer_address(), os::Address());
    pair.client.close();
    EXPECT_EQ(pair.client.peer_address(), os::Address());
    EXPECT_EQ(pair.client.local_address(), os::Address());
    EXPECT_EQ(pair.client.unacked_bytes(), 0U);
    EXPECT_EQ(pair.client.pending_write_sent(), 0U);
    std::array<std::byte, 1> room{};
    EXPECT_EQ((co_await pair.client.read_into(room)).error(), Errc::closed);
    HangupProbe probe;
    pair.client.observe_hangup(&probe);
    pair.client.cancel_read();
    pair.client.cancel_write();
    EXPECT_EQ(probe.calls, 0);
  };
  run(talk());
}

TEST_P(StreamTest, LoopCountsItsOpenConnections) {
  const auto talk = [this]() -> Task<> {
    const detail::Counter& open = ConnectionCounters::of(*loop_).open;
    EXPECT_EQ(open.value(), 0U);
    {
      Pair pair = co_await connect_pair();
      EXPECT_EQ(open.value(), 2U);
      tcp::Stream moved = std::move(pair.client);
      EXPECT_EQ(open.value(), 2U);
      pair.server.close();
      EXPECT_EQ(open.value(), 1U);
      pair.server.close();
      EXPECT_EQ(open.value(), 1U);
    }
    EXPECT_EQ(open.value(), 0U);
  };
  run(talk());
}

TEST_P(StreamTest, StaysOpenWhenItIsMovedToItself) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    tcp::Stream& same = pair.client;
    pair.client = std::move(same);
    EXPECT_TRUE(co_await pair.client.write("still open"));
    EXPECT_EQ(co_await read_some(pair.server, 10), "still open");
  };
  run(talk());
}

TEST_P(StreamTest, BelongsToTheLoopOfTheStreamThatWasMovedIn) {
  const auto other = Loop::make(*platform_, {.backend = GetParam().backend}).value();
  {
    Pair pair = run(connect_pair());
    Pair others = weir::run(*other, connect_pair());
    EXPECT_EQ(&pair.client.loop(), loop_.get());
    pair.client = std::move(others.client);
    EXPECT_EQ(&pair.client.loop(), other.get());
    EXPECT_EQ(ConnectionCounters::of(*loop_).open.value(), 1U);
    EXPECT_EQ(ConnectionCounters::of(*other).open.value(), 2U);
    const auto talk = [](Stream& client, Stream& server) -> Task<> {
      EXPECT_TRUE(co_await client.write("hello"));
      EXPECT_EQ(co_await read_some(server, 5), "hello");
    };
    weir::run(*other, talk(pair.client, others.server));
    EXPECT_EQ(run(read_to_end(pair.server)).second, Errc::end_of_stream);
  }
  EXPECT_EQ(ConnectionCounters::of(*loop_).open.value(), 0U);
  EXPECT_EQ(ConnectionCounters::of(*other).open.value(), 0U);
}

TEST_P(UnbufferedStreamTest, WaitingReadHoldsNoBuffer) {
  const auto talk = [this]() -> Task<> {
    Pair pair = co_await connect_pair();
    const auto write = [&]() -> Task<> {
      co_await yield();
      loop_->blocks().collect();
      EXPECT_EQ(loop_->blocks().blocks_in_use(BlockUse::buffer), 0U);
      EXPECT_TRUE(co_await pair.client.write("now"));
    };
    const auto both = co_await all(read_some(pair.server, 3), write());
    EXPECT_EQ(std::get<0>(both.value()), "now");
  };
  run(talk());
}

TEST_P(StreamTest, CancelledScopeClosesItsStreams) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    const auto serve = [](tcp::Stream stream) -> Task<> {
      while (co_await stream.read()) {
      }
    };
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(serve(std::move(pair.server)));
      co_await yield();
      scope.cancel();
    };
    EXPECT_TRUE(co_await with_scope(body));
    EXPECT_EQ((co_await pair.client.read()).error(), Errc::end_of_stream);
  };
  run(talk());
}

}  // namespace
}  // namespace weir::stream_test
