// Tests the sink that passes records to spdlog.
#include "weir/log/spdlog_sink.hpp"

#include <gtest/gtest.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "weir/log/log_service.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::spdlog_sink_test {
namespace {

TEST(LogSpdlog, SinksReceiveTimeLevelLoggerAndText) {
  std::ostringstream out;
  const auto inner = std::make_shared<spdlog::sinks::ostream_sink_mt>(out);
  inner->set_pattern("%E.%e %l %n: %v");
  inner->set_level(spdlog::level::info);
  MemoryPlatform platform;
  platform.set_wall_time(WallTime(1'000'000'000s + 250ms));
  {
    std::vector<std::unique_ptr<LogSink>> sinks;
    sinks.push_back(spdlog_sink(inner));
    LogOptions options;
    options.level = LogLevel::trace;
    LogService logs(platform, options, std::move(sinks));
    const Logger log = logs.logger("http.server");
    log.trace("not for this sink");
    log.info("request done", field("path", "/a b"), field("status", 200));
    log.warning("two");
    log.error("{} is no format here");
  }
  EXPECT_EQ(out.str(),
            "1000000000.250 info http.server: request done path=\"/a b\" status=200\n"
            "1000000000.250 warning http.server: two\n"
            "1000000000.250 error http.server: {} is no format here\n");
}

TEST(LogSpdlog, TheTextMayBeJson) {
  std::ostringstream out;
  const auto inner = std::make_shared<spdlog::sinks::ostream_sink_mt>(out);
  inner->set_pattern("%v");
  MemoryPlatform platform;
  std::vector<std::unique_ptr<LogSink>> sinks;
  sinks.push_back(spdlog_sink(inner, LogFormat::json));
  LogService logs(platform, LogOptions(), std::move(sinks));
  logs.logger("a").info("one", field("k", 1));
  logs.flush();
  const auto object = nlohmann::json::parse(out.str());
  EXPECT_EQ(object.at("message"), "one");
  EXPECT_EQ(object.at("k"), 1);
}

/// A sink of spdlog that counts the calls of flush().
class FlushCounter : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  int flushes = 0;

 protected:
  void sink_it_(const spdlog::details::log_msg&) override {}
  void flush_() override { ++flushes; }
};

TEST(LogSpdlog, FlushesTheSink) {
  const auto inner = std::make_shared<FlushCounter>();
  const auto sink = spdlog_sink(inner);
  sink->write(LogRecord());
  EXPECT_EQ(inner->flushes, 0);
  sink->flush();
  EXPECT_EQ(inner->flushes, 1);
}

TEST(LogSpdlog, LevelsKeepTheirMeaning) {
  std::ostringstream out;
  const auto inner = std::make_shared<spdlog::sinks::ostream_sink_mt>(out);
  inner->set_pattern("%l");
  inner->set_level(spdlog::level::trace);
  const auto sink = spdlog_sink(inner);
  for (const LogLevel level :
       {LogLevel::trace, LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error}) {
    LogRecord record;
    record.level = level;
    sink->write(record);
  }
  EXPECT_EQ(out.str(), "trace\ndebug\ninfo\nwarning\nerror\n");
  out.str("");
  inner->set_level(spdlog::level::debug);
  LogRecord record;
  record.level = LogLevel::trace;
  sink->write(record);
  record.level = LogLevel::debug;
  sink->write(record);
  EXPECT_EQ(out.str(), "debug\n") << "the level of the sink applies";
}

}  // namespace
}  // namespace weir::spdlog_sink_test
