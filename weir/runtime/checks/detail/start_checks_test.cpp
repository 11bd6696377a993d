#include "weir/runtime/checks/detail/start_checks.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::checks::start_checks_test {
namespace {

class Log final : public loop::PlatformLog {
 public:
  void write_line(std::string_view line) noexcept override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

TEST(StartChecks, LogEachCheckOnce) {
  MachineFacts facts;
  facts.backlog_max = 128;
  facts.syn_cookies = 0;
  Log log;
  StartChecks checks(log, facts);
  checks.log({.backlog = 4096});
  ASSERT_EQ(log.lines.size(), 2U);
  EXPECT_TRUE(log.lines[0].starts_with("weir: backlog: net.core.somaxconn is 128, wanted 4096: "));
  EXPECT_TRUE(log.lines[1].starts_with("weir: syn_cookies: "));
  checks.log({.backlog = 8192});
  EXPECT_EQ(log.lines.size(), 2U) << "another server has the same problem";
}

TEST(StartChecks, LogTheDefaultNumberOfConnectionsOnce) {
  Log log;
  StartChecks checks(log, {});
  checks.log_default_connections(96);
  checks.log_default_connections(96);
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_TRUE(log.lines[0].starts_with("weir: at most 96 connections (")) << log.lines[0];
}

TEST(StartChecks, LogNothingThatIsNotAskedForAndNoNotes) {
  MachineFacts facts;
  facts.backlog_max = 128;
  facts.container = "Docker";
  Log log;
  StartChecks checks(log, facts);
  checks.log({});
  checks.log({.backlog = 128, .loops = true});
  EXPECT_TRUE(log.lines.empty());
}

}  // namespace
}  // namespace weir::checks::start_checks_test
