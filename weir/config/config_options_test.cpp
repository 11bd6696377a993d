// Tests of options, variables, the page of --help and the end of a program.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/config/config.hpp"
#include "weir/config/test/config_fixture.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::config::test {

struct Renamed {
  std::string content_type = "text";
  bool class_ = false;
};

}  // namespace weir::config::test

template <>
inline constexpr std::array weir::json::renames<weir::config::test::Renamed>{
    weir::json::Rename{"content_type", "content-type"}};
template <>
inline constexpr std::array weir::config::field_help<weir::config::test::Renamed>{
    weir::config::FieldHelp{"content_type", "of the body"},
    weir::config::FieldHelp{"class_", "first or not"}};

namespace weir::config::test::config_options_test {
namespace {

template <class T>
struct One {
  T value{};
};

struct Inner {
  int x = 0;
};
/// Each name begins with the name before.
struct Nested {
  int port = 0;
  int port_max = 0;
  Inner ports;
};

TEST(ConfigOptions, NameThatBeginsWithAnotherNameIsFound) {
  const auto read = settings<Nested>({"", {"APP_PORTS_X=3"}, {"--port_max=2", "--port=1"}});
  EXPECT_EQ(read.port, 1);
  EXPECT_EQ(read.port_max, 2);
  EXPECT_EQ(read.ports.x, 3);
  EXPECT_EQ(settings<Nested>({"", {}, {"--ports.x", "4"}}).ports.x, 4);
}

TEST(ConfigOptions, HaveTheirPathTypeAndHelp) {
  const SectionType& section = detail::root_type<Server>();
  const std::vector<Option> all = options_of(section);
  std::vector<std::string> keys;
  for (const Option& each : all) keys.push_back(each.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"listen", "idle_timeout", "limits.body_max",
                                            "limits.connections_max", "limits.patience",
                                            "certificate.file", "certificate.days"}));
  EXPECT_EQ(all[0].help, "where to wait for connections");
  EXPECT_EQ(all[1].help, "");
  const auto found = find_option(section, "listen");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->help, "where to wait for connections");
  EXPECT_EQ(found->type, all[0].type);
  EXPECT_EQ(find_option(section, "limits.body_max")->path,
            (std::vector<std::string>{"limits", "body_max"}));
  for (const char* const key : {"", "limits", "limits.", "limits.x", "listenx", "listen.x", "x"}) {
    EXPECT_FALSE(find_option(section, key)) << key;
  }
}

TEST(ConfigOptions, VariableHasOnlyUpperCaseLettersDigitsAndUnderscores) {
  Option option;
  option.path = {"azAZ09", "x-y.z", "a`b{c@d[e/f:g"};
  EXPECT_EQ(option.variable("pre"), "PRE_AZAZ09_X_Y_Z_A_B_C_D_E_F_G");
}

TEST(ConfigOptions, KeyOfAMapOfStructsNeedsAField) {
  using Servers = One<std::map<std::string, Server>>;
  for (const char* const option :
       {"--value.a=1", "--value.listen=:5", "--value.a.=1", "--value=x", "--value.a.x=1"}) {
    EXPECT_NE(errors_of<Servers>({"", {}, {option}}), "") << option;
  }
  EXPECT_EQ(settings<Servers>({"", {}, {"--value.listen.listen=:5"}}).value.at("listen").listen,
            Endpoint::any(5));
}

TEST(ConfigOptions, WrongListIsReportedOnce) {
  const std::string first = errors_of({"", {}, {"--tags=['a'", "--tags=b"}});
  EXPECT_TRUE(first.starts_with("argument --tags: expected an array, each element a string; "))
      << first;
  EXPECT_EQ(first.find('\n'), std::string::npos) << first;
  EXPECT_EQ(errors_of({"", {}, {"--tags=a", "--tags=['b'"}}),
            "argument --tags: expected an array, each element a string, found \"['b'\"");
}

TEST(ConfigOptions, AListOfAddressesMayBeginWithABracket) {
  using Addresses = One<std::vector<Endpoint>>;
  const auto listed = [](const std::vector<std::string>& arguments) {
    std::string text;
    for (const Endpoint& each : settings<Addresses>({"", {}, arguments}).value) {
      text += each.to_string() + " ";
    }
    return text;
  };
  EXPECT_EQ(listed({"--value", "[::]:80"}), "[::]:80 ");
  EXPECT_EQ(listed({"--value", "[::]:80,[::1]:81,127.0.0.1:82"}), "[::]:80 [::1]:81 127.0.0.1:82 ");
  EXPECT_EQ(listed({"--value=:79", "--value=[::1]:81,:82"}), "[::]:79 [::1]:81 [::]:82 ");
  EXPECT_EQ(listed({"--value", "['[::]:80', \"[::1]:81\"]"}), "[::]:80 [::1]:81 ");
  EXPECT_EQ(listed({"--value=[]"}), "");
  EXPECT_EQ(settings<Addresses>({"", {"APP_VALUE=[fe80::1]:80"}}).value.size(), 1U);
  // All other texts with a bracket in front are TOML, and a mistake in them is an error.
  using Texts = One<std::vector<std::string>>;
  for (const std::string text : {"['a', 'b'", "[a:b", "['a:b']:c", "[a b:]:c", "[ab]:c", "[a:b]"}) {
    EXPECT_TRUE(errors_of<Texts>({"", {}, {"--value", text}}).contains("; invalid TOML: ")) << text;
  }
}

TEST(ConfigOptions, ArgumentsThatAreNoOptionsAreReported) {
  EXPECT_EQ(errors_of({"", {}, {"--", "x"}}),
            "argument \"--\": expected an option that begins with --\n"
            "argument \"x\": expected an option that begins with --");
  EXPECT_EQ(errors_of({"", {}, {"--confg=x"}}),
            "argument --confg: unknown; did you mean --config?");
  EXPECT_EQ(errors_of({"", {}, {"--hlep"}}), "argument --hlep: unknown; did you mean --help?");
  EXPECT_EQ(errors_of({"", {}, {"--config"}}), "argument --config: expected a path");
}

TEST(ConfigOptions, OptionalValuesBehaveAsTheirType) {
  EXPECT_EQ(settings<One<std::optional<bool>>>({"", {}, {"--value"}}).value, true);
  EXPECT_EQ(settings<One<std::optional<bool>>>({}).value, std::nullopt);
  EXPECT_EQ(
      settings<One<std::optional<std::vector<int>>>>({"", {}, {"--value=1", "--value=2"}}).value,
      (std::vector<int>{1, 2}));
  EXPECT_EQ(errors_of<One<std::optional<int>>>({"", {}, {"--value=1", "--value=2"}}),
            "argument --value: given twice");
}

TEST(ConfigOptions, EnvironmentIsNotReadWithoutAPrefix) {
  Sources sources;
  sources.environment = {"_NAME=x", "NAME=x", "_CONFIG=/none", "_UNKNOWN=1"};
  const auto loaded = load<Settings>(FileText(), sources);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message();
  EXPECT_EQ(loaded->name, "weir");
  EXPECT_EQ(choose_file(sources).path, "");
  EXPECT_FALSE(choose_file(sources).required);
}

TEST(ConfigOptions, VariablesHaveUpperCaseLettersForEveryPrefix) {
  Sources sources;
  sources.prefix = "my-app";
  sources.environment = {"MY_APP_NAME=x", "my-app_NAME=y", "MY_APP_CONFIG=/tmp/b.toml"};
  const auto loaded = load<Settings>(FileText(), sources);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message();
  EXPECT_EQ(loaded->name, "x");
  EXPECT_EQ(choose_file(sources).path, "/tmp/b.toml");
  const std::string text = help<Settings>(sources);
  EXPECT_TRUE(text.contains("also MY_APP_CONFIG ")) << text;
  EXPECT_TRUE(text.contains(" (MY_APP_SECTION_KEY)")) << text;
}

// A name that is not plain is quoted, and so is every value.
TEST(ConfigOptions, InputIsPrintedSafely) {
  EXPECT_EQ(errors_of({"",
                       {"APP_\x1b[31m=1", "APP_SEED=\x1b"},
                       {"--\x1b[31m=x", "\x1b[31m", "--colors.\x1b=x", "--colors.\x1b=x"}}),
            "environment \"APP_\\u001b[31m\": unknown\n"
            "environment APP_SEED: seed: expected an integer from 0 to 18446744073709551615, found "
            "\"\\u001b\"\n"
            "argument --\"\\u001b[31m\": unknown\n"
            "argument \"\\u001b[31m\": expected an option that begins with --\n"
            "argument --\"colors.\\u001b\": given twice\n"
            "argument --\"colors.\\u001b\": colors.\"\\u001b\": expected \"red\" or \"green\", "
            "found \"x\"");
  const std::string large(500, 'k');
  EXPECT_LT(errors_of({"", {"APP_" + large + "=1"}, {"--" + large + "=1", large}}).size(), 400U);
}

TEST(ConfigOptions, EntriesThatAreNoVariablesAreIgnored) {
  EXPECT_EQ(errors_of({"", {"APP_NAME", "APP_UNKNOWN", "APPX_NAME=1", "", "=", "APP"}}), "");
  EXPECT_EQ(settings({"", {"APP_NAME=a=b"}}).name, "a=b");
}

// The longest option in the left column has 38 characters. Longer ones have their own line.
struct Wide {
  std::string a23456789_123456789_123456789_1;
  std::string b23456789_123456789_123456789_12;
};

TEST(ConfigHelp, LongOptionHasItsOwnLine) {
  EXPECT_EQ(help<Wide>(Sources()),
            "usage: PROGRAM [--KEY VALUE | --KEY=VALUE]...\n"
            "\n"
            "  --a23456789_123456789_123456789_1 TEXT  a string (default: \"\")\n"
            "  --b23456789_123456789_123456789_12 TEXT\n" +
                std::string(42, ' ') +
                "a string (default: \"\")\n"
                "  --config FILE" +
                std::string(27, ' ') +
                "a TOML file with these keys (default: none)\n"
                "  --help" +
                std::string(34, ' ') +
                "shows this help\n"
                "\n"
                "The command line overrides the environment, which overrides the file.\n");
}

// A rename gives a field another key. FieldHelp names the member of the struct.
TEST(ConfigHelp, FieldIsListedByItsNameInTheConfiguration) {
  const std::string text = help<Renamed>(Sources());
  EXPECT_TRUE(text.contains("  --content-type TEXT  of the body; a string (default: \"text\")\n"))
      << text;
  EXPECT_TRUE(text.contains("  --class true|false   first or not; true or false (default: false)"))
      << text;
  const auto read = settings<Renamed>({"", {"APP_CONTENT_TYPE=x"}, {"--class"}});
  EXPECT_EQ(read.content_type, "x");
  EXPECT_TRUE(read.class_);
  EXPECT_NE(errors_of<Renamed>({"content_type = 'x'"}), "");
}

TEST(ConfigHelp, ListIsGivenAsItsPlaceholderSays) {
  EXPECT_TRUE(help<One<std::vector<Endpoint>>>(Sources()).contains("  --value ADDRESS,...  "));
  const std::string tables = help<One<std::vector<Inner>>>(Sources());
  EXPECT_TRUE(tables.contains("  --value [TABLE, ...]  ")) << tables;
  EXPECT_EQ(settings<One<std::vector<Inner>>>({"", {}, {"--value", "[{x = 1}]"}}).value.at(0).x, 1);
  EXPECT_TRUE(help<One<std::vector<std::vector<int>>>>(Sources()).contains(
      "  --value [INTEGER,..., ...]  "));
}

TEST(ConfigHelp, MapOfStructsIsGivenAsATable) {
  const std::string text = help<One<std::map<std::string, Inner>>>(Sources());
  EXPECT_TRUE(text.contains("  --value {NAME = TABLE, ...}  ")) << text;
  EXPECT_TRUE(text.contains("(default: {})")) << text;
}

class ConfigExitDeathTest : public testing::Test {
 protected:
  static void load(std::vector<std::string> arguments) {
    MemoryPlatform platform;
    Sources sources = sources_of({"", {}, std::move(arguments)});
    sources.file.clear();
    const auto loaded = load_or_exit<Settings>(platform.files(), sources);
    std::exit(loaded.name == "fine" ? 7 : 8);
  }
  /// Does the same with the standard output as the standard error, which a death test reads.
  static void load_and_show_output(std::vector<std::string> arguments) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::close(STDERR_FILENO);
    load(std::move(arguments));
  }
};

TEST_F(ConfigExitDeathTest, HelpAndErrorsEndTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(load({"--name=fine"}), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(load({"--help"}), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(load({"--seed=x", "--help"}), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(load_and_show_output({"--help"}), testing::ExitedWithCode(0), "usage: test ");
  EXPECT_EXIT(load({"--seed=x"}), testing::ExitedWithCode(2),
              "argument --seed: expected an integer from 0 to 18446744073709551615, found \"x\"\n"
              "test: the configuration cannot be used .--help shows the keys.\n");
}

class ConfigFile : public testing::Test {
 protected:
  void put(std::string_view text) {
    const auto file = platform_.files().open("/tmp/a.toml", {.mode = os::FileMode::truncate});
    for (std::size_t done = 0; done < text.size();) {
      done += platform_.files().write_at(file->value(), to_bytes(text.substr(done)), done).value();
    }
  }
  /// Returns the errors of loading; an empty text if there are none.
  std::string load(const Sources& sources) {
    const auto loaded = config::load<Settings>(platform_.files(), sources);
    return loaded ? std::string() : loaded.error().message();
  }
  static Sources sources() {
    Sources sources = sources_of({});
    sources.file = "/tmp/a.toml";
    return sources;
  }
  MemoryPlatform platform_;
};

TEST_F(ConfigFile, MayHaveTheMaximumSize) {
  const std::string limit_reached = "/tmp/a.toml: cannot be read: limit reached";
  put(std::string(std::size_t{1} << 20, '#'));
  EXPECT_EQ(load(sources()), "");
  put(std::string((std::size_t{1} << 20) + 1, '#'));
  EXPECT_EQ(load(sources()), limit_reached);
  put("#####");
  Sources small = sources();
  small.file_bytes_max = 5;
  EXPECT_EQ(load(small), "");
  small.file_bytes_max = 4;
  EXPECT_EQ(load(small), limit_reached);
}

TEST_F(ConfigFile, UnreadableFileIsAnError) {
  put("name = 'x'");
  ASSERT_TRUE(platform_.files().set_permissions("/tmp/a.toml", 0));
  EXPECT_EQ(load(sources()), "/tmp/a.toml: cannot be read: Permission denied");
  Sources unnamed = sources();
  unnamed.arguments = {"--config="};
  EXPECT_EQ(load(unnamed), "the file: cannot be read: No such file or directory");
  unnamed.arguments.clear();
  unnamed.file.clear();
  EXPECT_EQ(load(unnamed), "");
}

TEST(ConfigSources, TheFileIsFoundAmongOtherOptions) {
  const auto chosen = [](std::vector<std::string> arguments) {
    Sources sources = sources_of({"", {"APP_NAME=x", "APP_CONFIG=variable"}});
    sources.arguments = std::move(arguments);
    const FileChoice choice = choose_file(sources);
    EXPECT_TRUE(choice.required);
    return choice.path;
  };
  EXPECT_EQ(chosen({"--name", "a", "--config", "f", "--seed", "1"}), "f");
  EXPECT_EQ(chosen({"--name", "a", "--config=f", "--seed", "1"}), "f");
  EXPECT_EQ(chosen({"--config", "f", "--config=g"}), "f") << "the first";
  EXPECT_EQ(chosen({"--name", "a", "--seed", "1"}), "variable");
  EXPECT_EQ(chosen({"--name", "--configure", "--seed", "1"}), "variable");
  EXPECT_EQ(chosen({"--seed", "1", "--config"}), "variable") << "it has no value";
  Sources plain = sources_of({"", {"APP_NAME=x"}, {"--name", "a", "--seed", "1"}});
  EXPECT_EQ(choose_file(plain).path, "a.toml");
  EXPECT_FALSE(choose_file(plain).required);
}

TEST(ConfigSources, OnlyTheWholeArgumentRequestsHelp) {
  Sources sources;
  sources.arguments = {"help", "-help", "--helper", "--help=", "--name=--help"};
  EXPECT_FALSE(is_help_requested(sources));
  sources.arguments.emplace_back("--help");
  EXPECT_TRUE(is_help_requested(sources));
}

TEST(ConfigSources, FromMainAcceptsAnEmptyList) {
  char* const none[] = {nullptr};
  const Sources sources = Sources::from_main(none, none);
  EXPECT_EQ(sources.program, "");
  EXPECT_TRUE(sources.arguments.empty() && sources.environment.empty());
  EXPECT_EQ(sources.file_bytes_max, std::size_t{1} << 20);
}

}  // namespace
}  // namespace weir::config::test::config_options_test
