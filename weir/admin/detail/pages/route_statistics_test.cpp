// Tests of the counts and times of routes.
#include "weir/admin/detail/pages/route_statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "weir/http/test/http_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/detail/turn_budget.hpp"

namespace weir::admin::route_statistics_test {
namespace {

using namespace std::chrono_literals;

TEST(TimeHistogram, HasBucketsThatFollowEachOther) {
  for (std::size_t bucket = 0; bucket + 2 < TimeHistogram::buckets_max; ++bucket) {
    const Duration end = TimeHistogram::end_of(bucket);
    EXPECT_EQ(TimeHistogram::bucket_of(end - 1ns), bucket);
    EXPECT_EQ(TimeHistogram::bucket_of(end), bucket + 1);
    if (bucket >= 4) {
      EXPECT_LE(end.count(), TimeHistogram::end_of(bucket - 1).count() * 5 / 4 + 1) << bucket;
    }
  }
  EXPECT_EQ(TimeHistogram::bucket_of(-1s), 0U);
  EXPECT_EQ(TimeHistogram::bucket_of(Duration::max()), TimeHistogram::buckets_max - 1);
}

TEST(TimeHistogram, HasQuantilesWithinAQuarter) {
  TimeHistogram times;
  EXPECT_EQ(times.quantile(0.5), Duration::zero());
  for (int i = 1; i <= 1000; ++i) times.add(i * 1ms);
  const auto near = [&](double part, double expected) {
    const double got = std::chrono::duration<double, std::milli>(times.quantile(part)).count();
    EXPECT_GT(got, expected * 0.8) << part;
    EXPECT_LT(got, expected * 1.25) << part;
  };
  near(0.5, 500);
  near(0.9, 900);
  near(0.99, 990);
  TimeHistogram older = times;
  times.add(1s);
  times.subtract(older);
  EXPECT_EQ(times.count(), 1U);
  EXPECT_GT(times.quantile(0.5), 800ms);
}

http::EndedRequest request_of(const http::RouteName& route, http::Status status) {
  http::EndedRequest request{};
  request.route = &route;
  request.method = http::Method::get;
  request.status = status;
  request.complete = true;
  return request;
}

TEST(CoreRoutes, CountsByMethodAndRoute) {
  const http::RouteName notes{.pattern = "/notes/{id}", .number = 7};
  CoreRoutes routes;
  routes.add(request_of(notes, http::Status::ok), 1ms);
  routes.add(request_of(notes, http::Status::bad_gateway), 3ms);
  http::EndedRequest post = request_of(notes, http::Status::ok);
  post.method = http::Method::post;
  post.complete = false;
  routes.add(post, 1ms);
  http::EndedRequest unknown = post;
  unknown.route = nullptr;
  routes.add(unknown, 1ms);
  ASSERT_EQ(routes.size(), 3U);
  RouteTable sums;
  for (int core = 0; core < 2; ++core) {
    for (std::size_t i = 0; i < routes.size(); ++i) {
      const RouteCounters& each = routes.at(i);
      each.add_to(sums.at(each.route(), each.method()));
    }
  }
  ASSERT_EQ(sums.all().size(), 3U);
  const RouteCounts& none = sums.all()[0];
  EXPECT_EQ(name_of(none.route, none.method), "(no route)");
  EXPECT_EQ(none.requests, 2U);
  const RouteCounts* const of_get = sums.find(&notes, http::Method::get);
  ASSERT_NE(of_get, nullptr);
  EXPECT_EQ(name_of(of_get->route, of_get->method), "GET /notes/{id}");
  EXPECT_EQ(of_get->requests, 4U);
  EXPECT_EQ(of_get->failures, 2U);
  EXPECT_EQ(of_get->longest, 3ms);
  EXPECT_EQ(of_get->times.count(), 4U);
  const RouteCounts* const of_post = sums.find(&notes, http::Method::post);
  ASSERT_NE(of_post, nullptr);
  EXPECT_EQ(of_post->incomplete, 2U);
  EXPECT_EQ(sums.find(&notes, http::Method::put), nullptr);
}

TEST(CoreRoutes, HasALimit) {
  std::vector<http::RouteName> names(CoreRoutes::routes_max + 10);
  CoreRoutes routes;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i].pattern = "/" + std::to_string(i);
    names[i].number = static_cast<std::uint32_t>(i);
    routes.add(request_of(names[i], http::Status::ok), 1ms);
  }
  EXPECT_EQ(routes.size(), CoreRoutes::routes_max);
  RouteCounts none;
  routes.at(0).add_to(none);
  EXPECT_EQ(none.requests, 11U) << "further routes count without a name";
}

/// A loop with the counts of many routes.
class RouteRowsTest : public HttpTest {
 protected:
  void count(std::size_t routes, Duration time) {
    names_.resize(std::max(names_.size(), routes));
    auto& counts = loop_->slots().get<CoreRoutes>();
    for (std::size_t i = 0; i < routes; ++i) {
      names_[i].pattern = "/" + std::to_string(i);
      names_[i].number = static_cast<std::uint32_t>(i);
      counts.add(request_of(names_[i], http::Status::ok), time);
    }
  }
  std::shared_ptr<const RouteTable> read() { return weir::run(*loop_, read_routes(*loop_)); }
  std::uint64_t turns() const { return loop_->counters().turns.value(); }

  std::deque<http::RouteName> names_;
};

TEST_F(RouteRowsTest, HaveTheRecentRequestsOnly) {
  count(3, 1s);
  const auto before = read();
  count(1, 10ms);
  count(1, 10ms);
  const auto now = read();
  const auto rows = weir::run(*loop_, compare_routes(*loop_, *now, before.get(), 2s));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].route, &names_[0]);
  EXPECT_EQ(rows[0].requests, 3U);
  EXPECT_EQ(rows[0].recent_requests, 2U);
  EXPECT_EQ(rows[0].rate, 1.0);
  EXPECT_LT(rows[0].p99, 20ms) << "the older request took a second";
  EXPECT_EQ(rows[1].recent_requests, 0U);
  EXPECT_GT(rows[1].p50, 800ms) << "without recent requests, the times are those of all";
}

TEST_F(RouteRowsTest, AreMadeInManyTurns) {
  count(1000, 1ms);
  const std::uint64_t before = turns();
  const auto table = read();
  EXPECT_EQ(table->all().size(), 1001U);
  EXPECT_GE(turns() - before, 1000 / TurnBudget::items_max);
  const std::uint64_t between = turns();
  const auto rows = weir::run(*loop_, compare_routes(*loop_, *table, nullptr, 0s));
  EXPECT_EQ(rows.size(), 1000U) << "without the entry that counts no request";
  EXPECT_GE(turns() - between, 1000 / TurnBudget::items_max);
}

}  // namespace
}  // namespace weir::admin::route_statistics_test
