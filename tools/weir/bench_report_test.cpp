// Tests of the reports of `weir bench`.
#include "tools/weir/bench_report.hpp"

#include <gtest/gtest.h>

namespace weir::bench {
namespace {

LoadPlan plan() {
  LoadPlan plan;
  plan.connections = 64;
  plan.depth = 2;
  return plan;
}

LoadResult clean_result() {
  LoadResult result;
  result.responses = 1000;
  result.length = 2s;
  result.per_second = 500;
  result.connections = 64;
  result.body_bytes = 11;
  result.backend = "epoll";
  result.latency.record(200, 1000);
  return result;
}

TEST(BenchReport, JsonHasEveryCount) {
  LoadResult result = clean_result();
  result.server_cpu_time = 500ms;
  EXPECT_EQ(to_json(plan(), result),
            R"({"connections": 64, "depth": 2, "new_connections": false, "rate": 0.000, )"
            R"("backend": "epoll", "seconds": 2.000000000, "responses": 1000, )"
            R"("late": 0, "unanswered": 0, "abandoned": 0, "starved": 0, "unsent": 0, )"
            R"("opened": 64, "closed_by_server": 0, )"
            R"("bytes_received": 0, "body_bytes": 11, "responses_per_second": 500.000, )"
            R"("latency_ns": {"min": 200, "mean": 200.0, "p50": 200, "p90": 200, "p99": 200, )"
            R"("p99.9": 200, "max": 200}, "histogram_ns": [[200, 1000]], )"
            R"("server": {"cpu_seconds": 0.500000000, )"
            R"("busy": 0.250000, "responses_per_cpu_second": 2000.000}, )"
            R"("error_count": 0, "errors": {}})"
            "\n");
}

TEST(BenchReport, NamesCountsAndQuotesErrors) {
  LoadResult result = clean_result();
  result.errors.count(LoadError::refused, "connecting: no");
  result.errors.count(ResponseError::body, "a \"quote\"\r\n\x1b\xff\\");
  result.errors.count(ResponseError::body, "the second is not shown");
  const std::string json = to_json(plan(), result);
  EXPECT_NE(json.find(R"("error_count": 3, "errors": {)"
                      R"("connection refused": {"count": 1, "first": "connecting: no"}, )"
                      R"("wrong body": {"count": 2, "first": )"
                      R"("a \"quote\"\u000d\u000a\u001b\u00ff\\"}}})"),
            std::string::npos)
      << json;
  const std::string text = to_text(plan(), result);
  EXPECT_NE(text.find("1 × connection refused"), std::string::npos) << text;
  EXPECT_NE(text.find("2 × wrong body"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << "raw bytes of a server never reach a terminal";
  EXPECT_EQ(text.find("errors     none"), std::string::npos);
}

TEST(BenchReport, CleanMeansResponsesAndNoErrors) {
  EXPECT_TRUE(is_clean(clean_result()));
  EXPECT_FALSE(is_clean(LoadResult()));
  LoadResult faulty = clean_result();
  faulty.errors.count(LoadError::timed_out, "");
  EXPECT_FALSE(is_clean(faulty));
  LoadResult unanswered = clean_result();
  unanswered.unanswered = 1;
  EXPECT_FALSE(is_clean(unanswered));
  LoadResult unsent = clean_result();
  unsent.unsent = 1;
  EXPECT_FALSE(is_clean(unsent));
  LoadResult abandoned = clean_result();
  abandoned.abandoned = 1;
  EXPECT_TRUE(is_clean(abandoned)) << "the plan requests it";
}

TEST(BenchReport, AddsUpTheResultsOfThreads) {
  LoadResult total;
  LoadResult each = clean_result();
  each.errors.count(LoadError::reset, "first");
  total.add(each);
  total.add(each);
  EXPECT_EQ(total.responses, 2000U);
  EXPECT_EQ(total.per_second, 1000);
  EXPECT_EQ(total.length, 2s);
  EXPECT_EQ(total.latency.count(), 2000U);
  EXPECT_EQ(total.errors.of(LoadError::reset), 2U);
  EXPECT_EQ(total.backend, "epoll");
}

}  // namespace
}  // namespace weir::bench
