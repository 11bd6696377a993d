// Tests one exchange of each conversation with a fault at every turn of the loop. No action of the
// peer or the operator leaves anything behind, or makes a cut response look whole.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/test/heap_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/test/replaced_routes.hpp"
#include "weir/http/test/ws_frames.hpp"
#include "weir/http/ws/topic.hpp"
#include "weir/http/ws/websocket.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::connection_faults_test {
namespace {

/// The steps of a client. The server runs until it is idle after each step.
using Script = std::vector<std::string>;
constexpr const char* a_second = "(a second passes)";
constexpr const char* a_replacement = "(the replacement of a service begins to answer)";

/// Returns the handshake of a WebSocket, and the frames of a client.
std::string handshake(std::string_view path) {
  return "GET " + std::string(path) +
         " HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
}
std::string message(std::string_view text) {
  return ws::frame_to(WsRole::server, ws::fin | ws::text_frame, text);
}
std::string close_of_client() {
  return ws::frame_to(WsRole::server, ws::fin | ws::close_frame, ws::number(1000, 2));
}
std::string ping_of_client() {
  return ws::frame_to(WsRole::server, ws::fin | ws::ping_frame, "p");
}

constexpr const char* get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

struct Conversation {
  std::string_view name;
  Script script;
  std::string_view statuses;  ///< without a fault
};

const std::vector<Conversation>& conversations() {
  static const std::vector<Conversation> all{
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
      {"replaced",
       {"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /replaced HTTP/1.1\r\nHost: a\r\n\r\nGET / HTT",
        a_replacement, "P/1.1\r\nHost: a\r\n\r\n"},
       "200 200 200"},
      {"replaced by a slow handler",
       {"GET /replaced/slow HTTP/1.1\r\nHost: a\r\n\r\n", a_replacement, a_second, get},
       "200 200"},
      {"upload to a replaced service",
       {"POST /replaced HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nab", a_replacement, "cd",
        "ef", get},
       "200 200"},
      {"not replaced in time",
       {"GET /replaced HTTP/1.1\r\nHost: a\r\n\r\n", a_second, a_second, a_second, a_second, get},
       "503 200"},
      {"websocket",
       {handshake("/ws/echo"), message("one"), a_second, a_second, a_second,
        message("two") + ping_of_client() + message("three"), close_of_client()},
       "204"},
      {"websocket with early bytes",
       {handshake("/ws/echo") + message("early") + close_of_client()},
       "204"},
      {"websocket that its handler ends",
       {handshake("/ws/once"), message("one"), message("dropped") + close_of_client()},
       "204"},
      {"websocket whose handler fails",
       {handshake("/ws/throws"), message("one"), close_of_client()},
       "204"},
      {"websocket whose handler sends much",
       {handshake("/ws/large"), message("one"), a_second, close_of_client()},
       "204"},
      {"websocket with a topic",
       {handshake("/ws/topic"), message("one"), a_second, a_second, a_second, message("two"),
        close_of_client()},
       "204"},
      {"websocket of a service that is replaced",
       {handshake("/replaced/ws"), a_replacement, message("one"), close_of_client()},
       "204"},
  };
  return all;
}

Task<Response> slow() {
  std::ignore = co_await sleep(1s);
  co_return text("slow\n");
}
Task<> child() {
  std::ignore = co_await sleep(1s);
}
Task<Response> tree(Scope& scope) {
  for (int i = 0; i < 3; ++i) scope.spawn(child());
  co_return text("tree\n");
}
Task<Response> size_of_body(Request& request) {
  auto body = co_await request.body();
  if (!body) co_return Response(to_status(body.error()));
  co_return text(std::to_string(body->size()));
}
Task<Result<>> two_pieces(BodySink& sink) {
  for (int i = 0; i < 2; ++i) {
    if (auto slept = co_await sleep(1s); !slept) co_return slept;
    if (auto sent = co_await sink.write("piece"); !sent) co_return sent;
  }
  co_return {};
}

Task<Result<>> echo(WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}
Task<> echo_once(WebSocket& socket) {
  const auto message = co_await socket.read();
  if (message) std::ignore = co_await socket.send(*message);
}
Task<> read_and_throw(WebSocket& socket) {
  std::ignore = co_await socket.read();
  throw std::runtime_error("planned");
}
Task<Result<>> send_large(WebSocket& socket) {
  WEIR_CO_TRY(co_await socket.read());
  const std::string large(200'000, 'x');
  for (int count = 0; count < 2; ++count) WEIR_CO_TRY(co_await socket.send(large));
  co_return {};
}

Response accept_echo(const Request& request) {
  return accept_websocket(request, [](WebSocket& socket) { return WebSocketTask(echo(socket)); });
}

Task<Response> waits_first(Request& request, Next next) {
  std::ignore = co_await sleep(1s);
  co_return co_await next(request);
}

/// `no_memory` fails one allocation; `out_of_memory` fails all later ones too, until the
/// connection is gone.
enum class Fault { none, reset, half_close, close, drain, stop, no_memory, out_of_memory };

/// A base before the one with the loop.
struct OutlivesLoop {
  Topic<SlowSubscriber::drop_oldest> topic_;
};

/// A server of its own for one run of a script.
class FaultScenario final : OutlivesLoop, HttpFixture, TestHeap::AllocationFailure {
 public:
  FaultScenario(const Conversation& conversation, Fault fault, std::size_t at)
      : conversation_(conversation), fault_(fault), at_(at) {
    // Add more routes than a core has memory for before its first wait.
    for (int number = 0; number < 100; ++number) {
      const auto pattern = Pattern::parse("/unused/" + std::to_string(number));
      EXPECT_TRUE(routes_.get(*pattern, [] { return text(""); }));
    }
    routes_.get("/", [] { return text("hello\n"); });
    routes_.get("/slow", slow);
    if (conversation.name.starts_with("wrapped")) routes_.use(waits_first);
    routes_.get("/tree", tree);
    routes_.post("/size", size_of_body);
    routes_.post("/ignored", [] { return text("ignored\n"); });
    routes_.get("/stream", [] { return stream(text_type, two_pieces); });
    routes_.get("/large", [] { return text(std::string(200'000, 'x')); });
    routes_.websocket("/ws/echo", echo);
    routes_.websocket("/ws/once", echo_once);
    routes_.websocket("/ws/throws", read_and_throw);
    routes_.websocket("/ws/large", send_large);
    routes_.websocket("/ws/topic", [this](WebSocket& socket) { return publish_all(socket); });
    replaced_.add(routes_, *loop_, "GET", "/replaced/ws", accept_echo);
    replaced_.add(routes_, *loop_, "GET", "/replaced", [] { return text("replaced\n"); });
    replaced_.add(routes_, *loop_, "GET", "/replaced/slow", slow);
    replaced_.add(routes_, *loop_, "POST", "/replaced", size_of_body);
  }

  void play() {
    serve();
    if (is_memory_fault()) loop_->blocks().fail_after(at_);
    peer_ = &connect();
    turns();
    for (const std::string& step : conversation_.script) {
      if (injected_ && fault_ != Fault::drain) break;
      if (step == a_second) {
        pass(1s);
      } else if (step == a_replacement) {
        replaced_.replace(*loop_);
      } else {
        peer_->send(step);
      }
      turns();
    }
    finish();
  }
  bool injected() const noexcept { return injected_; }
  /// Returns what the client has received. 204 replaces 101, which is no status of a response, and
  /// nothing replaces the frames behind it.
  std::string received() const {
    std::string text = received_.substr(0, received_.find("\r\n\r\n", received_.find(" 101 ")));
    const std::size_t status = text.find(" 101 ");
    if (status == text.npos) return received_;
    if (text.size() != received_.size()) text += "\r\n\r\n";
    return text.replace(status, 5, " 204 ");
  }

 private:
  /// Runs turn by turn until nothing happens any more or the fault is injected.
  void turns() {
    do {
      received_ += peer_->take();
      check_memory_fault();
      if (fault_ != Fault::none && !is_memory_fault() && turn_++ == at_) inject();
    } while (turn() || peer_->unread() != 0);
    received_ += peer_->take();
  }
  void inject() {
    injected_ = true;
    switch (fault_) {
      case Fault::reset:
        return peer_->reset();
      case Fault::half_close:
        return peer_->finish();
      case Fault::close:
        return peer_->close();
      case Fault::drain:
        return drain();
      case Fault::stop:
        return stop();
      case Fault::none:
      case Fault::no_memory:
      case Fault::out_of_memory:
        return;
    }
  }
  bool is_memory_fault() const noexcept {
    return fault_ == Fault::no_memory || fault_ == Fault::out_of_memory;
  }
  void check_memory_fault() noexcept {
    if (is_memory_fault() && !loop_->blocks().will_fail()) injected_ = true;
  }
  bool turn() {
    const MemoryFaultScope end(*this);
    return HttpFixture::turn();
  }
  void pass(Duration length) {
    const MemoryFaultScope end(*this);
    HttpFixture::pass(length);
  }
  /// Makes the heap fail from the fault to the end of the connection; the pool fails again with
  /// each turn.
  class MemoryFaultScope {
   public:
    explicit MemoryFaultScope(FaultScenario& server) {
      if (server.fault_ != Fault::out_of_memory) return;
      TestHeap::allocation_failure = &server;
      if (server.now()) server.loop_->blocks().fail_after(0);
    }
    ~MemoryFaultScope() { TestHeap::allocation_failure = nullptr; }
    MemoryFaultScope(const MemoryFaultScope&) = delete;
    MemoryFaultScope& operator=(const MemoryFaultScope&) = delete;
  };
  bool now() noexcept override {
    check_memory_fault();
    const ServerCounters& counters = server_->counters();
    return injected_ &&
           (counters.connections_open.value() != 0 || counters.websockets_open.value() != 0);
  }
  void finish() {
    const bool orderly = fault_ != Fault::reset && fault_ != Fault::stop && !is_memory_fault();
    for (int second = 0; second < 3; ++second) {
      pass(1s);
      received_ += peer_->take();
    }
    check_memory_fault();
    EXPECT_FALSE(orderly && peer_->was_reset()) << "an orderly peer sees no reset";
    EXPECT_TRUE(stopped() || !injected_ || fault_ != Fault::stop);
    replaced_.replace(*loop_);  // a request may wait for it although its client has gone
    pass(1s);
    received_ += peer_->take();
    peer_->close();
    settle();
    // The listener has ended if memory was missing for a new connection.
    const bool goes_on = fault_ != Fault::drain && fault_ != Fault::stop && !stopped();
    if (goes_on) expect_at_rest();
    shut_down();
    EXPECT_TRUE(replaced_.idle(*loop_)) << "a request of a route with core handlers is left";
  }

  /// Publishes each message to this subscriber.
  Task<Result<>> publish_all(WebSocket& socket) {
    const auto subscription = topic_.subscribe(socket);
    for (;;) {
      WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
      WEIR_CO_TRY(topic_.publish(message.text()));
    }
  }

  const Conversation& conversation_;
  Fault fault_;
  std::size_t at_;
  MemoryPeer* peer_ = nullptr;
  std::string received_;
  std::size_t turn_ = 0;
  bool injected_ = false;
  ReplacedRoutes replaced_;
};

/// Expects that all answers but the last are whole, without bytes between them.
void expect_framed(const std::string& received) {
  const auto answers = sim::parse_http_responses(received);
  for (std::size_t index = 0; index < answers.size(); ++index) {
    EXPECT_TRUE(answers[index].complete || index + 1 == answers.size());
    EXPECT_TRUE(answers[index].status != 0 || !answers[index].complete);
  }
}

TEST(ConnectionFaults, ScriptsWithoutFaultsGiveTheExpectedStatuses) {
  for (const Conversation& conversation : conversations()) {
    SCOPED_TRACE(conversation.name);
    FaultScenario server(conversation, Fault::none, 0);
    server.play();
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(server.received())),
              conversation.statuses);
  }
}

class ConnectionFault : public testing::TestWithParam<Fault> {};

TEST_P(ConnectionFault, LeavesNothingBehindAtAnyTurn) {
  for (const Conversation& conversation : conversations()) {
    SCOPED_TRACE(conversation.name);
    bool injected = true;
    std::size_t turn = 0;
    for (; injected; ++turn) {
      SCOPED_TRACE(turn);
      ASSERT_LT(turn, 1000u);
      FaultScenario server(conversation, GetParam(), turn);
      server.play();
      injected = server.injected();
      expect_framed(server.received());
      if (!injected) {
        EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(server.received())),
                  conversation.statuses);
      }
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(turn, conversation.script.size());
  }
}

std::string name_of_fault(const testing::TestParamInfo<Fault>& info) {
  constexpr const char* names[] = {"None",  "Reset", "HalfClose", "Close",
                                   "Drain", "Stop",  "NoMemory",  "OutOfMemory"};
  return names[static_cast<std::size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Every, ConnectionFault,
                         testing::Values(Fault::reset, Fault::half_close, Fault::close,
                                         Fault::drain, Fault::stop, Fault::no_memory,
                                         Fault::out_of_memory),
                         name_of_fault);

}  // namespace
}  // namespace weir::http::connection_faults_test
