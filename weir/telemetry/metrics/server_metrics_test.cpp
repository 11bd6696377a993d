#include "weir/telemetry/metrics/server_metrics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::telemetry::server_metrics_test {
namespace {

using namespace std::chrono_literals;

const detail::Family& family() {
  const detail::Family* each = detail::Registry::instance().first();
  while (each->name() != "http.server.request.duration") each = each->next();
  return *each;
}

/// Returns the series of GET with these labels; nullptr if there is none.
const detail::Series* series_of(std::string_view route, std::string_view status,
                                std::string_view error) {
  const std::array<std::string_view, 5> wanted{"GET", route, status, "1.1", error};
  const detail::Series* each = family().first();
  while (each != nullptr && !std::ranges::equal(each->values, wanted)) each = each->next.load();
  return each;
}

std::uint64_t count_of(const detail::Series* series) {
  if (series == nullptr) return 0;
  std::uint64_t count = 0;
  const std::size_t buckets = family().options().buckets.bounds.size() + 1;
  for (std::size_t index = 1; index <= buckets; ++index) {
    count += detail::ThreadCells::sum(static_cast<detail::CellId>(series->first + index));
  }
  return count;
}

class ServerMetricsTest : public ::testing::Test {
 protected:
  http::EndedRequest request(std::string_view route, http::Status status, Duration took) {
    return {.begin = end_ - took,
            .route = &http::RouteName::of(route),
            .status = status,
            .method = http::Method::get,
            .complete = true};
  }
  void pass(const std::vector<http::EndedRequest>& requests) {
    metrics_.on_requests_ended(*loop_, end_, requests);
  }

  MemoryPlatform platform_{MemoryPlatformOptions()};
  const std::unique_ptr<Loop> loop_ = Loop::make(platform_, {.core = 0}).value();
  const Instant end_ = platform_.now() + 1h;
  ServerMetrics metrics_;
};

TEST_F(ServerMetricsTest, CountsRequestsOfOneTurnByTheirLabels) {
  std::vector<http::EndedRequest> batch;
  for (int count = 0; count < 3; ++count) batch.push_back(request("/a", http::Status::ok, 4ms));
  batch.push_back(request("/a", http::Status::ok, 400ms));  // of an earlier turn
  batch.push_back(request("/b", http::Status::ok, 400ms));
  batch.push_back(request("/b", http::Status::not_found, 400ms));
  batch.push_back(request("/b", http::Status::not_found, 400ms));
  batch.back().complete = false;
  batch.push_back(request("/a", http::Status::ok, 4ms));
  pass(batch);
  pass(batch);
  EXPECT_EQ(count_of(series_of("/a", "200", "")), 10U);
  EXPECT_EQ(count_of(series_of("/b", "200", "")), 2U);
  EXPECT_EQ(count_of(series_of("/b", "404", "")), 2U);
  EXPECT_EQ(count_of(series_of("/b", "404", "client_left")), 2U);
  const detail::Series* const first = series_of("/a", "200", "");
  ASSERT_NE(first, nullptr);
  EXPECT_NEAR(detail::ThreadCells::real_sum(first->first), 2 * (4 * 0.004 + 0.4), 1e-9);
  EXPECT_EQ(detail::ThreadCells::sum(first->first + 1), 8U) << "at most 5 ms";
}

/// Returns the requests that were counted or dropped.
std::uint64_t all_requests() {
  std::uint64_t sum = detail::ThreadCells::sum(family().dropped().first);
  for (const detail::Series* each = family().first(); each != nullptr; each = each->next.load()) {
    sum += count_of(each);
  }
  return sum;
}

/// Passes requests of 1,500 label sets, of which at most 500 fit. Returns true if each was counted
/// once.
bool count_too_many(ServerMetrics& metrics, Loop& loop, http::EndedRequest request) {
  const std::uint64_t before = all_requests();
  const std::uint64_t dropped = detail::ThreadCells::sum(family().dropped().first);
  for (int round = 0; round < 3; ++round) {
    for (std::uint16_t status = 100; status < 1600; ++status) {
      request.status = static_cast<http::Status>(status);
      metrics.on_requests_ended(loop, request.begin + 1ms, std::span(&request, 1));
    }
  }
  return all_requests() - before == 4500 &&
         detail::ThreadCells::sum(family().dropped().first) - dropped >= 3000;
}

/// In a process of its own, because the label sets belong to the process.
TEST_F(ServerMetricsTest, CountsDroppedRequests) {
  const http::EndedRequest first = request("/many", http::Status::ok, 1ms);
  EXPECT_EXIT(std::_Exit(count_too_many(metrics_, *loop_, first) ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weir::telemetry::server_metrics_test
