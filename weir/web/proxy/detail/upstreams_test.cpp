#include "weir/web/proxy/detail/upstreams.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace weir::http::upstreams_test {
namespace {

using namespace std::chrono_literals;

constexpr Instant start{};

/// Returns the upstreams of the next requests, each of which succeeds.
std::string next(Upstreams& upstreams, int count, Instant now = start) {
  std::string text;
  for (int each = 0; each < count; ++each) {
    text += std::to_string(upstreams.choose(now, {}).value());
  }
  return text;
}

TEST(UpstreamsTest, RoundRobinUsesAllInOrder) {
  Upstreams upstreams(3, {}, 100, 1);
  EXPECT_EQ(next(upstreams, 7), "1201201");
}

TEST(UpstreamsTest, FirstUpstreamMayBeAnyNumber) {
  Upstreams upstreams(2, {}, 100, 7);
  EXPECT_EQ(next(upstreams, 3), "101");
}

TEST(UpstreamsTest, LeastRequestsPrefersTheIdleOnes) {
  ReverseProxyOptions options;
  options.choice = UpstreamChoice::least_requests;
  Upstreams upstreams(3, options, 100, 0);
  upstreams.begin(0);
  upstreams.begin(0);
  upstreams.begin(1);
  EXPECT_EQ(next(upstreams, 2), "22");
  upstreams.begin(2);
  EXPECT_EQ(next(upstreams, 3), "121") << "equals take turns";
  upstreams.end(0);
  upstreams.end(0);
  EXPECT_EQ(next(upstreams, 1), "0");
}

TEST(UpstreamsTest, CapacityIsThatOfTheConnections) {
  ReverseProxyOptions options;
  options.client.limits.connections_per_origin_max = 4;
  Upstreams upstreams(3, options, 10, 0);
  EXPECT_EQ(upstreams.capacity(start), 10U);
  upstreams.set_requests_per_connection(0, 100);
  EXPECT_EQ(upstreams.capacity(start), 4U * 100U + 3U + 3U);
  upstreams.set_requests_per_connection(0, 1);
  EXPECT_EQ(upstreams.capacity(start), 10U);
  Upstreams few(3, options, 2, 0);
  EXPECT_EQ(few.capacity(start), 2U);
}

TEST(UpstreamsTest, EjectedOnesHaveNoCapacity) {
  ReverseProxyOptions options;
  options.failures_max = 1;
  options.eject_time = 10s;
  options.client.limits.connections_per_origin_max = 4;
  Upstreams upstreams(2, options, 8, 0);
  EXPECT_EQ(upstreams.capacity(start), 8U);
  EXPECT_TRUE(upstreams.record_failure(0, start));
  EXPECT_EQ(upstreams.capacity(start), 4U);
  EXPECT_TRUE(upstreams.record_failure(1, start));
  EXPECT_EQ(upstreams.capacity(start), 8U) << "they are used if there is no other";
  upstreams.record_success(1);
  EXPECT_EQ(upstreams.capacity(start), 4U);
  EXPECT_EQ(upstreams.capacity(start + 10s), 8U);
}

TEST(UpstreamsTest, FullOnesComeAfterOthers) {
  for (const UpstreamChoice choice :
       {UpstreamChoice::round_robin, UpstreamChoice::least_requests}) {
    ReverseProxyOptions options;
    options.choice = choice;
    Upstreams upstreams(2, options, 2, 0);
    upstreams.set_requests_per_connection(1, 100);
    upstreams.begin(0);
    for (int count = 0; count < 3; ++count) upstreams.begin(1);
    EXPECT_EQ(next(upstreams, 4), "1111");
    upstreams.end(0);
    EXPECT_EQ(next(upstreams, 1), "0");
  }
}

TEST(UpstreamsTest, TriedOnesAreLeftOut) {
  Upstreams upstreams(3, {}, 100, 0);
  const std::vector<std::size_t> tried{0, 2};
  EXPECT_EQ(upstreams.choose(start, tried), 1U);
  const std::vector<std::size_t> all{0, 1, 2};
  EXPECT_EQ(upstreams.choose(start, all), std::nullopt);
}

TEST(UpstreamsTest, FailuresInARowEject) {
  Upstreams upstreams(2, {}, 100, 0);
  EXPECT_FALSE(upstreams.record_failure(0, start));
  EXPECT_FALSE(upstreams.record_failure(0, start));
  upstreams.record_success(0);
  EXPECT_FALSE(upstreams.record_failure(0, start));
  EXPECT_FALSE(upstreams.record_failure(0, start));
  EXPECT_EQ(next(upstreams, 2), "01");
  EXPECT_TRUE(upstreams.record_failure(0, start));
  EXPECT_EQ(next(upstreams, 3), "111");
  EXPECT_FALSE(upstreams.record_failure(0, start)) << "it is ejected already";
}

TEST(UpstreamsTest, EjectedOneHasOneMoreChance) {
  Upstreams upstreams(2, {}, 100, 0);
  for (int count = 0; count < 3; ++count) upstreams.record_failure(0, start);
  EXPECT_EQ(next(upstreams, 2, start + 10s - 1ns), "11");
  EXPECT_EQ(next(upstreams, 2, start + 10s), "01");
  EXPECT_TRUE(upstreams.record_failure(0, start + 10s)) << "one failure ejects it again";
  EXPECT_EQ(next(upstreams, 2, start + 19s), "11");
  upstreams.record_success(0);
  EXPECT_EQ(next(upstreams, 2, start + 19s), "01");
}

TEST(UpstreamsTest, RequestsGoToAnEjectedOneIfThereIsNoOther) {
  Upstreams upstreams(2, {}, 100, 0);
  for (int count = 0; count < 3; ++count) upstreams.record_failure(1, start);
  for (int count = 0; count < 3; ++count) upstreams.record_failure(0, start + 1s);
  EXPECT_EQ(next(upstreams, 3, start + 2s), "111") << "its time ends first";
}

TEST(UpstreamsTest, ZeroFailuresMaxEjectsNone) {
  ReverseProxyOptions options;
  options.failures_max = 0;
  Upstreams upstreams(2, options, 100, 0);
  for (int count = 0; count < 9; ++count) EXPECT_FALSE(upstreams.record_failure(0, start));
  EXPECT_EQ(next(upstreams, 2), "01");
}

}  // namespace
}  // namespace weir::http::upstreams_test
