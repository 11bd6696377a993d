// Tests requests of HTTP/2 with a fault at every turn of the loop, and with each allocation
// failing. Nothing is left behind.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <new>
#include <string>
#include <string_view>
#include <tuple>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/test/ws_frames.hpp"
#include "weir/http/ws/websocket.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::h2_connection_faults_test {
namespace {

using namespace frames;

enum class Fault { none, client_resets, client_leaves, cancelled, drained };

/// A server and one client, which sends requests of each kind at the same time.
class FaultRun : public HttpFixture {
 public:
  FaultRun() {
    plain_http2_ = PlainHttp2::prior_knowledge;
    routes_.get("/", [] { return text("hello"); });
    routes_.get("/slow", []() -> Task<Response> {
      std::ignore = co_await sleep(std::chrono::seconds(1));
      co_return text("slow");
    });
    routes_.post("/echo", [](Request& request) -> Task<Response> {
      const auto body = co_await request.body();
      if (!body) co_return Response(body.error());
      co_return text(std::string(*body));
    });
    routes_.post("/pieces", [](Request& request) -> Task<Response> {
      for (;;) {
        const auto piece = co_await request.read();
        if (!piece) co_return Response(piece.error());
        if (piece->empty()) co_return text("read");
      }
    });
    routes_.get("/stream", [] {
      return stream("text/plain", [](BodySink& sink) -> Task<Result<>> {
        WEIR_CO_TRY(co_await sink.write(std::string(70'000, 's')));
        WEIR_CO_TRY(co_await sleep(std::chrono::seconds(1)));
        co_return co_await sink.write("end");
      });
    });
    routes_.get("/later", [] {
      return stream("text/plain", [](BodySink& sink) -> Task<Result<>> {
        WEIR_CO_TRY(co_await sleep(std::chrono::seconds(1)));
        co_return co_await sink.write("later");
      });
    });
    routes_.get("/large", [] { return text(std::string(100'000, 'l')); });
    routes_.websocket("/ws", [](WebSocket& socket) -> Task<Result<>> {
      for (;;) {
        WEIR_CO_TRY(const WebSocketMessage message, co_await socket.read());
        WEIR_CO_TRY(co_await socket.send(message));
      }
    });
  }

  /// Injects the fault at turn `at`. Returns true if the fault has happened.
  bool run(Fault fault, std::size_t at) {
    fault_ = fault;
    at_ = at;
    serve();
    peer_ = &connect();
    send(preface() + get(1, "/slow") + post(3, "/echo") + post(5, "/pieces") + get(7, "/stream"));
    send(get(9, "/large") + get(11, "/") + data(3, "hel") + data(5, "hel"));
    send(post(13, "/") + data(13, "unread") + headers(15, "malformed") + get(17, "/slow"));
    send(rst_stream(17) + data(3, "lo", FrameFlag::end_stream) + headers(5, ""));
    send(window_update(0, 200'000) + window_update(7, 9) + window_update(9, 100'000));
    pass(std::chrono::seconds(1));
    send(window_update(7, 100'000) + get(19, "/slow") + post(21, "/echo"));
    send(websocket(23) + data(23, frame_of_client(ws::text_frame, "one")));
    send(data(23, frame_of_client(ws::text_frame, std::string(70'000, 'x')).substr(0, 1'000)));
    send(websocket(25) + data(25, frame_of_client(ws::close_frame, "")) + get(27, "/later"));
    return turn_ > at_;
  }
  /// Fails the allocation after `count` others while a stream ends that has not read its body.
  /// Returns false if fewer allocations happened.
  bool end_stream_without_memory(std::size_t count) {
    routes_.post("/slow", []() -> Task<Response> {
      std::ignore = co_await sleep(std::chrono::hours(1));
      co_return text("slow");
    });
    Limits limits;
    limits.h2.stream_window = 1024 * 1024;
    serve(limits);
    peer_ = &connect();
    send(preface() + post(1, "/slow"));
    for (int part = 0; part < 40; ++part) send(data(1, std::string(16'384, 'x')));
    loop_->blocks().fail_after(count);
    send(rst_stream(1));
    return !use_up_failure();
  }
  /// Fails the allocation after `count` others while a response goes on that has waited for the
  /// client. Returns false if fewer allocations happened.
  bool open_window_without_memory(std::size_t count) {
    serve();
    peer_ = &connect();
    send(preface() + get(1, "/large"));
    loop_->blocks().fail_after(count);
    send(window_update(0, 200'000) + window_update(1, 100'000));
    const bool failed = !use_up_failure();
    pass(std::chrono::seconds(2));
    EXPECT_TRUE(peer_->received().size() > 100'000 || peer_->ended());
    return failed;
  }
  /// Fails the allocation after `count` others while a stream function waits before its first
  /// piece. Returns false if fewer allocations happened.
  bool wait_without_memory(std::size_t count) {
    serve();
    peer_ = &connect();
    send(preface());
    loop_->blocks().fail_after(count);
    send(get(1, "/later"));
    const bool failed = !use_up_failure();
    pass(std::chrono::seconds(2));
    return failed;
  }
  /// Fails the allocation after `count` others. Returns false if fewer allocations happened.
  bool run_without_memory(std::size_t count) {
    serve();
    peer_ = &connect();
    send(preface());
    loop_->blocks().fail_after(count);
    send(get(1, "/slow") + post(3, "/echo") + post(5, "/pieces") + get(7, "/stream"));
    send(get(9, "/large") + get(11, "/") + get(13, "/later") + data(3, "hel") + data(5, "hel"));
    send(data(3, "lo", FrameFlag::end_stream) + headers(5, "") + window_update(0, 200'000));
    pass(std::chrono::seconds(1));
    send(websocket(15) + data(15, frame_of_client(ws::text_frame, "one")));
    pass(std::chrono::seconds(3));
    send(data(15, frame_of_client(ws::text_frame, "two")));
    send(data(15, frame_of_client(ws::close_frame, "")));
    return !use_up_failure();
  }

 private:
  /// Lets the failure happen, so that the end of the test has memory. Returns false if it had
  /// happened before.
  bool use_up_failure() {
    const bool left = loop_->blocks().will_fail();
    while (loop_->blocks().will_fail()) {
      try {
        BlockPool::release(allocate_here());
      } catch (const std::bad_alloc&) {
      }
    }
    return left;
  }
  void* allocate_here() {
    const ScopedBlockPool here(loop_->blocks());
    return BlockPool::allocate(16);
  }
  static std::string websocket(std::uint32_t stream) {
    return headers(stream,
                   block({{":method", "CONNECT"},
                          {":protocol", "websocket"},
                          {":scheme", "http"},
                          {":path", "/ws"},
                          {":authority", "a"},
                          {"sec-websocket-version", "13"}}),
                   FrameFlag::end_headers);
  }
  static std::string frame_of_client(int opcode, std::string_view payload) {
    return ws::frame_to(WsRole::server, ws::fin | opcode, payload);
  }
  void send(std::string_view input) {
    peer_->send(input);
    for (;;) {
      if (turn_++ == at_) inject();
      if (!turn()) break;
    }
    peer_->take();
  }
  void inject() {
    if (fault_ == Fault::client_resets) peer_->reset();
    if (fault_ == Fault::client_leaves) peer_->finish();
    if (fault_ == Fault::cancelled) stop();
    if (fault_ == Fault::drained) drain();
  }

  MemoryPeer* peer_ = nullptr;
  Fault fault_ = Fault::none;
  std::size_t at_ = static_cast<std::size_t>(-1);
  std::size_t turn_ = 0;
};

void run_each_turn(Fault fault) {
  for (std::size_t at = 0;; ++at) {
    SCOPED_TRACE(at);
    FaultRun run;
    const bool happened = run.run(fault, at);
    if (fault == Fault::cancelled) {
      run.settle();
      EXPECT_EQ(run.stopped(), happened);
    }
    run.shut_down();
    if (!happened) {
      EXPECT_GT(at, 10u);
      return;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(H2ConnectionFaults, ClientResetsTheConnectionAtEachTurn) {
  run_each_turn(Fault::client_resets);
}

TEST(H2ConnectionFaults, ClientLeavesAtEachTurn) {
  run_each_turn(Fault::client_leaves);
}

TEST(H2ConnectionFaults, ServerIsCancelledAtEachTurn) {
  run_each_turn(Fault::cancelled);
}

TEST(H2ConnectionFaults, ServerDrainsAtEachTurn) {
  run_each_turn(Fault::drained);
}

TEST(H2ConnectionFaults, EachAllocationFails) {
  for (std::size_t count = 0;; ++count) {
    SCOPED_TRACE(count);
    FaultRun run;
    const bool failed = run.run_without_memory(count);
    run.shut_down();
    if (!failed) {
      EXPECT_GT(count, 20u);
      return;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(H2ConnectionFaults, EachAllocationFailsWhileAWindowOpens) {
  for (std::size_t count = 0;; ++count) {
    SCOPED_TRACE(count);
    FaultRun run;
    const bool failed = run.open_window_without_memory(count);
    run.shut_down();
    if (!failed) {
      EXPECT_GT(count, 1u);
      return;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(H2ConnectionFaults, EachAllocationFailsBeforeAStreamFunctionWrites) {
  for (std::size_t count = 0;; ++count) {
    SCOPED_TRACE(count);
    FaultRun run;
    const bool failed = run.wait_without_memory(count);
    run.shut_down();
    if (!failed) {
      EXPECT_GT(count, 1u);
      return;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(H2ConnectionFaults, EachAllocationFailsWhileAStreamEnds) {
  for (std::size_t count = 0;; ++count) {
    SCOPED_TRACE(count);
    FaultRun run;
    const bool failed = run.end_stream_without_memory(count);
    run.shut_down();
    if (!failed) {
      EXPECT_GT(count, 1u);
      return;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace weir::http::h2_connection_faults_test
