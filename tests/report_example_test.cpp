// Tests the example that reports the activity of its cores, on every backend.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/server.hpp"

namespace weir::tests::report_example_test {
namespace {

class ExampleReport : public EachBackend {
 protected:
  static std::string body_of(const Server& server, std::string_view path) {
    const auto response =
        server.exchange("GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(response) << response.error().message();
    return response ? response->body : std::string();
  }
  /// Returns the total in the line that begins with `name`.
  static std::string total_of(const std::string& report, std::string_view name) {
    std::istringstream lines(report);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(name)) continue;
      std::istringstream words(line.substr(name.size()));
      std::string total;
      words >> total;
      return total;
    }
    return "(no such line)";
  }
  /// Returns the total as a number; "1,234" is a valid one.
  static std::uint64_t number_of(const std::string& report, std::string_view name) {
    std::string digits = total_of(report, name);
    std::erase(digits, ',');
    EXPECT_FALSE(digits.empty() || digits.starts_with('(')) << name << " is not in\n" << report;
    return std::strtoull(digits.c_str(), nullptr, 10);
  }
};

TEST_P(ExampleReport, ReportsItsCounters) {
  Server server("report", GetParam());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(body_of(server, "/"), "Hello, World!\n");
  EXPECT_EQ(server.exchange("GET / HTTP/1.1\r\n\r\n")->status, 400);
  const std::string report = body_of(server, "/report");
  EXPECT_TRUE(report.starts_with("2 cores, ")) << report;
  EXPECT_EQ(total_of(report, "accepts "), "5") << report;
  EXPECT_EQ(total_of(report, "http connections "), "5") << report;
  EXPECT_EQ(total_of(report, "http requests "), "4") << report;
  EXPECT_EQ(total_of(report, "http requests rejected: missing_host "), "1") << report;
  // The report includes every byte that clients sent and received before this request.
  EXPECT_GE(number_of(report, "bytes received "), 3 * get("/").size()) << report;
  EXPECT_GE(number_of(report, "bytes sent "), 3 * std::string_view("Hello, World!\n").size());
  EXPECT_GT(number_of(report, "system calls "), 0U) << report;
  EXPECT_EQ(server.stop(), 0);
}

TEST_P(ExampleReport, NamesTheCauseOfASlowTurn) {
  Server server("report", GetParam());
  // The work grows until it is slow enough on any machine.
  std::string report;
  for (int below = 100'000; below < 100'000'000; below *= 2) {
    EXPECT_NE(body_of(server, "/primes/" + std::to_string(below)), "");
    report = body_of(server, "/report");
    // The core counts the turn at its end, which may be after its response.
    if (report.find(" ms: GET /primes/{below}\n") != report.npos &&
        total_of(report, "slow turns ") != "0") {
      break;
    }
  }
  EXPECT_NE(report.find(" ms: GET /primes/{below}\n"), report.npos) << report;
  EXPECT_NE(total_of(report, "slow turns "), "0") << report;
  EXPECT_NE(total_of(report, "CPU time "), "0.000") << report;
  EXPECT_EQ(server.stop(), 0);
  EXPECT_NE(server.process().errors().find(" ms: GET /primes/{below} (logged once"),
            std::string::npos)
      << server.process().errors();
}

INSTANTIATE_TEST_SUITE_P(Report, ExampleReport, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::report_example_test
