// Tests the examples that are apps of services: their output, its order, and their end.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "tests/process.hpp"

namespace weir::tests::app_examples_test {
namespace {

/// Runs an example until it has written `until`, and ends it with SIGTERM. Returns its lines,
/// except for those of the runtime.
std::vector<std::string> lines_of(std::string_view name, std::string_view until) {
  Process process = Process::example(name, {"--no-pin"});
  EXPECT_TRUE(process.wait_for(until)) << process.errors();
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
  EXPECT_EQ(process.output(), "");
  std::vector<std::string> lines;
  const std::string errors = process.errors();
  for (std::size_t at = 0; at < errors.size();) {
    const std::size_t end = std::min(errors.find('\n', at), errors.size());
    if (!errors.substr(at).starts_with("weir: ")) lines.push_back(errors.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(ExampleServices, Hello) {
  EXPECT_EQ(lines_of("services_hello", "Hello, services!"),
            (Lines{"greeter: started", "speaker: Hello, services!", "speaker: Goodbye!",
                   "greeter: stopped"}));
}

TEST(ExampleServices, Optional) {
  EXPECT_EQ(lines_of("services_optional", "a cache of 64"),
            (Lines{"store: no cache", "store: a cache of 64", "store: no cache"}));
}

TEST(ExampleServices, Lazy) {
  EXPECT_EQ(lines_of("services_lazy", "page 2"),
            (Lines{"reports: ready", "renderer: starting", "renderer: started",
                   "renderer: summary, page 1", "renderer: details, page 2", "reports: gone",
                   "renderer: gone"}));
}

TEST(ExampleServices, Remote) {
  EXPECT_EQ(lines_of("services_remote", "the ledger was removed"),
            (Lines{"ledger on core 1: 5", "shop on core 0: sold for 5", "shop: 500 is too much",
                   "shop: the ledger was removed"}));
}

TEST(ExampleServices, Scoped) {
  EXPECT_EQ(lines_of("services_scoped", "trace of Grace"),
            (Lines{"web: Hello, Ada", "session of Ada: closed", "trace of Ada: written",
                   "web: Hello, Grace", "session of Grace: closed", "trace of Grace: written"}));
}

TEST(ExampleServices, Requester) {
  EXPECT_EQ(lines_of("services_requester", "[Alarms] ready"),
            (Lines{"[Orders] ready", "[Alarms] ready!", "[Alarms] stopped!", "[Orders] stopped"}));
}

TEST(ExampleServices, Explain) {
  const Lines lines = lines_of("services_explain", "]}");
  ASSERT_EQ(lines.size(), 5U + 3 + 5 + 4 + 1 + 1);
  EXPECT_TRUE(lines[0].starts_with("Config: running (")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("Database on core 0: starting (")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("Web on core 0: waiting for Database on core 0 (")) << lines[2];
  EXPECT_EQ(lines[5], "digraph services {");
  EXPECT_TRUE(lines.back().starts_with(R"({"services":[{"name":"Config")")) << lines.back();
}

TEST(ExampleServices, Cores) {
  Lines lines = lines_of("services_cores", "tick on core 1");
  std::erase(lines, "tick on core 1");
  std::ranges::sort(lines);
  EXPECT_EQ(lines, (Lines{"worker on core 0 with the store of core 0, 2 shards",
                          "worker on core 1 with the store of core 1, 2 shards"}));
}

TEST(ExampleServices, Replace) {
  EXPECT_EQ(lines_of("services_replace", "prices of 10: gone"),
            (Lines{"shop: open at 10", "shop: open at 11", "shop: closed at 10",
                   "prices of 10: gone", "shop: closed at 11", "prices of 11: gone"}));
}

TEST(ExampleServices, Faked) {
  Process process = Process::example("services_faked");
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
  EXPECT_EQ(process.output(), "heard 200 409 500 200 , kept 2\n");
}

}  // namespace
}  // namespace weir::tests::app_examples_test
