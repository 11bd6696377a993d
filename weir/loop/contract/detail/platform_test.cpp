// Tests of the log of a platform.
#include "weir/loop/contract/detail/platform.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::loop::platform_test {
namespace {

class Lines final : public PlatformLog {
 public:
  std::vector<std::string> lines;

 private:
  void write_line(std::string_view line) noexcept override { lines.emplace_back(line); }
};

TEST(PlatformLog, WritesPrintableLinesAsTheyAre) {
  Lines log;
  log.log("weir: caf\xc3\xa9");
  log.log("");
  EXPECT_EQ(log.lines, (std::vector<std::string>{"weir: caf\xc3\xa9", ""}));
}

TEST(PlatformLog, TextOfAPeerForgesNoLineAndControlsNoTerminal) {
  Lines log;
  log.log("weir: bad: a\nweir: forged\r\x1b[2J\x7f\xc2\x9b\xe2\x80\xae\xff");
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_EQ(log.lines[0],
            "weir: bad: a\\x0aweir: forged\\x0d\\x1b[2J\\x7f\\xc2\\x9b\\xe2\\x80\\xae\\xff");
}

}  // namespace
}  // namespace weir::loop::platform_test
