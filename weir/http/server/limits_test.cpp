// Tests that the bound holds when peers do their worst, and that it is not far too large. The
// tests measure the heap of this process, with the buffers of the simulated connections.
#include "weir/http/server/limits.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "weir/http/test/http_fixture.hpp"

// The sanitizers count the bytes; other builds have no such function.
extern "C" [[gnu::weak]] std::size_t __sanitizer_get_current_allocated_bytes();

namespace weir::http {
namespace {

using namespace std::chrono_literals;

std::size_t heap_bytes() {
  if (&__sanitizer_get_current_allocated_bytes != nullptr) {
    return __sanitizer_get_current_allocated_bytes();
  }
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

Limits small_limits() {
  return {.head = {.request_line_max = 1024, .headers_bytes_max = 24 * 1024},
          .chunks = {.trailers_bytes_max = 8 * 1024},
          .body_max = 96 * 1024,
          .connections_max = 8};
}

class MemoryBoundTest : public HttpTest {
 protected:
  void begin() {
    routes_.post("/collect", &collect);
    routes_.get("/large/{size}", &large);
    serve(limits_);
    MemoryPeer& first = connect();
    talk(first, "GET /large/1 HTTP/1.1\r\nHost: h\r\n\r\n");
    first.reset();
    settle();
    rest_ = bytes();
  }
  /// Returns the most bytes in use while all connections do the same steps, one connection after
  /// another.
  template <class Step>
  std::size_t worst(int steps, const Step& step) {
    std::vector<MemoryPeer*> all;
    for (std::size_t i = 0; i < limits_.connections_max; ++i) all.push_back(&connect());
    settle();
    std::size_t most = 0;
    for (int number = 0; number < steps; ++number) {
      for (MemoryPeer* each : all) {
        step(*each, number);
        most = std::max(most, bytes());
        settle();
        most = std::max(most, bytes());
      }
    }
    EXPECT_EQ(server_->counters().connections_open.value(), all.size()) << "some were closed";
    for (MemoryPeer* each : all) each->reset();
    pass(1s);
    expect_at_rest();
    return most;
  }
  void expect_bounded(std::size_t most) {
    EXPECT_LE(most, bound_.in_use());
    RecordProperty("bytes", std::to_string(most) + " of " + std::to_string(bound_.in_use()));
  }
  /// Returns the bytes in use above those at rest, without free blocks.
  std::size_t bytes() {
    loop_->blocks().collect();
    const std::size_t now = heap_bytes() - loop_->blocks().cached_bytes();
    return now - std::min(now, rest_);
  }

  const Limits limits_ = small_limits();
  const MemoryBound bound_ = memory_bound(limits_);

 private:
  static Task<Response> collect(Request& request) {
    const auto body = co_await request.body();
    if (!body) co_return to_status(body.error());
    co_return text(std::to_string(body->size()));
  }
  static Response large(int size) { return text(std::string(static_cast<std::size_t>(size), 'x')); }

  std::size_t rest_ = 0;
};

// Counts the pool's blocks alone, because the other end of each connection uses far more.
TEST_F(MemoryBoundTest, HoldsForIdleConnections) {
  begin();
  const std::size_t blocks_before = blocks();
  for (std::size_t i = 0; i < limits_.connections_max; ++i) {
    talk(connect(), "GET /large/1 HTTP/1.1\r\nHost: h\r\n\r\n");
  }
  EXPECT_EQ(server_->counters().connections_open.value(), limits_.connections_max);
  const std::size_t blocks_each = (blocks() - blocks_before) / limits_.connections_max;
  EXPECT_LE(blocks_each * 512, bound_.idle_connection);
}

TEST_F(MemoryBoundTest, HoldsForHeadsThatNeverEnd) {
  begin();
  const std::string header = "A: " + std::string(995, 'a') + "\r\n";
  expect_bounded(worst(24, [&](MemoryPeer& peer, int step) {
    peer.send(step == 0 ? "GET /" + std::string(900, 'p') + " HTTP/1.1\r\nHost: h\r\n" : header);
  }));
}

TEST_F(MemoryBoundTest, HoldsForBodiesThatNeverEnd) {
  begin();
  const std::string chunk = "ff0;x=y\r\n" + std::string(0xff0, 'b') + "\r\n";
  const std::string long_field = "A: " + std::string(20'000, 'a') + "\r\n";
  const std::size_t most = worst(24, [&](MemoryPeer& peer, int step) {
    if (step > 0) return void(peer.send(chunk));
    peer.send("POST /collect HTTP/1.1\r\n" + long_field +
              "Host: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  });
  expect_bounded(most);
  // Most of the cores' part is io_uring's.
  EXPECT_GE(5 * most, bound_.connections * bound_.connection) << "the bound is far too large";
}

TEST_F(MemoryBoundTest, HoldsForTrailersThatNeverEnd) {
  begin();
  const std::string header = "A: " + std::string(995, 'a') + "\r\n";
  expect_bounded(worst(8, [&](MemoryPeer& peer, int step) {
    if (step > 0) return void(peer.send(header));
    peer.send("POST /collect HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
  }));
}

TEST_F(MemoryBoundTest, HoldsForPipelinesWithUnreadAnswers) {
  begin();
  std::string batch;
  for (int i = 0; i < 100; ++i) batch += "GET /large/2000 HTTP/1.1\r\nHost: h\r\n\r\n";
  expect_bounded(worst(20, [&](MemoryPeer& peer, int) { peer.send(batch); }));
}

TEST_F(MemoryBoundTest, HoldsWhileConnectionsAreRejected) {
  begin();
  for (std::size_t i = 0; i < limits_.connections_max; ++i) connect();
  settle();
  std::size_t most = 0;
  for (int i = 0; i < 500; ++i) {
    connect();
    if (i % 7 == 0) turn();
    most = std::max(most, bytes());
  }
  settle();
  most = std::max(most, bytes());
  expect_bounded(most);
  EXPECT_EQ(server_->counters().connections_rejected.value(), 500U);
}

TEST(MemoryBoundText, NamesItsParts) {
  const MemoryBound bound = memory_bound({.connections_max = 100}, {.cores = 2});
  EXPECT_EQ(bound.connections, 101U);
  EXPECT_EQ(bound.in_use(), 101 * bound.connection + 2 * bound.core);
  const std::string text = bound.to_text();
  EXPECT_TRUE(text.contains(": 101 connections of ")) << text;
  EXPECT_TRUE(text.contains(" while idle), 2 cores of ")) << text;
  const MemoryBound more = memory_bound({.connections_max = 100}, {.body_max = 10 << 20});
  EXPECT_GE(more.connection, bound.connection + (18 << 20));
}

}  // namespace
}  // namespace weir::http
