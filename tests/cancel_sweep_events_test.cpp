// Cancels the sending of server-sent events at any time on every real backend; see
// tests/cancel_sweep.hpp.
#include <array>
#include <string>
#include <utility>

#include "tests/cancel_sweep.hpp"
#include "weir/task/combinators.hpp"
#include "weir/web/events/events.hpp"

namespace weir::tests::cancel_sweep_events_test {
namespace {

/// Collects what is written, after a delay.
class SlowSink final : public http::BodySink {
 public:
  using BodySink::write;
  Task<Result<>> write(Bytes piece) override {
    if (auto slept = co_await sleep(short_delay); !slept) co_return slept;
    written_.append(to_text(piece));
    co_return {};
  }
  const std::string& written() const noexcept { return written_; }

 private:
  std::string written_;
};

/// Sends two events at the same time, of which one is cancelled. The other one is sent whole.
Task<> sending(CancelInjector& injector, SweepEnvironment&) {
  SlowSink sink;
  http::EventStream stream(sink, {}, "");
  auto first = stream.send("first");
  auto second = injector.run_with_cancel(stream.send("second"));
  const auto both = co_await all(std::move(first), std::move(second));
  if (succeeded(both)) {
    EXPECT_EQ(sink.written(), "data: first\n\ndata: second\n\n");
  } else {
    EXPECT_TRUE(sink.written().empty() || sink.written() == "data: first\n\n") << sink.written();
  }
}

Task<Result<>> send_two(http::EventStream& stream) {
  for (int count = 0; count < 2; ++count) {
    if (auto sent = co_await stream.send("x"); !sent) co_return sent;
    if (auto slept = co_await sleep(short_delay); !slept) co_return slept;
  }
  co_return {};
}

Task<> running(CancelInjector& injector, SweepEnvironment&) {
  SlowSink sink;
  http::EventStream stream(sink, {}, "");
  auto task = stream.run(send_two(stream));
  const auto ended = co_await injector.run_with_cancel(std::move(task));
  if (succeeded(ended)) {
    EXPECT_EQ(sink.written(), ":\n\ndata: x\n\ndata: x\n\n");
  }
}

constexpr std::array of_events = {
    SweepCase{"http::EventStream::send", sending},
    SweepCase{"http::EventStream::run", running},
};

class CancelSweepOfEvents : public CancelSweep {};

TEST_P(CancelSweepOfEvents, Sends) {
  sweep_all(of_events);
}
TEST(CancelSweepInTheWorld, EventStreams) {
  sweep_all_in_world(of_events);
}

INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfEvents, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::cancel_sweep_events_test
