#include "weir/log/log_service.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/config/test/config_fixture.hpp"
#include "weir/log/test/log_fixture.hpp"
#include "weir/task/task.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir {
namespace {

using Texts = std::vector<std::string>;

class LogsTest : public LoopTest {
 protected:
  LogsTest() { logs_.emplace(host_, LogOptions(), one_sink<KeepingSink>(kept_)); }

  /// Lets the writing thread have its step.
  void settle() { host_.run_until_idle(*loop_); }
  Texts texts() {
    logs_->flush();
    return kept_.texts();
  }

  Kept kept_;
  std::optional<Logs> logs_;
};

TEST_F(LogsTest, WritesWhatTheLevelLets) {
  const Logger log = logs_->logger("http");
  log.trace("one");
  log.debug("two");
  log.info("three", field("n", 3));
  log.warning("four");
  log.error("five");
  EXPECT_EQ(texts(), (Texts{"http: three n=3", "http: four", "http: five"}));
  EXPECT_EQ(kept_.records[2].level, LogLevel::error);
  EXPECT_EQ(logs_->report().written, 3u);
}

TEST_F(LogsTest, TheThreadWritesByItself) {
  settle();
  logs_->logger("a").info("one");
  EXPECT_TRUE(kept_.records.empty());
  settle();
  EXPECT_EQ(kept_.texts(), Texts{"a: one"});
  EXPECT_GE(kept_.flushes, 1u);
  logs_->logger("a").info("two");
  logs_->logger("a").info("three");
  settle();
  EXPECT_EQ(kept_.texts(), (Texts{"a: one", "a: two", "a: three"}));
}

TEST_F(LogsTest, NothingIsLostAtTheEnd) {
  settle();
  const auto body = [&]() -> Task<> {
    const Logger log = logs_->logger("a");
    for (int i = 0; i < 1000; ++i) log.info("record", field("i", i));
    co_return;
  };
  run(body());
  logs_.reset();
  ASSERT_EQ(kept_.records.size(), 1000u);
  for (std::size_t i = 0; i < kept_.records.size(); ++i) {
    EXPECT_EQ(kept_.records[i].text, "record i=" + std::to_string(i));
    EXPECT_EQ(kept_.records[i].core, 0u);
  }
}

TEST_F(LogsTest, NothingIsEvaluatedForWhatIsNotWritten) {
  const Logger log = logs_->logger("a");
  int calls = 0;
  const auto costly = [&] {
    ++calls;
    return std::string("made");
  };
  log.debug("not written", field("k", costly));
  EXPECT_EQ(calls, 0);
  log.info("written", field("k", costly));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(texts(), Texts{"a: written k=made"});
}

TEST_F(LogsTest, FieldsAreOfManyTypes) {
  const Logger log = logs_->logger("a");
  const std::string text = "text";
  log.info("m", field("b", true), field("c", 'x'), field("i8", std::int8_t{-1}),
           field("u64", ~std::uint64_t{0}), field("f", 0.5F), field("s", text), field("l", "lit"),
           field("v", std::string_view("view")));
  log.info("m", field("d", 250ms), field("e", make_error_code(Errc::timed_out)),
           field("a", Endpoint::loopback(80)), field("z", 64_KiB), field("n", LogLevel::debug),
           field("o", BackendChoice::epoll), field("x", [] { return 7; }));
  EXPECT_EQ(texts(), (Texts{"a: m b=true c=x i8=-1 u64=18446744073709551615 f=0.5 s=text l=lit "
                            "v=view",
                            "a: m d=250ms e=\"timed out\" a=127.0.0.1:80 z=64KiB n=debug "
                            "o=epoll x=7"}));
}

TEST_F(LogsTest, LevelsAreSetByName) {
  const Logger http = logs_->logger("http");
  const Logger server = logs_->logger("http.server");
  const Logger client = logs_->logger("http.client");
  const Logger httpd = logs_->logger("httpd");
  logs_->set_level("http", LogLevel::debug);
  logs_->set_level("http.client", LogLevel::off);
  EXPECT_TRUE(http.enabled(LogLevel::debug));
  EXPECT_TRUE(server.enabled(LogLevel::debug));
  EXPECT_FALSE(server.enabled(LogLevel::trace));
  EXPECT_FALSE(client.enabled(LogLevel::error));
  EXPECT_FALSE(httpd.enabled(LogLevel::debug));
  EXPECT_TRUE(logs_->logger("http.server.h1.parser").enabled(LogLevel::debug));
  logs_->set_level("", LogLevel::error);
  EXPECT_FALSE(httpd.enabled(LogLevel::warning));
  EXPECT_TRUE(server.enabled(LogLevel::debug));
  EXPECT_EQ(logs_->level("http.client.x"), LogLevel::off);
  LogOptions options;
  options.level = LogLevel::trace;
  options.levels = {{"http.server", LogLevel::warning}};
  logs_->set_levels(options);
  EXPECT_TRUE(client.enabled(LogLevel::trace));
  EXPECT_FALSE(server.enabled(LogLevel::info));
  EXPECT_TRUE(logs_->logger("http").enabled(LogLevel::trace));
}

TEST_F(LogsTest, LevelsAreASectionOfAConfiguration) {
  const LogOptions options = config::test::settings<LogOptions>(
      {"level = 'warning'\nformat = 'json'\n[levels]\nhttp = 'debug'\n",
       {},
       {"--levels.http.server", "trace", "--core_buffer=1MiB"}});
  EXPECT_EQ(options.level, LogLevel::warning);
  EXPECT_EQ(options.format, LogFormat::json);
  EXPECT_EQ(options.core_buffer, 1_MiB);
  logs_->set_levels(options);
  EXPECT_EQ(logs_->level("http.client"), LogLevel::debug);
  EXPECT_EQ(logs_->level("http.server"), LogLevel::trace);
  EXPECT_EQ(logs_->level("x"), LogLevel::warning);
}

TEST_F(LogsTest, ALoggerWithFieldsIsHandedOn) {
  const auto inner = [](Logger log) -> Task<> {
    log.info("inside", field("k", 1));
    co_return;
  };
  const auto outer = [&](const Logger& service) -> Task<> {
    const Logger mine = service.with_id("request").with(field("user", "ann"));
    mine.info("begins");
    co_await inner(mine);
  };
  const Logger log = logs_->logger("http");
  run(outer(log));
  run(outer(log));
  log.info("between");
  const Texts all = texts();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0], "http: begins request=1-1 user=ann");
  EXPECT_EQ(all[1], "http: inside request=1-1 user=ann k=1");
  EXPECT_EQ(all[2], "http: begins request=1-2 user=ann");
  EXPECT_EQ(all[4], "http: between");
}

TEST_F(LogsTest, LoggersWithoutLogsLogNothing) {
  const Logger nobody;
  EXPECT_FALSE(nobody.enabled(LogLevel::error));
  EXPECT_EQ(nobody.name(), "");
  nobody.error("lost", field("k", 1));
  nobody.with(field("k", 1)).with_id().error("lost");
}

TEST_F(LogsTest, NamesAreKept) {
  std::string name = "a.name.that.is.longer.than.a.short.string";
  const Logger first = logs_->logger(name);
  name.assign(name.size(), 'x');
  EXPECT_EQ(first.name(), "a.name.that.is.longer.than.a.short.string");
  logs_->set_level(first.name(), LogLevel::off);
  EXPECT_FALSE(logs_->logger(first.name()).enabled(LogLevel::error));
}

TEST_F(LogsTest, WhatAFullBufferDropsIsCountedAndTold) {
  LogOptions options;
  options.core_buffer = 8_KiB;
  logs_.emplace(host_, options, one_sink<KeepingSink>(kept_));
  const auto body = [&]() -> Task<> {
    const Logger log = logs_->logger("a");
    const std::string text(1000, 'x');
    for (int i = 0; i < 20; ++i) log.info("record", field("i", i), field("text", text));
    co_return;
  };
  EXPECT_EQ(loop_->figures().read().figures().size(), 0U) << "until something is dropped";
  run(body());
  logs_->flush();
  const LogReport report = logs_->report();
  EXPECT_GT(report.dropped, 0u);
  const FigureSum figures = loop_->figures().read();
  ASSERT_EQ(figures.figures().size(), 1U);
  EXPECT_EQ(figures.figures()[0].name, "log records dropped");
  EXPECT_EQ(figures.figures()[0].value, report.dropped);
  EXPECT_EQ(kept_.records.size(), 20 - report.dropped + 1);
  EXPECT_EQ(kept_.texts().back(), "weir.logs: records dropped: a buffer was full dropped=" +
                                      std::to_string(report.dropped) + " buffer=1");
  EXPECT_TRUE(kept_.records[0].text.starts_with("record i=0 "));
  logs_->flush();
  EXPECT_EQ(kept_.records.size(), 20 - report.dropped + 1) << "told once";
  run(body());
  logs_.reset();
  EXPECT_TRUE(kept_.texts().back().starts_with("weir.logs: records dropped")) << "at the end too";
}

class BrokenSink : public LogSink {
 public:
  void write(const LogRecord&) override { throw std::runtime_error("no disk"); }
  void flush() override { throw 1; }
};

TEST_F(LogsTest, ASinkThatThrowsIsToldOnceAndHoldsUpNobody) {
  auto sinks = one_sink<BrokenSink>();
  sinks.push_back(std::make_unique<KeepingSink>(kept_));
  logs_.emplace(host_, LogOptions(), std::move(sinks));
  logs_->logger("a").info("one");
  logs_->logger("a").info("two");
  EXPECT_EQ(texts(), (Texts{"a: one", "a: two"}));
  EXPECT_EQ(host_.logged(), Texts{"weir: a sink of the logs failed: no disk"});
  EXPECT_EQ(logs_->report().failed, 3u);
}

TEST_F(LogsTest, WithoutSinksItIsTheHostsLog) {
  host_.set_wall_time(WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 22)));
  logs_.emplace(host_);
  logs_->logger("a").info("one", field("k", "v"));
  LogOptions options;
  options.format = LogFormat::json;
  Logs json(host_, options);
  json.logger("b").warning("two");
  logs_.reset();
  json.flush();
  EXPECT_EQ(host_.logged(),
            (Texts{"2026-11-22T00:00:00.000000Z info [-] a: one k=v",
                   "{\"time\":\"2026-11-22T00:00:00.000000Z\",\"level\":\"warning\",\"logger\":"
                   "\"b\",\"message\":\"two\"}"}));
}

TEST_F(LogsTest, WithoutAThreadEverythingIsWrittenAtTheEnd) {
  logs_.reset();
  host_.set_threads_max(0);
  logs_.emplace(host_, LogOptions(), one_sink<KeepingSink>(kept_));
  EXPECT_EQ(host_.logged().size(), 1u);
  logs_->logger("a").info("one");
  settle();
  EXPECT_TRUE(kept_.records.empty());
  logs_.reset();
  EXPECT_EQ(kept_.texts(), Texts{"a: one"});
}

TEST_F(LogsTest, RecordsOfSeveralCoresComeInTheOrderOfTheirTimes) {
  auto other = Loop::make(host_, {.core = 1}).value();
  const auto record = [&](int number) -> Task<> {
    logs_->logger("a").info("record", field("i", number));
    co_return;
  };
  for (int number = 0; number < 10; ++number) {
    weir::run(number % 3 == 0 ? *other : *loop_, record(number));
    host_.advance(*loop_, 1ms);
  }
  logs_->flush();
  ASSERT_EQ(kept_.records.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(kept_.records[i].text, "record i=" + std::to_string(i));
    EXPECT_EQ(kept_.records[i].core, i % 3 == 0 ? 1u : 0u);
  }
}

}  // namespace
}  // namespace weir
