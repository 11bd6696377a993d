// Runs the config example and checks its sources, errors, help, and a file that changes.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/client.hpp"
#include "tests/process.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::tests::config_examples_test {
namespace {

/// Sets an environment variable for the programs that start during its lifetime.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

class ConfigExample : public testing::Test {
 protected:
  std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"--config=" + path(), "--listen=127.0.0.1:0", "--runtime.cores=2",
                                 "--runtime.pin=false", "--reload_every=20ms"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string path() const { return tree_.path("greeter.toml"); }
  /// Replaces the file atomically, so the program never reads a part of the new text.
  void replace(std::string_view text) const {
    tree_.write("new.toml", text);
    ASSERT_EQ(std::rename(tree_.path("new.toml").c_str(), path().c_str()), 0);
  }
  static std::string request(std::uint16_t port, std::string_view request) {
    const auto answer = Client(port).exchange(request);
    return answer ? answer->body : answer.error().message();
  }

  os::TemporaryTree tree_;
};

TEST_F(ConfigExample, FileEnvironmentAndArgumentsMakeTheSettings) {
  tree_.write("greeter.toml", "body_max = '1KiB'\n[greeting]\ntext = 'file'\nnames = ['a']\n");
  const Variable text("GREETER_GREETING_TEXT", "environment");
  const Variable names("GREETER_GREETING_NAMES", "b,c");
  Process process = Process::example("config", arguments({"--greeting.text", "Good morning"}));
  const auto port = process.wait_for_port();
  ASSERT_TRUE(port.has_value()) << process.errors();
  EXPECT_EQ(request(*port, get("/")), "Good morning, b, c!\n");
  EXPECT_EQ(request(*port, post("/count", std::string(1024, 'x'))), "1024 bytes\n");
  const auto larger = Client(*port).exchange(post("/count", std::string(1025, 'x')));
  ASSERT_TRUE(larger) << larger.error().message();
  EXPECT_EQ(larger->status, 413);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
}

TEST_F(ConfigExample, ReloadsItsFileAndKeepsItsSettingsIfTheFileIsInvalid) {
  tree_.write("greeter.toml", "greeting.text = 'first'\n");
  Process process = Process::example("config", arguments({}));
  const auto port = process.wait_for_port();
  ASSERT_TRUE(port.has_value()) << process.errors();
  EXPECT_EQ(request(*port, get("/")), "first, World!\n");

  tree_.write("greeter.toml", "greeting.text = 'second'\n");
  EXPECT_TRUE(eventually([&] { return request(*port, get("/")) == "second, World!\n"; }));

  replace("greeting.text = 'third'\ngreeting.name = 1\n");
  EXPECT_TRUE(process.wait_for("weir: configuration rejected: " + path() + ":2:"))
      << process.errors();
  EXPECT_TRUE(process.wait_for("greeting.name: unknown; did you mean names?")) << process.errors();
  EXPECT_EQ(request(*port, get("/")), "second, World!\n");

  replace("greeting.text = 'fourth'\n");
  EXPECT_TRUE(eventually([&] { return request(*port, get("/")) == "fourth, World!\n"; }));
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
}

TEST_F(ConfigExample, ReportsAllErrorsAndExitsWithStatus2) {
  tree_.write("greeter.toml", "body_max = 'much'\n");
  const Variable text("GREETER_GREETING_TEXTS", "x");
  Process process = Process::example("config", arguments({"--runtime.core=x"}));
  EXPECT_EQ(process.wait_for_exit(), 2);
  EXPECT_EQ(process.output(), "");
  const std::string errors = process.errors();
  EXPECT_TRUE(errors.starts_with(
      path() +
      ":1:12: body_max: expected a size such as 64KiB, 1.5MiB or 1000, found the string \"much\"\n"
      "environment GREETER_GREETING_TEXTS: unknown; did you mean GREETER_GREETING_TEXT?\n"
      "argument --runtime.core: unknown; did you mean --runtime.cores?\n"))
      << errors;
  EXPECT_TRUE(errors.ends_with("(--help shows the keys)\n")) << errors;
}

TEST_F(ConfigExample, ExplainsItsKeys) {
  Process process = Process::example("config", {"--help"});
  EXPECT_EQ(process.wait_for_exit(), 0);
  EXPECT_EQ(process.errors(), "");
  const std::string help = process.output();
  EXPECT_TRUE(help.contains("--listen ADDRESS ")) << help;
  EXPECT_TRUE(help.contains("address to listen on; an address")) << help;
  EXPECT_TRUE(help.contains("--runtime.backend auto|uring|uring:6.1|epoll|poll")) << help;
  EXPECT_TRUE(help.contains("GREETER_CONFIG")) << help;
}

TEST_F(ConfigExample, ReplacesAServiceWhenItsSettingsChange) {
  tree_.write("greeter.toml", "");
  Process process = Process::example("services_config", arguments({}));
  const auto port = process.wait_for_port();
  ASSERT_TRUE(port.has_value()) << process.errors();
  const auto becomes = [&](std::string_view path, std::string_view price) {
    std::string now;
    while (now != price) {
      now = request(*port, get(path));
      if (now.empty() || now.size() > 4) return now;  // no price
    }
    return now;
  };
  EXPECT_EQ(request(*port, get("/coffee")), "3");
  replace("[prices]\ncoffee = 4\n");
  EXPECT_EQ(becomes("/coffee", "4"), "4");
  replace("[prices]\ncoffee = 400\ntea = 9\n");
  EXPECT_TRUE(process.wait_for("could not start")) << process.errors();
  EXPECT_EQ(request(*port, get("/coffee")), "4");
  EXPECT_EQ(request(*port, get("/tea")), "2");
  replace("[prices]\ntea = 9\n");
  EXPECT_EQ(becomes("/tea", "9"), "9");
  EXPECT_EQ(request(*port, get("/coffee")), "3");
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
}

TEST_F(ConfigExample, SetsHttp2OnPlainConnections) {
  using namespace std::string_view_literals;
  constexpr auto preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"sv;
  for (const auto* value : {"off", "prior_knowledge", "only"}) {
    SCOPED_TRACE(value);
    tree_.write("greeter.toml", "http2_plain = '" + std::string(value) + "'\n");
    Process process = Process::example("services_config", arguments({}));
    const auto port = process.wait_for_port();
    ASSERT_TRUE(port.has_value()) << process.errors();
    Client client(*port);
    ASSERT_TRUE(client.send(preface));
    client.finish_sending();
    const std::string answer = client.read_to_end().value_or("");
    EXPECT_EQ(answer.starts_with("HTTP/1.1 "), std::string_view(value) == "off") << answer;
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
  }
  tree_.write("greeter.toml", "http2_plain = true\n");
  Process process = Process::example("services_config", arguments({}));
  EXPECT_EQ(process.wait_for_exit(), 2);
  EXPECT_TRUE(process.errors().contains("prior_knowledge")) << process.errors();
}

}  // namespace
}  // namespace weir::tests::config_examples_test
