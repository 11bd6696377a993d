// Tests of the counts and times of routes.
#include "weir/admin/detail/pages/route_statistics.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace weir::admin {
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
  ASSERT_EQ(routes.all().size(), 3U);
  EXPECT_EQ(name_of(routes.all()[0]), "(no route)");
  EXPECT_EQ(routes.all()[0].requests, 1U);
  EXPECT_EQ(name_of(routes.all()[1]), "GET /notes/{id}");
  EXPECT_EQ(routes.all()[1].requests, 2U);
  EXPECT_EQ(routes.all()[1].failures, 1U);
  EXPECT_EQ(routes.all()[1].longest, 3ms);
  EXPECT_EQ(name_of(routes.all()[2]), "POST /notes/{id}");
  EXPECT_EQ(routes.all()[2].incomplete, 1U);
  std::vector<RouteCounts> sums;
  add_routes(sums, routes.all());
  add_routes(sums, routes.all());
  ASSERT_EQ(sums.size(), 3U);
  EXPECT_EQ(sums[1].requests, 4U);
  EXPECT_EQ(sums[1].times.count(), 4U);
}

TEST(CoreRoutes, HasALimit) {
  std::vector<http::RouteName> names(CoreRoutes::routes_max + 10);
  CoreRoutes routes;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i].pattern = "/" + std::to_string(i);
    names[i].number = static_cast<std::uint32_t>(i);
    routes.add(request_of(names[i], http::Status::ok), 1ms);
  }
  EXPECT_EQ(routes.all().size(), CoreRoutes::routes_max);
  EXPECT_EQ(routes.all()[0].requests, 11U) << "further routes count without a name";
}

}  // namespace
}  // namespace weir::admin
