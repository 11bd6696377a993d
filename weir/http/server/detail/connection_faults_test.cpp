// One exchange of each kind, struck at every turn of the loop: whatever the peer or the operator
// does, and whenever, nothing is left behind and nothing half looks whole.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/heap_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

/// What a client does, one after the other; each time the server then runs until it is idle.
using Script = std::vector<std::string_view>;
constexpr std::string_view a_second = "(a second passes)";

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

struct Kind {
  std::string_view name;
  Script script;
  std::string_view statuses;  ///< when nothing strikes
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"get", {get, get}, "200 200"},
      {"pieces", {"GET / HT", "TP/1.1\r\nHo", "st: a\r\n\r", "\n"}, "200"},
      {"pipelined",
       {"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET / HTT", a_second,
        "P/1.1\r\nHost: a\r\n\r\n"},
       "200 200 200"},
      {"slow handler", {"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", a_second}, "200"},
      {"tree", {"GET /tree HTTP/1.1\r\nHost: a\r\n\r\n", a_second}, "200"},
      {"upload",
       {"POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nab", "cd", "ef", get},
       "200 200"},
      {"expect",
       {"POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
        "abc"},
       "100 200"},
      {"chunked and ignored",
       {"POST /ignored HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        "c\r\n0\r\n", "\r\n", get},
       "200 200"},
      {"stream", {"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", a_second, a_second, get}, "200 200"},
      {"large", {"GET /large HTTP/1.1\r\nHost: a\r\n\r\n", get}, "200 200"},
      {"refused", {"GET / HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n", "more"}, "200 400"},
      {"wrapped", {"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", a_second, a_second, get}, "200 200"},
      {"wrapped and not allowed",
       {"DELETE /slow HTTP/1.1\r\nHost: a\r\n\r\n", a_second, a_second, get},
       "405 200"},
      {"closing", {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "more"}, "200"},
  };
  return all;
}

Task<Response> slow() {
  static_cast<void>(co_await sleep(1s));
  co_return text("slow\n");
}
Task<> child() {
  static_cast<void>(co_await sleep(1s));
}
Task<Response> tree(Scope& scope) {
  for (int i = 0; i < 3; ++i) scope.spawn(child());
  co_return text("tree\n");
}
Task<Response> size_of_body(Request& request) {
  auto body = co_await request.body();
  if (!body) co_return Response(status_for(body.error()));
  co_return text(std::to_string(body->size()));
}
Task<Result<>> two_pieces(BodySink& sink) {
  for (int i = 0; i < 2; ++i) {
    if (auto slept = co_await sleep(1s); !slept) co_return slept;
    if (auto sent = co_await sink.write("piece"); !sent) co_return sent;
  }
  co_return {};
}

Task<Response> waits_first(Request& request, Next next) {
  static_cast<void>(co_await sleep(1s));
  co_return co_await next(request);
}

/// `out_of_memory`: no_memory fails one allocation, this one all from there on, until what has been
/// struck is gone.
enum class Strike { none, reset, half_close, close, drain, stop, no_memory, out_of_memory };

/// A server of its own for one run of a script.
class StruckServer final : HttpBench, TestHeap::Shortage {
 public:
  StruckServer(const Kind& kind, Strike strike, std::size_t at)
      : kind_(kind), strike_(strike), at_(at) {
    // More than a core has room for before it has ever waited for one of them.
    for (int number = 0; number < 100; ++number) {
      const auto pattern = Pattern::parse("/unused/" + std::to_string(number));
      EXPECT_TRUE(routes_.get(*pattern, [] { return text(""); }));
    }
    routes_.get("/", [] { return text("hello\n"); });
    routes_.get("/slow", slow);
    if (kind.name.starts_with("wrapped")) routes_.use(waits_first);
    routes_.get("/tree", tree);
    routes_.post("/size", size_of_body);
    routes_.post("/ignored", [] { return text("ignored\n"); });
    routes_.get("/stream", [] { return stream(text_type, two_pieces); });
    routes_.get("/large", [] { return text(std::string(200'000, 'x')); });
  }

  void play() {
    serve();
    if (memory_strikes()) loop_->blocks().fail_after(at_);
    peer_ = &connect();
    turns();
    for (const std::string_view step : kind_.script) {
      if (struck_ && strike_ != Strike::drain) break;
      if (step == a_second) {
        pass(1s);
      } else {
        peer_->send(step);
      }
      turns();
    }
    finish();
  }
  bool struck() const noexcept { return struck_; }
  const std::string& received() const noexcept { return received_; }

 private:
  /// Turn by turn until nothing happens any more, or the blow has fallen.
  void turns() {
    do {
      received_ += peer_->take();
      look_at_memory();
      if (strike_ != Strike::none && !memory_strikes() && turn_++ == at_) strike();
    } while (turn() || peer_->unread() != 0);
    received_ += peer_->take();
  }
  void strike() {
    struck_ = true;
    switch (strike_) {
      case Strike::reset:
        return peer_->reset();
      case Strike::half_close:
        return peer_->finish();
      case Strike::close:
        return peer_->close();
      case Strike::drain:
        return drain();
      case Strike::stop:
        return stop();
      case Strike::none:
      case Strike::no_memory:
      case Strike::out_of_memory:
        return;
    }
  }
  bool memory_strikes() const noexcept {
    return strike_ == Strike::no_memory || strike_ == Strike::out_of_memory;
  }
  void look_at_memory() noexcept {
    if (memory_strikes() && !loop_->blocks().will_fail()) struck_ = true;
  }
  bool turn() {
    const MemoryEnd end(*this);
    return HttpBench::turn();
  }
  void pass(Duration length) {
    const MemoryEnd end(*this);
    HttpBench::pass(length);
  }
  /// From the blow to the end of the connection the heap has nothing, and the pool fails again with
  /// each turn.
  class MemoryEnd {
   public:
    explicit MemoryEnd(StruckServer& server) {
      if (server.strike_ != Strike::out_of_memory) return;
      TestHeap::shortage = &server;
      if (server.now()) server.loop_->blocks().fail_after(0);
    }
    ~MemoryEnd() { TestHeap::shortage = nullptr; }
    MemoryEnd(const MemoryEnd&) = delete;
    MemoryEnd& operator=(const MemoryEnd&) = delete;
  };
  bool now() noexcept override {
    look_at_memory();
    return struck_ && server_->counters().connections_open.value() != 0;
  }
  void finish() {
    const bool orderly = strike_ != Strike::reset && strike_ != Strike::stop && !memory_strikes();
    for (int second = 0; second < 3; ++second) {
      pass(1s);
      received_ += peer_->take();
    }
    look_at_memory();
    EXPECT_FALSE(orderly && peer_->was_reset()) << "an orderly peer sees no reset";
    EXPECT_TRUE(stopped() || !struck_ || strike_ != Strike::stop);
    peer_->close();
    settle();
    // Where memory was missing for a new connection, its listener has ended.
    const bool goes_on = strike_ != Strike::drain && strike_ != Strike::stop && !stopped();
    if (goes_on) expect_at_rest();
    shut_down();
  }

  const Kind& kind_;
  Strike strike_;
  std::size_t at_;
  MemoryPeer* peer_ = nullptr;
  std::string received_;
  std::size_t turn_ = 0;
  bool struck_ = false;
};

/// Everything but the last answer is whole, and nothing stands between them.
void expect_framed(const std::string& received) {
  const auto answers = read_http_answers(received);
  for (std::size_t index = 0; index < answers.size(); ++index) {
    EXPECT_TRUE(answers[index].whole || index + 1 == answers.size());
    EXPECT_TRUE(answers[index].status != 0 || !answers[index].whole);
  }
}

TEST(ConnectionStrikes, UndisturbedScriptsDoWhatTheySay) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    StruckServer server(kind, Strike::none, 0);
    server.play();
    EXPECT_EQ(statuses_of(read_http_answers(server.received())), kind.statuses);
  }
}

class ConnectionStrike : public testing::TestWithParam<Strike> {};

TEST_P(ConnectionStrike, AtEveryTurnOfEveryKind) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    bool struck = true;
    std::size_t turn = 0;
    for (; struck; ++turn) {
      SCOPED_TRACE(turn);
      ASSERT_LT(turn, 1000u);
      StruckServer server(kind, GetParam(), turn);
      server.play();
      struck = server.struck();
      expect_framed(server.received());
      if (!struck) {
        EXPECT_EQ(statuses_of(read_http_answers(server.received())), kind.statuses);
      }
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(turn, kind.script.size());
  }
}

std::string name_of_strike(const testing::TestParamInfo<Strike>& info) {
  constexpr const char* names[] = {"None",  "Reset", "HalfClose", "Close",
                                   "Drain", "Stop",  "NoMemory",  "OutOfMemory"};
  return names[static_cast<std::size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Every, ConnectionStrike,
                         testing::Values(Strike::reset, Strike::half_close, Strike::close,
                                         Strike::drain, Strike::stop, Strike::no_memory,
                                         Strike::out_of_memory),
                         name_of_strike);

}  // namespace
}  // namespace weir::http
