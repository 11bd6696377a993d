// Tests how a configuration is loaded from a file, the environment and arguments.
#include "weir/config/config.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "weir/config/test/config_fixture.hpp"
#include "weir/runtime/options.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::config::test::config_test {
namespace {

/// A struct with one field of the type T.
template <class T>
struct One {
  T value{};
};

TEST(Config, KeepsInitialisersOfUnmentionedFields) {
  const Settings kept = settings({});
  EXPECT_EQ(kept.name, "weir");
  EXPECT_EQ(kept.seed, 7u);
  EXPECT_EQ(kept.tags, std::vector<std::string>{"first"});
  EXPECT_EQ(kept.server.listen, Endpoint::any(8080));
  EXPECT_EQ(kept.server.limits.body_max, 64_KiB);
  EXPECT_FALSE(kept.level || kept.server.certificate);
}

TEST(Config, ReadsEveryTypeFromAFile) {
  const Settings read = settings({R"(
name = "a \"name\"\n"
verbose = true
offset = -128
seed = 9223372036854775807
ratio = 1.25
color = "green"
level = 0x10
tags = []

[server]
listen = "[::1]:80"
idle_timeout = "1h30min"
limits = { body_max = "1.5MiB", connections_max = 65535, patience = "5s" }

[server.certificate]
days = 30

[[peers]]
name = "one"
address = "127.0.0.1:1"
[[peers]]
name = "two"
address = "unix:/run/two.sock"

[colors]
sea = "green"
"a.b" = "red"
)"});
  EXPECT_EQ(read.name, "a \"name\"\n");
  EXPECT_TRUE(read.verbose);
  EXPECT_EQ(read.offset, -128);
  EXPECT_EQ(read.seed, 9223372036854775807u);
  EXPECT_EQ(read.ratio, 1.25);
  EXPECT_EQ(read.color, Color::green);
  EXPECT_EQ(read.level, 16);
  EXPECT_TRUE(read.tags.empty());
  EXPECT_EQ(read.server.listen, Endpoint::parse("[::1]:80").value());
  EXPECT_EQ(read.server.idle_timeout, 90min);
  EXPECT_EQ(read.server.limits.body_max, ByteSize(1'572'864));
  EXPECT_EQ(read.server.limits.connections_max, 65535);
  EXPECT_EQ(read.server.limits.patience, 5s);
  ASSERT_TRUE(read.server.certificate.has_value());
  EXPECT_EQ(read.server.certificate->file, "none.pem");
  EXPECT_EQ(read.server.certificate->days, 30);
  ASSERT_EQ(read.peers.size(), 2u);
  EXPECT_EQ(read.peers[1].name, "two");
  EXPECT_EQ(read.peers[1].address.to_string(), "unix:/run/two.sock");
  EXPECT_EQ(read.colors, (std::map<std::string, Color>{
                             {"sky", Color::green}, {"sea", Color::green}, {"a.b", Color::red}}));
}

TEST(Config, ALaterSourceOverridesAnEarlierOne) {
  const TestInput all{"name = 'file'\nseed = 1\nratio = 1\n[server]\nidle_timeout = '1s'",
                      {"APP_SEED=2", "APP_RATIO=2", "OTHER=x", "APP_SERVER_IDLE_TIMEOUT=2s"},
                      {"--ratio", "3", "--server.idle_timeout=3s"}};
  const Settings read = settings(all);
  EXPECT_EQ(read.name, "file");
  EXPECT_EQ(read.seed, 2u);
  EXPECT_EQ(read.ratio, 3.0);
  EXPECT_EQ(read.server.idle_timeout, 3s);
}

/// A struct with a field that is no text, and whose name is that of a secret.
struct Pin {
  int pin = 0;
};

TEST(Config, ErrorsShowNoSecret) {
  for (const TestInput& input :
       {TestInput{"pin = \"hunter2\"", {}, {}}, TestInput{"", {"APP_PIN=hunter2"}, {}},
        TestInput{"", {}, {"--pin=hunter2"}}}) {
    const std::string errors = errors_of<Pin>(input);
    EXPECT_TRUE(errors.contains("found (hidden)")) << errors;
    EXPECT_FALSE(errors.contains("hunter2")) << errors;
  }
}

TEST(Config, IntegersAreReadInTheirExactRange) {
  const auto bare = [](auto type, const std::string& text) {
    return errors_of<One<decltype(type)>>({"", {}, {"--value=" + text}});
  };
  EXPECT_EQ(bare(std::int8_t(), "-128") + bare(std::int8_t(), "127"), "");
  EXPECT_EQ(bare(std::int8_t(), "128"),
            "argument --value: expected an integer from -128 to 127, found \"128\"");
  EXPECT_NE(bare(std::int8_t(), "-129"), "");
  EXPECT_EQ(bare(std::uint8_t(), "255") + bare(std::uint8_t(), "0"), "");
  EXPECT_NE(bare(std::uint8_t(), "256"), "");
  EXPECT_NE(bare(std::uint8_t(), "-1"), "");
  EXPECT_EQ(bare(std::int64_t(), "-9223372036854775808"), "");
  EXPECT_NE(bare(std::int64_t(), "9223372036854775808"), "");
  EXPECT_EQ(bare(std::uint64_t(), "18446744073709551615"), "");
  EXPECT_EQ(bare(std::uint64_t(), "18446744073709551616"),
            "argument --value: expected an integer from 0 to 18446744073709551615, found "
            "\"18446744073709551616\"");
  for (const char* const text :
       {"", " 1", "1 ", "+1", "1.0", "0x1", "1e3", "1_000", "one", "--1"}) {
    EXPECT_NE(bare(std::int32_t(), text), "") << text;
  }
  const auto file = [](auto type, std::string_view text) {
    const std::string line = "value = " + std::string(text);
    return errors_of<One<decltype(type)>>({line});
  };
  EXPECT_EQ(file(std::uint16_t(), "65535"), "");
  EXPECT_EQ(file(std::uint16_t(), "65536"),
            "a.toml:1:9: value: expected an integer from 0 to 65535, found 65536");
  EXPECT_NE(file(std::uint64_t(), "-1"), "");
  EXPECT_NE(file(std::int32_t(), "1.0"), "");
  EXPECT_NE(file(std::int32_t(), "'1'"), "");
}

TEST(Config, NumbersAreFiniteAndExact) {
  EXPECT_EQ(settings<One<double>>({"value = 1e3"}).value, 1000.0);
  EXPECT_EQ(settings<One<double>>({"value = 9007199254740992"}).value, 9007199254740992.0);
  EXPECT_EQ(settings<One<float>>({"", {"APP_VALUE=-2.5e-1"}}).value, -0.25f);
  for (const char* const text : {"nan", "inf", "-inf", "9007199254740993", "'1'"}) {
    const std::string line = "value = " + std::string(text);
    EXPECT_NE(errors_of<One<double>>({line}), "") << text;
  }
  for (const char* const text : {"nan", "inf", "1e999", "1,5", "", "0x1p3"}) {
    EXPECT_NE(errors_of<One<double>>({"", {"APP_VALUE=" + std::string(text)}}), "") << text;
  }
  EXPECT_EQ(errors_of<One<float>>({"value = 1e39"}),
            "a.toml:1:9: value: expected a number, found the number 1e+39");
}

TEST(Config, DurationsAreNeverRounded) {
  using Seconds = std::chrono::seconds;
  EXPECT_EQ(settings<One<Seconds>>({"value = '90min'"}).value, 90min);
  EXPECT_EQ(errors_of<One<Seconds>>({"value = '1500ms'"}),
            "a.toml:1:9: value: expected a duration such as 250ms, 5s or 1h30min, a multiple of "
            "1s, found the string \"1500ms\"");
  EXPECT_NE(errors_of<One<Seconds>>({"value = 5"}), "");
  using Short = std::chrono::duration<std::int8_t, std::ratio<60>>;
  EXPECT_EQ(settings<One<Short>>({"value = '127min'"}).value, Short(127));
  EXPECT_NE(errors_of<One<Short>>({"value = '128min'"}), "");
}

TEST(Config, SizesMayBeNumbersOfBytes) {
  EXPECT_EQ(settings<One<ByteSize>>({"value = 4096"}).value, 4_KiB);
  EXPECT_EQ(settings<One<ByteSize>>({"", {"APP_VALUE=4096"}}).value, 4_KiB);
  EXPECT_EQ(errors_of<One<ByteSize>>({"value = -1"}),
            "a.toml:1:9: value: expected a size such as 64KiB, 1.5MiB or 1000, found -1");
}

TEST(Config, ReportsAllErrorsTogether) {
  const TestInput wrong{
      "nmae = 'x'\nverbose = 1\ncolor = \"blue\"\nday = 2026-11-22\n"
      "[server]\nlisten = 'localhost:80'\nlimits = 3\n"
      "[[peers]]\nname = 'a'\n[[peers]]\nname = 5\n",
      {"APP_OFFSET=200", "APP_SERVER_LIMIT_BODY_MAX=1", "APPLE=1", "APP_=2"},
      {"--level", "x", "--servr.listen", ":80", "stray", "--name"}};
  EXPECT_EQ(
      errors_of(wrong),
      "a.toml:1:1: nmae: unknown; did you mean name?\n"
      "a.toml:2:11: verbose: expected true or false, found 1\n"
      "a.toml:3:9: color: expected \"red\" or \"green\", found the string \"blue\"\n"
      "a.toml:4:1: day: unknown\n"
      "a.toml:6:10: server.listen: expected an address such as 127.0.0.1:8080, [::1]:8080, :8080 "
      "or unix:/run/a.sock, found the string \"localhost:80\"\n"
      "a.toml:7:10: server.limits: expected a table, found 3\n"
      "a.toml:11:8: peers[1].name: expected a string, found 5\n"
      "environment APP_OFFSET: offset: expected an integer from -128 to 127, found \"200\"\n"
      "environment APP_SERVER_LIMIT_BODY_MAX: unknown; did you mean APP_SERVER_LIMITS_BODY_MAX?\n"
      "environment APP_: unknown\n"
      "argument --servr.listen: unknown; did you mean --server.listen?\n"
      "argument \"stray\": expected an option that begins with --\n"
      "argument --name: expected a string, found nothing\n"
      "argument --level: expected an integer from -2147483648 to 2147483647, found \"x\"");
}

TEST(Config, InvalidTomlIsReportedWithItsPositionAndOtherErrors) {
  const std::string told = errors_of({"name = 'x'\nseed = = 1\n", {"APP_SEED=x"}});
  EXPECT_TRUE(told.starts_with("a.toml:2:8: invalid TOML: ")) << told;
  EXPECT_TRUE(
      told.ends_with("\nenvironment APP_SEED: seed: expected an integer from 0 to "
                     "18446744073709551615, found \"x\""))
      << told;
  EXPECT_NE(errors_of({"name = 'x'\nname = 'y'\n"}), "");
  EXPECT_NE(errors_of({"name = '\xff'\n"}), "");
}

// toml++ asserts that a name starts here before it checks; config_fuzz found this.
TEST(Config, ATableHeaderWithoutANameIsAnError) {
  for (const char* const text : {"[.5g]\n", "[ . ]\n", "[[.a]]\n", "[=]\n", "[]\n", ".a = 1\n"}) {
    EXPECT_TRUE(errors_of({text}).starts_with("a.toml:1:")) << text;
  }
}

// toml++ also treats letters as impossible in a place where it expects white space.
TEST(Config, LettersNextToAValueAreAnError) {
  for (const char* const letter : {"\u0100", "\u0142", "\u01f2", "\u0436", "\u1681", "\u2030"}) {
    EXPECT_TRUE(
        errors_of({std::string("seed = 1\nseed =") + letter + "2\n"}).starts_with("a.toml:2:"));
    EXPECT_TRUE(errors_of({std::string("seed ") + letter + "= 2\n"}).starts_with("a.toml:1:"));
  }
}

TEST(Config, KeysFromAFileArePrintedSafely) {
  const std::string key(500, 'k');
  const std::string told = errors_of({"\"\\u001b[31m\" = 1\n" + key + " = 2"});
  EXPECT_TRUE(told.starts_with("a.toml:1:1: \"\\u001b[31m\": unknown\n")) << told;
  EXPECT_LT(told.size(), 300u);
}

TEST(Config, DeepTablesAreRejected) {
  std::string deep = "a";
  for (int level = 0; level < 100'000; ++level) deep += ".a";
  EXPECT_EQ(errors_of({"\n" + deep + " = 1"}), "a.toml:2:1: a line with more than 256 dots");
  EXPECT_EQ(errors_of({"name = '" + std::string(5000, '.') + "'"}), "");
  EXPECT_NE(errors_of({"a = " + std::string(100'000, '[')}), "");
}

TEST(Config, ListsOutsideOfFilesUseCommasOrToml) {
  using List = std::vector<std::string>;
  EXPECT_EQ(settings({"", {"APP_TAGS=a,b c,"}}).tags, (List{"a", "b c", ""}));
  EXPECT_EQ(settings({"", {"APP_TAGS="}}).tags, List());
  EXPECT_EQ(settings({"", {"APP_TAGS=[\"a,b\", 'c']"}}).tags, (List{"a,b", "c"}));
  EXPECT_EQ(settings({"tags = ['x']", {}, {"--tags", "a,b", "--tags=c"}}).tags,
            (List{"a", "b", "c"}));
  const Settings peers =
      settings({"", {"APP_PEERS=[{name = 'n', address = ':1'}]"}, {"--tags=[]"}});
  ASSERT_EQ(peers.peers.size(), 1u);
  EXPECT_EQ(peers.peers[0].address, Endpoint::any(1));
  EXPECT_EQ(settings<One<std::vector<int>>>({"", {"APP_VALUE=1,-2"}}).value,
            (std::vector<int>{1, -2}));
  EXPECT_EQ(errors_of<One<std::vector<int>>>({"", {"APP_VALUE=1,x"}}),
            "environment APP_VALUE: value[1]: expected an integer from -2147483648 to 2147483647, "
            "found \"x\"");
  EXPECT_NE(errors_of({"", {"APP_TAGS=['a'"}}), "");
  EXPECT_NE(errors_of({"", {"APP_TAGS=['a']\nseed = 1"}}), "");
  EXPECT_NE(errors_of({"tags = 'a'"}), "");
}

TEST(Config, MapsAcceptKeysOfTheUsersChoice) {
  using Colors = std::map<std::string, Color>;
  EXPECT_EQ(settings({"", {}, {"--colors.a.b", "red", "--colors.sky=red"}}).colors,
            (Colors{{"a.b", Color::red}, {"sky", Color::red}}));
  EXPECT_EQ(settings({"", {"APP_COLORS={x = 'green'}"}}).colors,
            (Colors{{"sky", Color::green}, {"x", Color::green}}));
  EXPECT_EQ(errors_of({"colors.sky = 'blue'"}),
            "a.toml:1:14: colors.sky: expected \"red\" or \"green\", found the string \"blue\"");
  EXPECT_NE(errors_of({"", {"APP_COLORS=x"}}), "");
  EXPECT_NE(errors_of({"", {}, {"--colors.", "red"}}), "");
  const auto servers = settings<One<std::map<std::string, Server>>>(
      {"", {}, {"--value.a.limits.body_max=1", "--value.b.listen=:5"}});
  EXPECT_EQ(servers.value.at("a").limits.body_max, 1_B);
  EXPECT_EQ(servers.value.at("b").listen, Endpoint::any(5));
}

TEST(Config, AStructInAMapKeepsTheFieldsThatASourceDoesNotMention) {
  const auto servers = settings<One<std::map<std::string, Server>>>(
      {"[value.a]\nidle_timeout = '2s'\nlisten = ':1'\n",
       {"APP_VALUE={a = {limits = {connections_max = 3}}}"},
       {"--value.a.listen=:5", "--value.a.limits.body_max=1"}});
  ASSERT_EQ(servers.value.size(), 1U);
  const Server& server = servers.value.at("a");
  EXPECT_EQ(server.idle_timeout, 2s);
  EXPECT_EQ(server.listen, Endpoint::any(5));
  EXPECT_EQ(server.limits.connections_max, 3);
  EXPECT_EQ(server.limits.body_max, 1_B);
}

TEST(Config, FlagsNeedNoValue) {
  EXPECT_TRUE(settings({"", {}, {"--verbose"}}).verbose);
  EXPECT_TRUE(settings({"", {}, {"--verbose", "--name", "x"}}).verbose);
  EXPECT_FALSE(settings({"verbose = true", {}, {"--verbose", "false"}}).verbose);
  EXPECT_FALSE(settings({"verbose = true", {}, {"--verbose=false"}}).verbose);
  EXPECT_EQ(errors_of({"", {}, {"--verbose", "1"}}),
            "argument --verbose: expected true or false, found \"1\"");
  EXPECT_NE(errors_of({"", {"APP_VERBOSE="}}), "");
}

TEST(Config, OptionsMayBeGivenOnlyOnce) {
  EXPECT_EQ(errors_of({"", {}, {"--name", "a", "--name=b"}}), "argument --name: given twice");
  EXPECT_EQ(settings({"", {}, {"--name=--x=y"}}).name, "--x=y");
  EXPECT_EQ(settings({"", {}, {"--name="}}).name, "");
  EXPECT_EQ(settings({"", {}, {"--offset", "-5"}}).offset, -5);
  for (const char* const option : {"--", "--=", "--server", "--server.", "--server.limits", "-n",
                                   "--.name", "--name.x", "--tags.x"}) {
    EXPECT_NE(errors_of({"", {}, {option, "x"}}), "") << option;
  }
}

TEST(Config, AnOptionalSectionExistsIfASourceMentionsIt) {
  EXPECT_EQ(settings({"", {"APP_SERVER_CERTIFICATE_DAYS=1"}}).server.certificate->days, 1);
  const auto both =
      settings({"server.certificate.file = 'f'", {}, {"--server.certificate.days=2"}});
  EXPECT_EQ(both.server.certificate->file, "f");
  EXPECT_EQ(both.server.certificate->days, 2);
}

struct ClashInside {
  int b_c = 0;
};
struct Clash {
  ClashInside a;
  int a_b_c = 0;
};

TEST(Config, FieldsWithTheSameVariableAreReported) {
  EXPECT_EQ(errors_of<Clash>({}),
            "environment APP_A_B_C: a_b_c: also the variable of a.b_c (rename one of the "
            "fields)");
}

TEST(Config, RuntimeOptionsAreASection) {
  const auto read = settings<One<RuntimeOptions>>(
      {"[value]\nbackend = 'uring:6.1'\ncores = 3\n[value.real_time]\npriority = 9",
       {},
       {"--value.pin=false"}});
  EXPECT_EQ(read.value.backend, BackendChoice::uring_6_1);
  EXPECT_EQ(read.value.cores, 3u);
  EXPECT_FALSE(read.value.pin);
  EXPECT_EQ(read.value.real_time->priority, 9);
  EXPECT_EQ(read.value.drain_timeout, 10s);
}

TEST(Config, HelpListsTheFieldsOfTheStruct) {
  EXPECT_EQ(help<Server>(sources_of({})),
            "usage: test [--KEY VALUE | --KEY=VALUE]...\n"
            "\n"
            "  --listen ADDRESS                  where to wait for connections; an address such as "
            "127.0.0.1:8080, [::1]:8080, :8080 or unix:/run/a.sock (default: \"[::]:8080\")\n"
            "  --idle_timeout DURATION           a duration such as 250ms, 5s or 1h30min (default: "
            "\"30s\")\n"
            "  --limits.body_max SIZE            a size such as 64KiB, 1.5MiB or 1000 (default: "
            "\"64KiB\")\n"
            "  --limits.connections_max INTEGER  an integer from 0 to 65535 (default: 1000)\n"
            "  --limits.patience DURATION        a duration such as 250ms, 5s or 1h30min, a "
            "multiple of 1ms (default: \"250ms\")\n"
            "  --certificate.file TEXT           a string (default: none)\n"
            "  --certificate.days INTEGER        an integer from -2147483648 to 2147483647 "
            "(default: none)\n"
            "  --config FILE                     a TOML file with these keys, also APP_CONFIG "
            "(default: a.toml)\n"
            "  --help                            shows this help\n"
            "\n"
            "The command line overrides the environment (APP_SECTION_KEY), which overrides the "
            "file.\n");
  const std::string all = help<Settings>(sources_of({}));
  EXPECT_TRUE(all.contains("--color red|green ")) << all;
  EXPECT_TRUE(all.contains("--level INTEGER ")) << all;
  EXPECT_TRUE(all.contains("--tags TEXT,... ")) << all;
  EXPECT_TRUE(all.contains("--colors.NAME red|green ")) << all;
  EXPECT_TRUE(all.contains("(default: {\"sky\" = \"green\"})")) << all;
}

class ConfigFiles : public testing::Test {
 protected:
  void put(const std::string& path, std::string_view text) {
    const auto file = platform_.files().open(path, {.mode = os::FileMode::truncate});
    ASSERT_TRUE(file) << file.error().message();
    for (std::size_t done = 0; done < text.size();) {
      done += platform_.files().write_at(file->value(), to_bytes(text.substr(done)), done).value();
    }
  }
  LoadResult<Settings> load_with(std::vector<std::string> arguments,
                                 std::vector<std::string> environment = {}) {
    Sources sources = sources_of({"", std::move(environment), std::move(arguments)});
    sources.file = "/tmp/a.toml";
    return load<Settings>(platform_.files(), sources);
  }
  MemoryPlatform platform_;
};

TEST_F(ConfigFiles, OnlyANamedFileMustExist) {
  EXPECT_EQ(load_with({})->name, "weir");
  const auto absent = load_with({"--config", "/tmp/b.toml", "--seed=x"});
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().message(),
            "/tmp/b.toml: cannot be read: No such file or directory\n"
            "argument --seed: expected an integer from 0 to 18446744073709551615, found \"x\"");
  EXPECT_FALSE(load_with({"--config="}).has_value());
  EXPECT_FALSE(load_with({"--config"}).has_value());
  EXPECT_FALSE(load_with({}, {"APP_CONFIG=/tmp/b.toml"}).has_value());
}

TEST_F(ConfigFiles, TheCommandLineOverridesTheFileName) {
  put("/tmp/a.toml", "name = 'a'");
  put("/tmp/b.toml", "name = 'b'");
  put("/tmp/c.toml", "name = 'c'");
  EXPECT_EQ(load_with({})->name, "a");
  EXPECT_EQ(load_with({}, {"APP_CONFIG=/tmp/b.toml"})->name, "b");
  EXPECT_EQ(load_with({"--config=/tmp/c.toml"}, {"APP_CONFIG=/tmp/b.toml"})->name, "c");
}

TEST_F(ConfigFiles, ATooLongFileIsNotRead) {
  put("/tmp/a.toml", "name = 'a'\n#" + std::string(1 << 20, 'x'));
  EXPECT_EQ(load_with({}).error().message(), "/tmp/a.toml: cannot be read: limit reached");
  EXPECT_EQ(platform_.open_descriptors(), 0u);
}

TEST(ConfigSources, FromMainTakesItsArguments) {
  std::string program = "prog";
  std::string option = "--help";
  std::string variable = "A=b";
  char* const arguments[] = {program.data(), option.data(), nullptr};
  char* const environment[] = {variable.data(), nullptr};
  const Sources sources = Sources::from_main(arguments, environment);
  EXPECT_EQ(sources.program, "prog");
  EXPECT_EQ(sources.arguments, std::vector<std::string>{"--help"});
  EXPECT_EQ(sources.environment, std::vector<std::string>{"A=b"});
  EXPECT_TRUE(is_help_requested(sources));
  EXPECT_FALSE(is_help_requested(Sources()));
  EXPECT_EQ(errors_of({"", {}, {"--help"}}), "");
}

}  // namespace
}  // namespace weir::config::test::config_test
