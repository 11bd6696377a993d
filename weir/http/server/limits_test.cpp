// Tests that the bound holds when peers do their worst, and that it is not far too large.
#include "weir/http/server/limits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/http/server/detail/h1/h1_connection.hpp"
#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/http/test/memory_bound_fixture.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::limits_test {
namespace {

using namespace std::chrono_literals;

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

TEST_F(MemoryBoundTest, Http2AddsOneSmallBlockToAnIdleConnection) {
  plain_http2_ = PlainHttp2::prior_knowledge;
  begin();
  const auto growth = [this](std::string_view first) {
    const std::size_t blocks_before = blocks();
    const std::size_t before = bytes();
    MemoryPeer& peer = connect();
    talk(peer, first);
    const std::size_t held = bytes() - before;
    return std::pair(held, blocks() - blocks_before);
  };
  const auto [http1, blocks1] = growth("GET /large/1 HTTP/1.1\r\nHost: h\r\n\r\n");
  growth(frames::preface() + frames::get(1, "/large/1"));  // makes what all connections share
  const auto [http2, blocks2] = growth(frames::preface() + frames::get(1, "/large/1"));
  EXPECT_EQ(blocks2, blocks1 + 1);
  if constexpr (!BlockPool::caches_free_blocks) {
    EXPECT_LE(http2, http1 + 512);
  }
  const std::string indexed("\x40\x01n\x01v");
  const auto [with_table, blocks3] = growth(frames::preface() + frames::headers(1, indexed));
  EXPECT_EQ(blocks3, blocks2 + 1);
}

TEST_F(MemoryBoundTest, Http2IsIdleAgainSoonAfterARequestThatHadToWait) {
  plain_http2_ = PlainHttp2::prior_knowledge;
  routes_.get("/sleepy", []() -> Task<Response> {
    std::ignore = co_await sleep(1s);
    co_return text("awake");
  });
  begin();
  MemoryPeer& peer = connect();
  talk(peer, frames::preface() + frames::get(1, "/large/1"));
  const std::size_t before = blocks();
  for (std::uint32_t id = 3; id < 9; id += 2) {
    talk(peer, frames::get(id, "/sleepy"));
    EXPECT_GT(blocks(), before + 5);
    pass(1s);
    EXPECT_TRUE(peer.take().ends_with("awake"));
    pass(99ms);
    EXPECT_GT(blocks(), before);  // a busy connection does not make its coroutines again
    pass(1ms);
    EXPECT_EQ(blocks(), before);
    pass(5s);
  }
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

TEST_F(MemoryBoundTest, HoldsWhileIdleConnectionsGiveWay) {
  begin();
  std::size_t most = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 16; ++i) connect().send("GET /large/1 HTTP/1.1\r\nHost: h\r\n\r\n");
    for (int i = 0; i < 10; ++i) {
      turn();
      most = std::max(most, bytes());
    }
    pass(1s);
  }
  expect_bounded(most);
  EXPECT_GE(server_->counters().connections_evicted.value(), 19 * limits_.connections_max);
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

TEST(LimitsDefaults, AreThoseOfTheHeader) {
  const Limits limits;
  EXPECT_EQ(limits.head_timeout, 10s);
  EXPECT_EQ(limits.idle_timeout, 60s);
  EXPECT_EQ(limits.first_request_timeout, 15s);
  EXPECT_EQ(limits.body_max, 1024U * 1024);
  EXPECT_EQ(limits.body_rate.grace, 5s);
  EXPECT_EQ(limits.body_rate.bytes_per_second, 240U);
  EXPECT_EQ(limits.body_rate.stall_max, 20s);
  EXPECT_EQ(limits.write_rate.grace, 10s);
  EXPECT_EQ(limits.write_rate.bytes_per_second, 240U);
  EXPECT_EQ(limits.write_rate.stall_max, 10s);
  EXPECT_EQ(limits.unread_body_max, 64U * 1024);
  EXPECT_EQ(limits.linger_timeout, 1s);
  EXPECT_EQ(limits.linger_bytes_max, 64U * 1024);
  EXPECT_EQ(limits.rejected_body_timeout, 30s);
  EXPECT_EQ(limits.rejected_body_max, 64U * 1024 * 1024);
  EXPECT_EQ(limits.connections_max, 0U);
  const MemoryBoundOptions options;
  EXPECT_EQ(options.cores, 1U);
  EXPECT_EQ(options.connections_max, 0U);
  EXPECT_EQ(options.body_max, 0U);
  EXPECT_EQ(options.handler_bytes, 4096U);
}

// The pool rounds a block of at most 64 KiB up to a power of two. It adds 8 bytes to a small one,
// and a header of 16 bytes.
constexpr std::uint64_t block_header = 16 + 8;
constexpr std::uint64_t smallest_buffer = 16 * 1024 + block_header;
constexpr std::uint64_t idle_part = 2 * 1024;
constexpr std::uint64_t frames_part = 16 * 1024;

/// Returns limits whose requests need as little memory as possible.
Limits least_limits() {
  return {.head = {.request_line_max = 0, .headers_bytes_max = 0, .empty_lines_max = 0},
          .chunks = {.trailers_bytes_max = 0, .trailers_max = 0},
          .body_max = 0,
          .connections_max = 1};
}
std::uint64_t connection_bound(const Limits& limits, std::uint64_t body_max = 0,
                               std::size_t handler_bytes = 0) {
  return memory_bound(limits, {.body_max = body_max, .handler_bytes = handler_bytes}).connection;
}

TEST(MemoryBoundParts, AddUpForTheSmallestRequest) {
  const MemoryBound bound = memory_bound(least_limits(), {.handler_bytes = 0});
  EXPECT_EQ(bound.idle_connection, idle_part);
  const std::uint64_t http1 = block_header + std::bit_ceil(sizeof(H1Connection));
  const std::uint64_t input = 2 * smallest_buffer;  // while it doubles
  const std::uint64_t head_copy = block_header + 2;
  const std::uint64_t unread = 4 * loop::SocketOptions().unread_max + 2 * smallest_buffer;
  const std::uint64_t output = smallest_buffer;
  EXPECT_EQ(bound.connection,
            idle_part + frames_part + http1 + input + head_copy + unread + output);
  const std::uint64_t rejected = idle_part + frames_part + smallest_buffer;
  EXPECT_EQ(bound.core, 64 * 1024 + 256 * smallest_buffer + (64 + 16) * rejected)
      << "64 rejected connections and 16 that are closed for others";
  EXPECT_EQ(bound.cached_blocks, BlockPool::caches_free_blocks ? 64U * 1024 * 1024 : 0U);
}

TEST(MemoryBoundParts, GrowWithTheHead) {
  const std::uint64_t least = connection_bound(least_limits());
  Limits limits = least_limits();
  limits.head.request_line_max = 1000;
  limits.head.headers_bytes_max = 6000;
  limits.head.empty_lines_max = 8;  // 7018 bytes with the line ends: the buffers stay the smallest
  EXPECT_EQ(connection_bound(limits), least + 8192 - 2);
  limits.head.request_line_max = 30'000;
  limits.head.headers_bytes_max = 10'000;
  limits.head.empty_lines_max = 0;  // 40,002 bytes, in a buffer of twice the size
  EXPECT_EQ(connection_bound(limits),
            least + 2 * (80'004 + block_header - smallest_buffer) + 64 * 1024 - 2);
}

TEST(MemoryBoundParts, GrowWithTheBodyOfTheLargestRoute) {
  Limits limits = least_limits();
  const std::uint64_t least = connection_bound(limits);
  EXPECT_EQ(connection_bound(limits, 1), least + 2 * smallest_buffer);
  EXPECT_EQ(connection_bound(limits, 100'000), least + 300'000 + 2 * block_header);
  limits.body_max = 100'000;
  EXPECT_EQ(connection_bound(limits), least + 300'000 + 2 * block_header);
  EXPECT_EQ(connection_bound(limits, 99'999), least + 300'000 + 2 * block_header);
  limits.body_max = 40'000;
  EXPECT_EQ(connection_bound(limits), least + 64 * 1024 + 80'000 + 2 * block_header);
}

TEST(MemoryBoundParts, GrowWithTheTrailersAndTheHandler) {
  Limits limits = least_limits();
  const std::uint64_t least = connection_bound(limits);
  limits.chunks.trailers_bytes_max = 1000;
  EXPECT_EQ(connection_bound(limits), least + 5000);
  limits.chunks.trailers_max = 10;
  EXPECT_EQ(connection_bound(limits), least + 5160);
  EXPECT_EQ(connection_bound(limits, 0, 12'345), least + 5160 + 12'345);
}

TEST(MemoryBoundParts, CountConnectionsAndCores) {
  EXPECT_EQ(memory_bound({.connections_max = 7}, {.connections_max = 9}).connections, 7U);
  EXPECT_EQ(memory_bound({.connections_max = 1}, {.connections_max = 9}).connections, 1U);
  EXPECT_EQ(memory_bound({}, {.connections_max = 9}).connections, 9U);
  EXPECT_EQ(memory_bound({}, {.cores = 4, .connections_max = 9}).connections, 12U);
  EXPECT_EQ(memory_bound(Limits(), {.cores = 4}).cores, 4U);
  EXPECT_EQ(memory_bound(Limits(), {.cores = 1}).cores, 1U);
  EXPECT_EQ(memory_bound(Limits(), {.cores = 0, .connections_max = 9}).connections, 9U);
  EXPECT_EQ(memory_bound(Limits(), {.cores = 0}).cores, 1U);
}

TEST(MemoryBoundSums, AddConnectionsAndCores) {
  const MemoryBound bound{.idle_connection = 5,
                          .connection = 10,
                          .core = 7,
                          .cached_blocks = 11,
                          .connections = 3,
                          .cores = 2};
  EXPECT_EQ(bound.in_use(), 44U);
  EXPECT_EQ(bound.idle(), 29U);
  EXPECT_EQ(bound.total(), 66U);
}

TEST(MemoryBoundText, IsOneLineForPeople) {
  MemoryBound bound{.idle_connection = 2048,
                    .connection = 1536,
                    .core = 1024 * 1024,
                    .cached_blocks = 1023,
                    .connections = 3,
                    .cores = 1};
  EXPECT_EQ(bound.to_text(),
            "at most 1.0 MiB: 3 connections of 1.5 KiB each (2.0 KiB while idle), "
            "1 core of 1.0 MiB and 1023 bytes of free blocks each");
  bound.cores = 2;
  EXPECT_EQ(bound.to_text(),
            "at most 2.0 MiB: 3 connections of 1.5 KiB each (2.0 KiB while idle), "
            "2 cores of 1.0 MiB and 1023 bytes of free blocks each");
}

TEST(MemoryBoundText, ChoosesTheLargestUnit) {
  struct Row {
    std::uint64_t bytes;
    std::string_view text;
  };
  constexpr std::uint64_t one = 1;
  const Row rows[] = {
      {0, "0 bytes"},
      {1, "1 bytes"},
      {1023, "1023 bytes"},
      {1024, "1.0 KiB"},
      {(one << 20) - 1, "1024.0 KiB"},
      {one << 20, "1.0 MiB"},
      {one << 30, "1.0 GiB"},
      {one << 40, "1.0 TiB"},
      {one << 50, "1.0 PiB"},
      {one << 60, "1.0 EiB"},
      {~std::uint64_t{0}, "16.0 EiB"},
  };
  for (const Row& row : rows) {
    const MemoryBound bound{.idle_connection = row.bytes,
                            .connection = 0,
                            .core = 0,
                            .cached_blocks = 0,
                            .connections = 0,
                            .cores = 1};
    const std::string text = bound.to_text();
    EXPECT_TRUE(text.contains("(" + std::string(row.text) + " while idle)")) << text;
  }
}

constexpr std::uint64_t largest = ~std::uint64_t{0};

TEST(MemoryBoundParts, AreTheLargestNumberIfTheyDoNotFit) {
  Limits limits = least_limits();
  const std::uint64_t least = connection_bound(limits);
  constexpr std::uint64_t quarter = largest / 4;
  EXPECT_EQ(connection_bound(limits, quarter), least + 3 * quarter + 2 * block_header);
  for (const std::uint64_t body :
       {largest / 3, largest / 2, largest / 2 + 1, largest - block_header, largest - 1, largest}) {
    EXPECT_EQ(connection_bound(limits, body), largest) << body;
    limits.body_max = body;
    EXPECT_EQ(connection_bound(limits), largest) << body;
    limits.body_max = 0;
  }
  EXPECT_EQ(connection_bound(limits, 0, largest - least), largest);
  EXPECT_EQ(connection_bound(limits, 0, largest - least - 1), largest - 1);
  EXPECT_EQ(connection_bound(limits, 0, largest), largest);
  constexpr std::size_t connections = ~std::size_t{0};
  EXPECT_EQ(memory_bound({}, {.cores = 4, .connections_max = connections}).connections,
            connections);
  EXPECT_EQ(memory_bound({.connections_max = connections}, {.cores = 2}).connections, connections);
}

TEST(MemoryBoundParts, DoNotOverflowForTheLargestHeads) {
  Limits limits = least_limits();
  constexpr std::uint64_t most = ~std::uint32_t{0};
  limits.head.request_line_max = ~std::uint32_t{0};
  limits.head.headers_bytes_max = ~std::uint32_t{0};
  limits.chunks.trailers_bytes_max = ~std::uint32_t{0};
  EXPECT_GT(connection_bound(limits), 4 * 2 * most + 5 * most);
}

TEST(MemoryBoundSums, AreTheLargestNumberIfTheyDoNotFit) {
  MemoryBound bound{.idle_connection = largest / 2,
                    .connection = largest / 3,
                    .core = 0,
                    .cached_blocks = 0,
                    .connections = 3,
                    .cores = 1};
  EXPECT_EQ(bound.in_use(), largest);
  EXPECT_EQ(bound.idle(), largest);
  EXPECT_EQ(bound.total(), largest);
  bound.connection = largest / 3 - 1;
  EXPECT_EQ(bound.in_use(), largest - 3);
  bound.core = 3;
  EXPECT_EQ(bound.in_use(), largest);
  bound.core = 4;
  EXPECT_EQ(bound.in_use(), largest);
  bound.core = 0;
  bound.cached_blocks = 3;
  EXPECT_EQ(bound.total(), largest);
  bound.cached_blocks = 4;
  EXPECT_EQ(bound.total(), largest);
  bound.cached_blocks = largest / 2 + 1;
  bound.connection = 0;
  bound.cores = 2;
  EXPECT_EQ(bound.in_use(), 0U);
  EXPECT_EQ(bound.total(), largest);
  EXPECT_TRUE(bound.to_text().starts_with("at most 16.0 EiB: ")) << bound.to_text();
}

}  // namespace
}  // namespace weir::http::limits_test
