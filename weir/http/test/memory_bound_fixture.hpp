// Fixture: a server whose memory is measured while its clients do their worst. It measures the heap
// of this process, with the buffers of the simulated connections.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "weir/http/server/limits.hpp"
#include "weir/http/test/http_fixture.hpp"

namespace weir::http {

/// Returns the bytes of the heap in use.
inline std::size_t heap_bytes() {
  if (const std::size_t counted = allocated_bytes(); counted != 0) return counted;
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

inline Limits small_limits() {
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
    warm_up();
    settle();
    rest_ = bytes();
  }
  /// Makes everything that the first connection makes for all.
  virtual void warm_up() {
    MemoryPeer& first = connect();
    talk(first, "GET /large/1 HTTP/1.1\r\nHost: h\r\n\r\n");
    first.reset();
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
    EXPECT_EQ(platform_.open_descriptors(), 1 + all.size()) << "some were closed";
    for (MemoryPeer* each : all) each->reset();
    pass(std::chrono::seconds(1));
    expect_at_rest();
    return most;
  }
  void expect_bounded(std::size_t most) {
    EXPECT_LE(most, bound_.in_use());
    RecordProperty("bytes", std::to_string(most) + " of " + std::to_string(bound_.in_use()));
  }
  /// Returns the bytes in use above those at rest, without free blocks and clients_bytes_.
  std::size_t bytes() {
    loop_->blocks().collect();
    const std::size_t now = heap_bytes() - loop_->blocks().cached_bytes() - clients_bytes_;
    return now - std::min(now, rest_);
  }

  std::size_t clients_bytes_ = 0;  // memory that the clients use for themselves
  const Limits limits_ = small_limits();
  MemoryBound bound_ = memory_bound(limits_);

 private:
  static Task<Response> collect(Request& request) {
    const auto body = co_await request.body();
    if (!body) co_return to_status(body.error());
    co_return text(std::to_string(body->size()));
  }
  static Response large(int size) { return text(std::string(static_cast<std::size_t>(size), 'x')); }

  std::size_t rest_ = 0;
};

}  // namespace weir::http
