// Tests the text and JSON formats of log records.
#include "weir/log/sink.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weir/testing/memory/memory_platform.hpp"

namespace weir::sink_test {
namespace {

LogRecord example() {
  LogRecord record;
  record.time = WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 22) + 5h + 51min +
                         12s + 123456789ns);
  record.level = LogLevel::info;
  record.core = 3;
  record.logger = "http.server";
  record.message = "request done";
  record.fields.emplace_back("path", std::string_view("/x"));
  record.fields.emplace_back("status", std::int64_t{200});
  return record;
}

std::string line(const LogRecord& record, LogFormat format = LogFormat::text) {
  std::string text;
  append_line(text, record, format);
  return text;
}

TEST(LogText, WritesOneReadableLine) {
  EXPECT_EQ(line(example()),
            "2026-11-22T05:51:12.123456Z info [3] http.server: request done path=/x status=200");
  LogRecord outside = example();
  outside.core = LogRecord::no_core;
  outside.level = LogLevel::error;
  outside.fields.clear();
  EXPECT_EQ(line(outside), "2026-11-22T05:51:12.123456Z error [-] http.server: request done");
}

TEST(LogText, QuotesValuesThatAreNotPlainWords) {
  LogRecord record = example();
  record.fields.clear();
  for (const char* const text :
       {"", "a b", "a=b", "a\"b", "a\\b", "a\nb", "\x1b[0m", "\xC3\xA4", "a~b!"}) {
    record.fields.emplace_back("k", std::string_view(text));
  }
  record.fields.emplace_back("k", std::string_view("\xff"));
  record.fields.emplace_back("a key", true);
  record.fields.emplace_back("k", 0.5);
  record.fields.emplace_back("k", std::uint64_t{18446744073709551615U});
  std::string text;
  append_message(text, record);
  EXPECT_EQ(text,
            "request done k=\"\" k=\"a b\" k=\"a=b\" k=\"a\\\"b\" k=\"a\\\\b\" k=\"a\\nb\" "
            "k=\"\\u001b[0m\" k=\"\xC3\xA4\" k=a~b! k=\"\xEF\xBF\xBD\" \"a key\"=true k=0.5 "
            "k=18446744073709551615");
}

TEST(LogText, AMessageStaysOnItsLine) {
  LogRecord record = example();
  record.message = "one\ntwo \x1b";
  record.logger = "a\nb";
  record.fields.clear();
  EXPECT_TRUE(line(record).ends_with(" a\\nb: one\\ntwo \\u001b")) << line(record);
}

// DEL and U+0080 to U+009F control terminals too: U+0085 begins a line, U+009B begins a command.
TEST(LogText, NoTextControlsATerminal) {
  LogRecord record = example();
  record.logger = "a\x7f";
  record.message =
      "\xC2\x80 \xC2\x85 \xC2\x9B"
      "2J \xC2\x9F \xC2\xA0";
  record.fields.clear();
  record.fields.emplace_back("\xC2\x9D", std::string_view("a\x7f"));
  EXPECT_TRUE(
      line(record).ends_with("] a\\u007f: \\u0080 \\u0085 \\u009b2J \\u009f \xC2\xA0 "
                             "\"\\u009d\"=\"a\\u007f\""))
      << line(record);
  const std::string json = line(record, LogFormat::json);
  for (const char* const text : {"\x7f", "\xC2\x80", "\xC2\x85", "\xC2\x9B", "\xC2\x9D"}) {
    EXPECT_EQ(json.find(text), std::string::npos) << json;
  }
  const auto object = nlohmann::json::parse(json);
  EXPECT_EQ(object.at("logger"), record.logger);
  EXPECT_EQ(object.at("message"), record.message);
  EXPECT_EQ(object.at("\xC2\x9D"), "a\x7f");
}

TEST(LogText, MarksATruncatedRecord) {
  LogRecord record = example();
  record.truncated = true;
  EXPECT_TRUE(line(record).ends_with(" status=200 truncated=true"));
  EXPECT_TRUE(nlohmann::json::parse(line(record, LogFormat::json)).at("truncated").get<bool>());
}

TEST(LogText, WritesJson) {
  EXPECT_EQ(line(example(), LogFormat::json),
            "{\"time\":\"2026-11-22T05:51:12.123456Z\",\"level\":\"info\",\"logger\":"
            "\"http.server\",\"core\":3,\"message\":\"request done\",\"path\":\"/x\","
            "\"status\":200}");
}

TEST(LogText, JsonFieldNamesAreUnique) {
  LogRecord record = example();
  record.core = LogRecord::no_core;
  record.message = "\"\n\xff";
  record.fields.clear();
  for (const char* const key :
       {"time", "level", "logger", "core", "message", "truncated", "\"\n"}) {
    record.fields.emplace_back(key, std::string_view("mine"));
  }
  const auto object = nlohmann::json::parse(line(record, LogFormat::json));
  for (const char* const key :
       {"time_", "level_", "logger_", "core_", "message_", "truncated_", "\"\n"}) {
    EXPECT_EQ(object.at(key), "mine") << key;
  }
  EXPECT_EQ(object.at("level"), "info");
  EXPECT_FALSE(object.contains("core"));
}

TEST(LogText, JsonFieldNamesOfTheUserAreUniqueToo) {
  LogRecord record = example();
  record.fields.clear();
  std::int64_t number = 0;
  for (const char* const key : {"user", "time_", "user", "time", "user_", "User", "user", ""}) {
    record.fields.emplace_back(key, ++number);
  }
  EXPECT_TRUE(line(record, LogFormat::json)
                  .ends_with(R"("message":"request done","user":1,"time_":2,"user_":3,"time__":4,)"
                             R"("user__":5,"User":6,"user___":7,"":8})"))
      << line(record, LogFormat::json);
  EXPECT_TRUE(line(record).ends_with(R"( user=1 time_=2 user=3 time=4 user_=5 User=6 user=7 ""=8)"))
      << line(record);
}

TEST(LogText, WritesTimesBeforeTheEpoch) {
  std::string text;
  append_time(text, WallTime(Duration(-1)));
  EXPECT_EQ(text, "1969-12-31T23:59:59.999999Z");
}

TEST(LogText, PadsEveryPartOfATime) {
  std::string text;
  append_time(text, WallTime(std::chrono::sys_days(std::chrono::year(1987) / 2 / 3) + 4h + 5min +
                             6s + 7008ns));
  EXPECT_EQ(text, "1987-02-03T04:05:06.000007Z");
}

TEST(LogText, ThePlatformsLogReceivesALineForEachRecord) {
  MemoryPlatform platform;
  const auto text = platform_log_sink(platform);
  const auto json = platform_log_sink(platform, LogFormat::json);
  LogRecord second = example();
  second.level = LogLevel::warning;
  second.fields.clear();
  for (const auto& record : {example(), second}) {
    text->write(record);
    json->write(record);
  }
  EXPECT_EQ(platform.logged(),
            (std::vector<std::string>{line(example()), line(example(), LogFormat::json),
                                      line(second), line(second, LogFormat::json)}));
}

}  // namespace
}  // namespace weir::sink_test
