// Tests of the reports of `weir bench`.
#include "tools/weir/bench_report.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::bench::bench_report_test {
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

TEST(BenchReport, HasTheHandshakesOfTls) {
  tls::Client client;
  LoadPlan secure = plan();
  LoadResult result = clean_result();
  result.handshakes = 70;
  result.resumed = 6;
  EXPECT_FALSE(to_json(secure, result).contains("handshakes"));
  EXPECT_FALSE(to_text(secure, result).contains("handshakes"));
  secure.tls = &client;
  EXPECT_TRUE(to_json(secure, result).contains(R"("handshakes": 70, "resumed": 6, )"));
  EXPECT_TRUE(to_text(secure, result).contains("handshakes 70 of TLS, 6 resumed a session\n"));
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

TEST(BenchReport, TextHasOneLineForEachMeasure) {
  LoadResult result = clean_result();
  EXPECT_EQ(to_text(plan(), result),
            "64 connections, depth 2, 2.00 s, on epoll\n"
            "  rate       500 responses/s\n"
            "  verified   1000 responses, status 200, body of 11 bytes\n"
            "  latency    p50 0.2 us  p90 0.2 us  p99 0.2 us  p99.9 0.2 us  max 0.2 us\n"
            "  errors     none\n");
}

TEST(BenchReport, TextShowsWhatIsNotZero) {
  LoadPlan own = plan();
  own.connections = 3;
  own.depth = 1;
  own.new_connections = true;
  own.rate = 750;
  own.rules.status = 204;
  LoadResult result = clean_result();
  result.late = 7;
  result.unanswered = 2;
  result.abandoned = 3;
  result.starved = 4;
  result.unsent = 5;
  result.closed_by_server = 6;
  result.server_cpu_time = 500ms;
  result.latency = {};
  result.latency.record(999, 80);
  result.latency.record(1'000'000, 15);
  result.latency.record(1'000'000'000, 5);
  result.errors.count(LoadError::reset, "broken");
  EXPECT_EQ(to_text(own, result),
            "3 connections, one request each, depth 1, 2.00 s, on epoll\n"
            "  rate       500 responses/s (requested: 750 requests/s)\n"
            "  verified   1007 responses, status 204, body of 11 bytes\n"
            "  latency    p50 1.0 us  p90 1.00 ms  p99 1.00 s  p99.9 1.00 s  max 1.00 s\n"
            "  server     2000 requests per second of server CPU time, 25.0 % busy\n"
            "  closed     6 connections, after Connection: close\n"
            "  unanswered 2 requests\n"
            "  abandoned  3 requests\n"
            "  starved    4 connections got no response in the whole time\n"
            "  unsent     5 requests were due\n"
            "  errors     1 × connection broken: broken\n");
}

TEST(BenchReport, JsonTellsTheCountsApart) {
  LoadPlan own = plan();
  own.new_connections = true;
  own.rate = 750;
  LoadResult result = clean_result();
  result.late = 1;
  result.unanswered = 2;
  result.abandoned = 3;
  result.starved = 4;
  result.unsent = 5;
  result.closed_by_server = 6;
  result.bytes_received = 7;
  result.latency = {};
  result.latency.record(1, 80);
  result.latency.record(2, 15);
  result.latency.record(3, 4);
  result.latency.record(5, 1);
  result.server_cpu_time = 0ms;
  EXPECT_EQ(to_json(own, result),
            R"({"connections": 64, "depth": 2, "new_connections": true, "rate": 750.000, )"
            R"("backend": "epoll", "seconds": 2.000000000, "responses": 1000, )"
            R"("late": 1, "unanswered": 2, "abandoned": 3, "starved": 4, "unsent": 5, )"
            R"("opened": 64, "closed_by_server": 6, )"
            R"("bytes_received": 7, "body_bytes": 11, "responses_per_second": 500.000, )"
            R"("latency_ns": {"min": 1, "mean": 1.3, "p50": 1, "p90": 2, "p99": 3, )"
            R"("p99.9": 5, "max": 5}, "histogram_ns": [[1, 80], [2, 15], [3, 4], [5, 1]], )"
            R"("error_count": 0, "errors": {}})"
            "\n");
}

TEST(BenchReport, EscapesEverythingThatIsNotPrintable) {
  LoadResult result = clean_result();
  result.errors.count(LoadError::ended, std::string("\x1f ~\x7f\0", 5));
  EXPECT_TRUE(
      to_text(plan(), result)
          .ends_with("  errors     1 × closed before the answer: \\u001f ~\\u007f\\u0000\n"));
}

TEST(BenchReport, StarvedConnectionsAreNotCleanAndLateResponsesAre) {
  LoadResult starved = clean_result();
  starved.starved = 1;
  EXPECT_FALSE(is_clean(starved));
  LoadResult late;
  late.late = 1;
  EXPECT_TRUE(is_clean(late));
  late.responses = 1;
  EXPECT_TRUE(is_clean(late));
}

TEST(BenchReport, AddsUpEveryCountOfThreads) {
  LoadResult each;
  each.responses = 1;
  each.late = 2;
  each.unanswered = 3;
  each.abandoned = 4;
  each.starved = 5;
  each.unsent = 6;
  each.connections = 7;
  each.closed_by_server = 8;
  each.bytes_received = 9;
  each.body_bytes = 10;
  each.length = 2s;
  each.body = "body";
  each.server_cpu_time = 3s;
  LoadResult total = each;
  each.length = 1s;
  each.server_cpu_time = 4s;
  each.backend = "poll";
  total.add(each);
  EXPECT_EQ(total.responses, 2U);
  EXPECT_EQ(total.late, 4U);
  EXPECT_EQ(total.unanswered, 6U);
  EXPECT_EQ(total.abandoned, 8U);
  EXPECT_EQ(total.starved, 10U);
  EXPECT_EQ(total.unsent, 12U);
  EXPECT_EQ(total.connections, 14U);
  EXPECT_EQ(total.closed_by_server, 16U);
  EXPECT_EQ(total.bytes_received, 18U);
  EXPECT_EQ(total.body_bytes, 10U);
  EXPECT_EQ(total.length, 2s) << "the threads measure at the same time";
  EXPECT_EQ(total.server_cpu_time, 3s) << "one thread measures it";
  EXPECT_EQ(total.backend, "poll");
  EXPECT_EQ(total.body, "body");
  EXPECT_EQ(total.errors.total(), 0U);
  each.body_bytes = 11;
  total.add(each);
  EXPECT_EQ(total.errors.of(ResponseError::body), 1U) << "beyond the compared part";
  EXPECT_EQ(total.body_bytes, 11U);
}

TEST(BenchReport, KeepsTheFirstErrorOfEachKind) {
  ErrorCounts counts;
  counts.count(LoadError::reset, "one");
  counts.count(LoadError::reset, "two");
  ErrorCounts other;
  other.count(LoadError::reset, "three");
  other.count(LoadError::timed_out, "four");
  counts.add(other);
  EXPECT_EQ(counts.total(), 4U);
  EXPECT_EQ(counts.of(LoadError::reset), 3U);
  EXPECT_EQ(counts.of(LoadError::timed_out), 1U);
  std::string seen;
  counts.visit([&](std::string_view name, std::uint64_t count, std::string_view first) {
    seen.append(name).append(" ").append(std::to_string(count)).append(" ").append(first) += '\n';
  });
  EXPECT_EQ(seen, "timed out 1 four\nconnection broken 3 one\n");
}

TEST(BenchReport, NamesEveryErrorOfALoad) {
  EXPECT_EQ(name_of(LoadError::refused), "connection refused");
  EXPECT_EQ(name_of(LoadError::not_connected), "could not connect");
  EXPECT_EQ(name_of(LoadError::timed_out), "timed out");
  EXPECT_EQ(name_of(LoadError::reset), "connection broken");
  EXPECT_EQ(name_of(LoadError::ended), "closed before the answer");
  EXPECT_EQ(name_of(LoadError::not_closed), "not closed after the answer");
}

}  // namespace
}  // namespace weir::bench::bench_report_test
