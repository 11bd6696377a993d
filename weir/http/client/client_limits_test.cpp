// Tests of the memory bound of a client, and that it holds when all servers send the most that they
// may.
#include "weir/http/client/client_limits.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/test/h2_server_fixture.hpp"
#include "weir/http/test/ws_frames.hpp"
#include "weir/http/ws/detail/handshake.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

// The sanitizers count the bytes; other builds have no such function.
extern "C" [[gnu::weak]] std::size_t __sanitizer_get_current_allocated_bytes();

namespace weir::http::client_limits_test {
namespace {

using namespace std::chrono_literals;

std::size_t heap_bytes() {
  if (&__sanitizer_get_current_allocated_bytes != nullptr) {
    return __sanitizer_get_current_allocated_bytes();
  }
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

/// Measures the heap with the buffers of the simulated connections and of their servers.
class ClientMemory : public H2ServerFixture {
 protected:
  ClientMemory() {
    limits_.response.head.headers_bytes_max = 48 * 1024;
    limits_.body_max = 256 * 1024;
    limits_.connections_max = 8;
    limits_.waiting_max = 0;
  }

  /// Sends a head and a body of almost the largest sizes in small pieces, and then waits.
  Task<> serve_one(tcp::Stream stream) {
    const auto request = co_await stream.read();
    if (!request) co_return;
    const std::string field = "X: " + std::string(995, 'x') + "\r\n";
    const std::string body(4096, 'b');
    std::vector<std::string_view> pieces{"HTTP/1.1 200 OK\r\n"};
    pieces.insert(pieces.end(), limits_.response.head.headers_bytes_max / field.size() - 1, field);
    const std::string end = "Content-Length: " + std::to_string(limits_.body_max) + "\r\n\r\n";
    pieces.emplace_back(end);
    pieces.insert(pieces.end(), limits_.body_max / body.size() - 1, body);
    for (const std::string_view piece : pieces) {
      const auto written = co_await stream.write(piece);
      if (!written) co_return;
      static_cast<void>(co_await sleep(1ms));
    }
    static_cast<void>(co_await stream.read());
  }
  Task<> serve_all(Scope& scope, tcp::Listener listener) {
    while (true) {
      auto stream = co_await listener.accept();
      if (!stream) co_return;
      scope.spawn(serve_one(std::move(*stream)));
    }
  }
  static Task<> ask(Client& client) {
    auto response = co_await client.get("http://127.0.0.1:81/");
    EXPECT_TRUE(response);
    if (!response) co_return;
    const auto body = co_await response->body();
    EXPECT_TRUE(!body && body.error() == ClientError::body_timed_out);
  }
  Task<> measure(std::size_t& peak) {
    const std::size_t rest = bytes();
    while (true) {
      const auto slept = co_await sleep(500us);
      if (!slept) co_return;
      const std::size_t now = bytes();
      peak = std::max(peak, now - std::min(now, rest));
    }
  }
  std::size_t bytes() {
    loop_->blocks().collect();
    return heap_bytes() - loop_->blocks().cached_bytes();
  }

  ClientLimits limits_;
};

TEST_F(ClientMemory, StaysBelowTheBoundWithAllConnectionsInUse) {
  std::size_t peak = 0;
  const auto talk = [&](Scope& scope) -> Task<> {
    auto listener = co_await tcp::listen(Endpoint::loopback(81));
    EXPECT_TRUE(listener);
    if (!listener) co_return;
    scope.spawn(serve_all(scope, std::move(*listener)));
    scope.spawn(measure(peak));
    ClientOptions options;
    options.limits = limits_;
    Client client(std::move(options));
    std::vector<Task<>> asking;
    for (std::size_t each = 0; each < limits_.connections_max; ++each) {
      asking.push_back(ask(client));
    }
    const auto done = co_await all(std::move(asking));
    EXPECT_TRUE(done);
    scope.cancel();
  };
  static_cast<void>(weir::run(*loop_, with_scope(OnFailure::isolate, talk)));
  const ClientMemoryBound bound = memory_bound(limits_);
  EXPECT_LE(peak, bound.total);
  EXPECT_GE(8 * peak, bound.total) << "the bound is far too large";
  EXPECT_GT(peak, limits_.connections_max * limits_.body_max) << "the bodies were not collected";
  RecordProperty("bytes", std::to_string(peak) + " of " + std::to_string(bound.total));
}

TEST_F(ClientMemory, StaysBelowTheBoundWithAllStreamsOfHttp2InUse) {
  constexpr std::size_t connections = 2;
  constexpr std::uint32_t streams = 16;
  limits_.connections_max = connections;
  limits_.waiting_max = connections * streams;
  limits_.http2.streams_max = streams;
  limits_.http2.connection_window = (streams + 1) * limits_.http2.stream_window;
  limits_.body_max = limits_.http2.stream_window;
  std::string list = frames::block({{":status", "200"}});
  for (int count = 0; count < 46; ++count) {
    list += frames::block({{"x", std::string(995, 'x')}});
  }
  const std::string body(16'000, 'b');
  const auto fill = [&](H2Peer& peer) -> Task<> {
    for (std::uint32_t id = 1; id < 2 * streams; id += 2) {
      if (!co_await peer.receive("head " + std::to_string(id))) co_return;
      std::size_t at = frame_payload_default;
      co_await peer.send(frames::headers(id, list.substr(0, at), 0));
      for (; at < list.size(); at += frame_payload_default) {
        const bool last = list.size() - at <= frame_payload_default;
        const std::uint8_t flags = last ? FrameFlag::end_headers : std::uint8_t{0};
        co_await peer.send(frames::continuation(id, list.substr(at, frame_payload_default), flags));
      }
      for (int count = 0; count < 4; ++count) co_await peer.send(frames::data(id, body));
    }
    co_await peer.end();
  };
  std::size_t peak = 0;
  std::size_t heads = 0;
  with_scripts({fill, fill}, http2(limits_), [&](Client& client) -> Task<> {
    const auto one = [&]() -> Task<> {
      auto response = co_await client.send(request(Method::get));
      if (!response) co_return;
      ++heads;
      const auto collected = co_await response->body();
      EXPECT_FALSE(collected) << "it never ends";
    };
    const auto talk = [&](Scope& scope) -> Task<> {
      scope.spawn(measure(peak));
      std::vector<Task<>> asking;
      for (std::size_t each = 0; each < connections * streams; ++each) asking.push_back(one());
      const auto done = co_await all(std::move(asking));
      EXPECT_TRUE(done);
      scope.cancel();
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, talk));
  });
  EXPECT_EQ(heads, connections * streams);
  const ClientMemoryBound bound = memory_bound(limits_);
  EXPECT_LE(peak, bound.http2_total);
  EXPECT_GE(8 * peak, bound.http2_total) << "the bound is far too large";
  EXPECT_GT(peak, heads * 4 * body.size()) << "the bodies were not collected";
  RecordProperty("bytes", std::to_string(peak) + " of " + std::to_string(bound.http2_total));
}

/// Sends a message of almost the largest size that does not end, and reads nothing.
Task<> serve_websocket(tcp::Stream stream, std::size_t message_bytes) {
  std::string request;
  while (!request.ends_with("\r\n\r\n")) {
    const auto more = co_await stream.read();
    if (!more) co_return;
    request += more->text();
  }
  const std::string_view name = "Sec-WebSocket-Key: ";
  const std::string_view key =
      std::string_view(request).substr(request.find(name) + name.size(), 24);
  const WsAccept accept = websocket_accept(key);
  std::string answer =
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
      "Upgrade: websocket\r\nSec-WebSocket-Accept: ";
  answer.append(accept.data(), accept.size()).append("\r\n\r\n");
  if (!co_await stream.write(answer)) co_return;
  const std::string piece(4096, 'b');
  int first = ws::binary_frame;
  for (std::size_t sent = 0; sent + piece.size() <= message_bytes; sent += piece.size()) {
    const std::string frame = ws::frame_to(WsRole::client, std::exchange(first, 0), piece);
    if (!co_await stream.write(frame)) co_return;
    static_cast<void>(co_await sleep(1ms));
  }
  static_cast<void>(co_await sleep(50ms));
}

TEST_F(ClientMemory, StaysBelowTheBoundOfAWebSocket) {
  ClientWebSocketOptions options;
  options.limits.message_bytes_max = 512 * 1024;
  options.limits.output_max = 128 * 1024;
  std::size_t peak = 0;
  const auto talk = [&](Scope& scope) -> Task<> {
    auto listener = co_await tcp::listen(Endpoint::loopback(81));
    EXPECT_TRUE(listener);
    if (!listener) co_return;
    const auto serve = [&]() -> Task<> {
      auto stream = co_await listener->accept();
      if (stream) {
        co_await serve_websocket(std::move(*stream), options.limits.message_bytes_max);
      }
    };
    scope.spawn(serve());
    scope.spawn(measure(peak));
    Client client;
    const auto use = [&](WebSocket& socket) -> Task<Result<>> {
      // The server takes none of these bytes.
      WEIR_CO_TRY(co_await socket.send(std::string(options.limits.output_max, 'a')));
      WEIR_CO_TRY(co_await socket.read());
      co_return {};
    };
    const auto ended = co_await client.websocket("ws://127.0.0.1:81/", use, options);
    EXPECT_FALSE(ended) << "the message never ends";
    scope.cancel();
  };
  static_cast<void>(weir::run(*loop_, with_scope(OnFailure::isolate, talk)));
  const std::uint64_t bound = memory_bound(options);
  EXPECT_LE(peak, bound);
  EXPECT_GE(8 * peak, bound) << "the bound is far too large";
  EXPECT_GT(peak, options.limits.message_bytes_max) << "the message was not collected";
  ClientWebSocketOptions compressed = options;
  compressed.compression.emplace();
  EXPECT_GT(memory_bound(compressed), bound);
  options.limits.message_bytes_max = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(memory_bound(options), std::numeric_limits<std::uint64_t>::max());
}

TEST(ClientMemoryBound, CountsConnectionsAndWaitingRequests) {
  ClientLimits limits;
  limits.connections_max = 10;
  limits.waiting_max = 0;
  const ClientMemoryBound ten = memory_bound(limits);
  EXPECT_EQ(ten.total, 10 * ten.connection);
  EXPECT_GT(ten.connection, 3 * limits.body_max);
  EXPECT_LT(ten.connection, 4 * limits.body_max);
  EXPECT_LT(ten.idle_connection, 512U * 1024);
  limits.waiting_max = 5;
  EXPECT_EQ(memory_bound(limits).total, ten.total + 5 * ten.waiting_request);
}

TEST(ClientMemoryBound, EachSizeLimitCounts) {
  ClientLimits limits;
  limits.body_max = 0;
  const std::uint64_t least = memory_bound(limits).connection;
  EXPECT_LT(least, 2U * 1024 * 1024);
  limits.response.head.headers_bytes_max += 1000;
  const std::uint64_t more = memory_bound(limits).connection;
  EXPECT_GT(more, least);
  limits.response.chunks.trailers_bytes_max += 1000;
  EXPECT_GT(memory_bound(limits).connection, more);
}

TEST(ClientMemoryBound, CountsTheStreamsOfHttp2) {
  ClientLimits limits;
  limits.connections_max = 10;
  limits.waiting_max = 0;
  const ClientMemoryBound usual = memory_bound(limits);
  EXPECT_GT(usual.http2_total, 10 * usual.http2_connection);
  EXPECT_GT(usual.http2_connection, limits.http2.streams_max * limits.body_max);
  const auto grows = [&](auto& limit, auto more) {
    limit += more;
    const ClientMemoryBound bound = memory_bound(limits);
    limit -= more;
    return bound.http2_connection > usual.http2_connection;
  };
  EXPECT_TRUE(grows(limits.http2.streams_max, 1U));
  EXPECT_TRUE(grows(limits.http2.field_list_max, 5'000U));
  EXPECT_TRUE(grows(limits.http2.connection_window, 5'000U));
  EXPECT_TRUE(grows(limits.http2.block_bytes_max, 5'000U));
  EXPECT_TRUE(grows(limits.body_max, std::uint64_t{5'000}));
}

TEST(ClientMemoryBound, ABoundThatDoesNotFitIsTheLargestNumber) {
  ClientLimits limits;
  limits.body_max = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(memory_bound(limits).total, std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace weir::http::client_limits_test
