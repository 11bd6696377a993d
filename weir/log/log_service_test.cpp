// Tests loggers, levels, the writer thread and the ring buffer.
#include "weir/log/log_service.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weir/config/test/config_fixture.hpp"
#include "weir/log/detail/record.hpp"
#include "weir/log/test/log_fixture.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/task/task.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::log_service_test {
namespace {

using Texts = std::vector<std::string>;

class LogServiceTest : public LoopTest {
 protected:
  LogServiceTest() { logs_.emplace(platform_, LogOptions(), one_sink<MemorySink>(stored_)); }

  /// Runs the writer thread's step.
  void settle() { platform_.run_until_idle(*loop_); }
  Texts texts() {
    logs_->flush();
    return stored_.texts();
  }

  StoredLog stored_;
  std::optional<LogService> logs_;
};

TEST_F(LogServiceTest, WritesRecordsThatTheLevelPermits) {
  const Logger log = logs_->logger("http");
  log.trace("one");
  log.debug("two");
  log.info("three", field("n", 3));
  log.warning("four");
  log.error("five");
  EXPECT_EQ(texts(), (Texts{"http: three n=3", "http: four", "http: five"}));
  EXPECT_EQ(stored_.records[2].level, LogLevel::error);
  EXPECT_EQ(logs_->report().written, 3u);
}

TEST_F(LogServiceTest, EachFunctionWritesItsLevel) {
  logs_->set_level("", LogLevel::trace);
  const Logger log = logs_->logger("a");
  log.trace("trace");
  log.debug("debug");
  log.info("info");
  log.warning("warning");
  log.error("error");
  log.log(LogLevel::debug, "debug");
  EXPECT_EQ(texts().size(), 6U);
  for (const StoredRecord& each : stored_.records) EXPECT_EQ(each.text, name_of(each.level));
}

TEST_F(LogServiceTest, HasItsLevelsFromTheStart) {
  LogOptions options;
  EXPECT_EQ(options.level, LogLevel::info);
  EXPECT_EQ(options.format, LogFormat::text);
  EXPECT_EQ(options.core_buffer, 256_KiB);
  options.level = LogLevel::error;
  options.levels = {{"http", LogLevel::debug}, {"http.server", LogLevel::off}};
  logs_.emplace(platform_, options, one_sink<MemorySink>(stored_));
  EXPECT_TRUE(logs_->logger("http.client").enabled(LogLevel::debug));
  EXPECT_FALSE(logs_->logger("http.server").enabled(LogLevel::error));
  EXPECT_FALSE(logs_->logger("other").enabled(LogLevel::warning));
  EXPECT_TRUE(logs_->logger("other").enabled(LogLevel::error));
  EXPECT_EQ(logs_->level(""), LogLevel::error);
}

TEST_F(LogServiceTest, TheThreadWritesWithoutAFlush) {
  settle();
  logs_->logger("a").info("one");
  EXPECT_TRUE(stored_.records.empty());
  settle();
  EXPECT_EQ(stored_.texts(), Texts{"a: one"});
  EXPECT_GE(stored_.flushes, 1u);
  logs_->logger("a").info("two");
  logs_->logger("a").info("three");
  settle();
  EXPECT_EQ(stored_.texts(), (Texts{"a: one", "a: two", "a: three"}));
}

TEST_F(LogServiceTest, TheDestructorWritesAllRecords) {
  settle();
  const auto body = [&]() -> Task<> {
    const Logger log = logs_->logger("a");
    for (int i = 0; i < 1000; ++i) log.info("record", field("i", i));
    co_return;
  };
  run(body());
  logs_.reset();
  ASSERT_EQ(stored_.records.size(), 1000u);
  for (std::size_t i = 0; i < stored_.records.size(); ++i) {
    EXPECT_EQ(stored_.records[i].text, "record i=" + std::to_string(i));
    EXPECT_EQ(stored_.records[i].core, 0u);
  }
}

TEST_F(LogServiceTest, UnwrittenRecordsEvaluateNoFields) {
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

TEST_F(LogServiceTest, FieldsMayHaveManyTypes) {
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

TEST_F(LogServiceTest, LevelsAreSetByName) {
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

TEST_F(LogServiceTest, OptionsMayBeASectionOfAConfiguration) {
  const LogOptions options = config::test::settings<LogOptions>(
      {"level = 'warning'\nformat = 'json'\n[levels]\nhttp = 'debug'\n",
       {},
       {"--levels.http.server", "trace", "--core_buffer=1MiB"}});
  const LogOptions plain = config::test::settings<LogOptions>({"format = 'text'\n", {}, {}});
  EXPECT_EQ(plain.format, LogFormat::text);
  EXPECT_EQ(options.level, LogLevel::warning);
  EXPECT_EQ(options.format, LogFormat::json);
  EXPECT_EQ(options.core_buffer, 1_MiB);
  logs_->set_levels(options);
  EXPECT_EQ(logs_->level("http.client"), LogLevel::debug);
  EXPECT_EQ(logs_->level("http.server"), LogLevel::trace);
  EXPECT_EQ(logs_->level("x"), LogLevel::warning);
}

TEST_F(LogServiceTest, ALoggerWithFieldsMayBePassedOn) {
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

TEST_F(LogServiceTest, IdsAreUniqueOutsideOfLoopsToo) {
  const Logger log = logs_->logger("a");
  log.with_id().info("one");
  log.with_id("job").info("two");
  const auto body = [&]() -> Task<> {
    log.with_id().info("three");
    co_return;
  };
  run(body());
  log.with_id().info("four");
  Texts all = texts();
  std::ranges::sort(all);
  EXPECT_EQ(all, (Texts{"a: four request=0-3", "a: one request=0-1", "a: three request=1-1",
                        "a: two job=0-2"}));
}

struct Work final : TraceContext {
  std::string_view kind() const noexcept override { return "request"; }
  std::string_view id(IdBuffer buffer) const noexcept override {
    std::ranges::copy(std::string_view("abc-7"), buffer.begin());
    return {buffer.data(), 5};
  }
};

TEST_F(LogServiceTest, RecordsBeginWithTheIdOfTheWork) {
  const Work work;
  CancelSource source;
  source.set_trace(&work);
  const Logger log = logs_->logger("a");
  const auto body = [&]() -> Task<> {
    log.info("one");
    log.with(field("n", 1)).info("two", field("m", 2));
    log.with(field("n", 1), field("request", "bound")).info("three");
    log.with(field("requests", 1)).info("four", field("reques", 2));
    log.info("five", field("n", 1), field("request", "given"));
    log.with_id().info("six");
    co_return;
  };
  run(body(), &source);
  log.info("outside");
  Texts all = texts();
  ASSERT_EQ(all.size(), 7U);
  std::erase(all, "a: outside");
  EXPECT_EQ(all, (Texts{"a: one request=abc-7", "a: two request=abc-7 n=1 m=2",
                        "a: three n=1 request=bound", "a: four request=abc-7 requests=1 reques=2",
                        "a: five n=1 request=given", "a: six request=1-1"}));
}

TEST_F(LogServiceTest, RecordsNameTheSpanOfATraceThatIsSampledOrRemote) {
  const Work work;
  CancelSource source;
  source.set_trace(&work);
  ActiveSpan span{.exists = true};
  for (std::size_t byte = 0; byte < 16; ++byte) {
    span.trace_id[byte] = static_cast<std::uint8_t>(0xa0 + byte);
  }
  span.span_id[7] = 1;
  const Logger log = logs_->logger("a");
  const auto body = [&]() -> Task<> {
    work.set_span(span);
    log.info("neither");
    span.sampled = true;
    work.set_span(span);
    log.info("sampled", field("n", 1));
    log.info("given", field("trace_id", "x"));
    span.sampled = false;
    span.remote = true;
    work.set_span(span);
    log.with(field("request", 7)).info("remote");
    work.clear_span();
    log.info("cleared");
    co_return;
  };
  run(body(), &source);
  const std::string ids = " trace_id=a0a1a2a3a4a5a6a7a8a9aaabacadaeaf span_id=0000000000000001";
  EXPECT_EQ(texts(), (Texts{"a: neither request=abc-7", "a: sampled request=abc-7" + ids + " n=1",
                            "a: given request=abc-7 trace_id=x", "a: remote" + ids + " request=7",
                            "a: cleared request=abc-7"}));
}

TEST_F(LogServiceTest, BoundFieldsHaveALimit) {
  const std::string text(1500, 'x');
  const Logger log = logs_->logger("a")
                         .with(field("a", 1))
                         .with(field("b", text), field("c", text), field("d", 4));
  log.with(field("e", 5)).info("m", field("f", 6));
  EXPECT_EQ(texts(), Texts{"a: m a=1 b=" + text + " e=5 f=6"});
}

TEST_F(LogServiceTest, AnUnnamedEnumeratorIsANumber) {
  logs_->logger("a").info("m", field("n", static_cast<LogLevel>(99)));
  EXPECT_EQ(texts(), Texts{"a: m n=99"});
}

TEST_F(LogServiceTest, LoggersWithoutALogServiceWriteNothing) {
  const Logger nobody;
  EXPECT_FALSE(nobody.enabled(LogLevel::error));
  EXPECT_EQ(nobody.name(), "");
  nobody.error("lost", field("k", 1));
  nobody.with(field("k", 1)).with_id().error("lost");
}

TEST_F(LogServiceTest, RecordsOfLevelOffAreNeverWritten) {
  const Logger silent = logs_->logger("silent");
  logs_->set_level("silent", LogLevel::off);
  for (const Logger& each : {Logger(), logs_->logger("a"), silent}) {
    EXPECT_FALSE(each.enabled(LogLevel::off)) << each.name();
  }
  const auto never_called = [] {
    ADD_FAILURE() << "a field is evaluated";
    return 1;
  };
  silent.log(LogLevel::off, "a service", field("k", never_called));
  Logger().log(LogLevel::off, "no service");
  logs_->logger("a").log(LogLevel::off, "a service");
  EXPECT_EQ(texts(), Texts{});
}

TEST_F(LogServiceTest, NamesAreKept) {
  std::string name = "a.name.that.is.longer.than.a.short.string";
  const Logger first = logs_->logger(name);
  name.assign(name.size(), 'x');
  EXPECT_EQ(first.name(), "a.name.that.is.longer.than.a.short.string");
  logs_->set_level(first.name(), LogLevel::off);
  EXPECT_FALSE(logs_->logger(first.name()).enabled(LogLevel::error));
}

TEST_F(LogServiceTest, LoggersBeyondTheMaximumShareAName) {
  constexpr std::size_t most = LogService::names_max;
  for (std::size_t i = 0; i < most; ++i) static_cast<void>(logs_->logger(std::to_string(i)));
  EXPECT_EQ(logs_->logger("0").name(), "0");
  EXPECT_EQ(logs_->logger(std::to_string(most - 1)).name(), std::to_string(most - 1));
  EXPECT_EQ(logs_->logger("one more").name(), "(others)");
  EXPECT_EQ(logs_->logger("another").name(), "(others)");
  logs_->logger("one more").info("written");
  EXPECT_EQ(texts(), Texts{"(others): written"});
}

TEST_F(LogServiceTest, ASingleDropIsReported) {
  platform_.set_wall_time(WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 22)));
  LogOptions options;
  options.core_buffer = 8_KiB;
  auto sinks = one_sink<MemorySink>(stored_);
  sinks.push_back(platform_log_sink(platform_));
  logs_.emplace(platform_, options, std::move(sinks));
  const auto fill = [&]() -> Task<> {
    const Logger log = logs_->logger("a");
    const std::string text(2700, 'x');  // the buffer has room for two of these
    for (int i = 0; i < 3; ++i) log.info("m", field("text", text));
    co_return;
  };
  for (std::uint64_t dropped = 1; dropped <= 2; ++dropped) {
    run(fill());
    logs_->flush();
    EXPECT_EQ(logs_->report().dropped, dropped);
    ASSERT_EQ(stored_.records.size(), 3 * dropped);
    EXPECT_EQ(stored_.texts().back(),
              "weir.logs: records dropped: a buffer was full dropped=1 buffer=1");
    EXPECT_EQ(stored_.records.back().level, LogLevel::warning);
    EXPECT_EQ(stored_.records.back().core, LogRecord::no_core);
    EXPECT_EQ(platform_.logged().back(),
              "2026-11-22T00:00:00.000000Z warning [-] weir.logs: records dropped: a buffer was "
              "full dropped=1 buffer=1");
  }
  EXPECT_EQ(logs_->report().written, 6U) << "two records and a warning each time";
  logs_.reset();
  EXPECT_EQ(loop_->metrics().read().metrics().at(0).value, 2U) << "the loop keeps the number";
}

TEST_F(LogServiceTest, MetricsAreAddedWithTheFirstDrop) {
  const auto body = [&]() -> Task<> {
    for (int i = 0; i < 100; ++i) logs_->logger("a").info("m");
    co_return;
  };
  run(body());
  EXPECT_TRUE(loop_->metrics().read().metrics().empty());
  EXPECT_EQ(texts().size(), 100U);
}

TEST_F(LogServiceTest, DropsOfAFullBufferAreCountedAndReported) {
  LogOptions options;
  options.core_buffer = 8_KiB;
  logs_.emplace(platform_, options, one_sink<MemorySink>(stored_));
  const auto body = [&]() -> Task<> {
    const Logger log = logs_->logger("a");
    const std::string text(1000, 'x');
    for (int i = 0; i < 20; ++i) log.info("record", field("i", i), field("text", text));
    co_return;
  };
  EXPECT_EQ(loop_->metrics().read().metrics().size(), 0U) << "no record was dropped yet";
  run(body());
  logs_->flush();
  const LogReport report = logs_->report();
  EXPECT_GT(report.dropped, 0u);
  const MetricSnapshot metrics = loop_->metrics().read();
  ASSERT_EQ(metrics.metrics().size(), 1U);
  EXPECT_EQ(metrics.metrics()[0].name, "log records dropped");
  EXPECT_EQ(metrics.metrics()[0].value, report.dropped);
  EXPECT_EQ(stored_.records.size(), 20 - report.dropped + 1);
  EXPECT_EQ(stored_.texts().back(), "weir.logs: records dropped: a buffer was full dropped=" +
                                        std::to_string(report.dropped) + " buffer=1");
  EXPECT_TRUE(stored_.records[0].text.starts_with("record i=0 "));
  logs_->flush();
  EXPECT_EQ(stored_.records.size(), 20 - report.dropped + 1) << "reported once";
  run(body());
  logs_.reset();
  EXPECT_TRUE(stored_.texts().back().starts_with("weir.logs: records dropped"))
      << "also at the end";
}

class BrokenSink : public LogSink {
 public:
  void write(const LogRecord&) override { throw std::runtime_error("no disk"); }
  void flush() override { throw 1; }
};

TEST_F(LogServiceTest, AThrowingSinkIsReportedOnceAndDoesNotStopOthers) {
  auto sinks = one_sink<BrokenSink>();
  sinks.push_back(std::make_unique<MemorySink>(stored_));
  logs_.emplace(platform_, LogOptions(), std::move(sinks));
  logs_->logger("a").info("one");
  logs_->logger("a").info("two");
  EXPECT_EQ(texts(), (Texts{"a: one", "a: two"}));
  EXPECT_EQ(platform_.logged(), Texts{"weir: log sink failed: no disk"});
  EXPECT_EQ(logs_->report().failed, 3u);
}

class OddlyBrokenSink : public LogSink {
 public:
  void write(const LogRecord&) override { throw 1; }
};

TEST_F(LogServiceTest, ASinkMayThrowAnything) {
  auto sinks = one_sink<OddlyBrokenSink>();
  sinks.push_back(std::make_unique<BrokenSink>());
  logs_.emplace(platform_, LogOptions(), std::move(sinks));
  logs_->logger("a").info("one");
  logs_->flush();
  EXPECT_EQ(platform_.logged(), Texts{"weir: log sink failed: unknown exception"});
  EXPECT_EQ(logs_->report().failed, 3U);
  EXPECT_EQ(logs_->report().written, 1U);
}

class SinkWithoutMemory : public LogSink {
 public:
  void write(const LogRecord&) override { throw std::bad_alloc(); }
};

TEST_F(LogServiceTest, ReportsASinkThatHasNoMemory) {
  logs_.emplace(platform_, LogOptions(), one_sink<SinkWithoutMemory>());
  logs_->logger("a").info("one");
  logs_->flush();
  EXPECT_EQ(platform_.logged(), Texts{"weir: log sink failed: out of memory"});
}

/// A sink that logs a record itself when it writes its first one.
class LoggingSink : public MemorySink {
 public:
  LoggingSink(StoredLog& stored, std::optional<LogService>& logs) noexcept
      : MemorySink(stored), logs_(logs) {}
  void write(const LogRecord& record) override {
    MemorySink::write(record);
    if (!std::exchange(logged_, true)) logs_->logger("sink").info("while it writes");
  }

 private:
  std::optional<LogService>& logs_;
  bool logged_ = false;
};

TEST_F(LogServiceTest, RecordsThatComeDuringAWriteAreWrittenToo) {
  for (const bool by_destructor : {false, true}) {
    stored_ = StoredLog();
    logs_.reset();
    logs_.emplace(platform_, LogOptions(), one_sink<LoggingSink>(stored_, logs_));
    if (by_destructor) settle();
    logs_->logger("a").info("one");
    if (by_destructor) {
      LogService& logs = *logs_;
      logs.flush();
      EXPECT_EQ(stored_.texts(), Texts{"a: one"}) << "flush() writes what was logged before";
      logs_.reset();
    } else {
      settle();
    }
    EXPECT_EQ(stored_.texts(), (Texts{"a: one", "sink: while it writes"}));
  }
}

TEST_F(LogServiceTest, WritesToThePlatformsLogWithoutSinks) {
  platform_.set_wall_time(WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 22)));
  logs_.emplace(platform_);
  logs_->logger("a").info("one", field("k", "v"));
  LogOptions options;
  options.format = LogFormat::json;
  LogService json(platform_, options);
  json.logger("b").warning("two");
  logs_.reset();
  json.flush();
  EXPECT_EQ(platform_.logged(),
            (Texts{"2026-11-22T00:00:00.000000Z info [-] a: one k=v",
                   "{\"time\":\"2026-11-22T00:00:00.000000Z\",\"level\":\"warning\",\"logger\":"
                   "\"b\",\"message\":\"two\"}"}));
}

TEST_F(LogServiceTest, TheDestructorWritesAllRecordsWithoutAThread) {
  logs_.reset();
  platform_.set_threads_max(0);
  logs_.emplace(platform_, LogOptions(), one_sink<MemorySink>(stored_));
  ASSERT_EQ(platform_.logged().size(), 1u);
  EXPECT_TRUE(platform_.logged()[0].starts_with(
      "weir: log thread not started: records are written at shutdown: "))
      << platform_.logged()[0];
  logs_->logger("a").info("one");
  settle();
  EXPECT_TRUE(stored_.records.empty());
  logs_.reset();
  EXPECT_EQ(stored_.texts(), Texts{"a: one"});
}

TEST_F(LogServiceTest, RecordsOfSeveralCoresAreSortedByTime) {
  auto other = Loop::make(platform_, {.core = 1}).value();
  const auto record = [&](int number) -> Task<> {
    logs_->logger("a").info("record", field("i", number));
    co_return;
  };
  for (int number = 0; number < 10; ++number) {
    weir::run(number % 3 == 0 ? *other : *loop_, record(number));
    platform_.advance(*loop_, 1ms);
  }
  logs_->flush();
  ASSERT_EQ(stored_.records.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(stored_.records[i].text, "record i=" + std::to_string(i));
    EXPECT_EQ(stored_.records[i].core, i % 3 == 0 ? 1u : 0u);
  }
}

// The writer thread does not run between the records. Threads without a loop share a buffer.
TEST_F(LogServiceTest, RecordsThatWaitInSeveralBuffersAreSortedByTime) {
  Texts expected;
  const auto log_in_turns = [&]() -> Task<> {
    for (int number = 0; number < 6; ++number) {
      platform_.set_wall_time(WallTime(std::chrono::seconds(number)));
      const auto record = [&] { logs_->logger("a").info("record", field("i", number)); };
      number % 2 == 0 ? record() : std::thread(record).join();
      expected.push_back("a: record i=" + std::to_string(number));
    }
    co_return;
  };
  weir::run(*loop_, log_in_turns());
  EXPECT_EQ(texts(), expected);
}

// The id of a logger names the buffer; buffer 0 is the shared one.
TEST_F(LogServiceTest, LoopsBeyondTheFirst1024ShareABuffer) {
  LogOptions options;
  options.core_buffer = 8_KiB;
  logs_.emplace(platform_, options, one_sink<MemorySink>(stored_));
  std::vector<std::unique_ptr<Loop>> loops;
  std::map<std::string, int> ids;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < 1026; ++i) {
      if (round == 0) loops.push_back(Loop::make(platform_, {}).value());
      const auto body = [&]() -> Task<> {
        logs_->logger("a").with_id().info("m");
        co_return;
      };
      weir::run(*loops[i], body());
    }
  }
  logs_->flush();
  for (const StoredRecord& each : stored_.records) ++ids[each.text];
  EXPECT_EQ(ids.size(), 2U * 1026) << "each id is unique";
  for (int ring = 1; ring <= 1024; ++ring) {
    const std::string own = "m request=" + std::to_string(ring);
    EXPECT_EQ(ids[own + "-1"] + ids[own + "-2"], 2) << ring;
  }
  for (int number = 1; number <= 4; ++number) {
    EXPECT_EQ(ids["m request=0-" + std::to_string(number)], 1) << number;
  }
}

}  // namespace

namespace {

/// Returns bytes that begin with their size, as records do.
std::vector<std::byte> sized(std::size_t size, int fill) {
  std::vector<std::byte> bytes(size, static_cast<std::byte>(fill));
  const auto written = static_cast<std::uint32_t>(size);
  std::memcpy(bytes.data(), &written, sizeof written);
  return bytes;
}

TEST(LogReport, StartsAtZero) {
  const LogReport report;
  EXPECT_EQ(report.written, 0U);
  EXPECT_EQ(report.dropped, 0U);
  EXPECT_EQ(report.failed, 0U);
}

TEST(LogRing, PopsRecordsInOrder) {
  LogRing ring(0, 3);
  EXPECT_EQ(ring.number(), 3u);
  std::vector<std::byte> taken;
  std::size_t pushed = 0;
  std::size_t received = 0;
  const auto size_of = [](std::size_t index) { return 4 + index * 37 % 2000; };
  for (int round = 0; round < 2000; ++round) {
    for (int burst = round % 4; burst >= 0; --burst) {
      ring.push(sized(size_of(pushed), static_cast<int>(pushed % 256)));
      ++pushed;
    }
    EXPECT_FALSE(ring.empty());
    EXPECT_FALSE(ring.pop(taken)) << "the record is not marked";
    ring.mark();
    while (ring.pop(taken)) {
      ASSERT_EQ(taken, sized(size_of(received), static_cast<int>(received % 256)));
      ++received;
    }
    EXPECT_TRUE(ring.empty());
  }
  EXPECT_EQ(received, pushed);
  EXPECT_EQ(ring.dropped().value(), 0u);
}

TEST(LogRing, DropsAndCountsRecordsThatDoNotFit) {
  LogRing ring(0, 0);  // 8 KiB
  for (int record = 0; record < 10; ++record) ring.push(sized(1024, record));
  EXPECT_EQ(ring.dropped().value(), 2u);
  std::vector<std::byte> taken;
  ring.mark();
  for (int record = 0; record < 8; ++record) {
    ASSERT_TRUE(ring.pop(taken));
    EXPECT_EQ(taken, sized(1024, record));
  }
  EXPECT_FALSE(ring.pop(taken));
  ring.push(sized(1024, 42));
  ring.mark();
  ASSERT_TRUE(ring.pop(taken));
  EXPECT_EQ(taken, sized(1024, 42));
}

TEST(LogRing, HasASizeThatIsAPowerOfTwo) {
  struct Case {
    std::size_t bytes;
    std::size_t records;  // of 1 KiB that fit
  };
  for (const auto [bytes, records] :
       {Case{0, 8}, Case{8192, 8}, Case{8193, 16}, Case{16'384, 16}, Case{20'000, 32}}) {
    LogRing ring(bytes, 0);
    for (std::size_t i = 0; i < records; ++i) EXPECT_TRUE(ring.push(sized(1024, 0))) << bytes;
    EXPECT_FALSE(ring.push(sized(4, 0))) << bytes;
    EXPECT_EQ(ring.dropped().value(), 1U);
  }
}

// The memory of the ring is only reserved, because nothing writes to it. Nothing may read the
// record that is too large, because its addresses have no memory.
TEST(LogRing, HasAtMostAGibibyte) {
  constexpr std::size_t too_large = (std::size_t{1} << 30) + 1;
  void* const range =
      ::mmap(nullptr, too_large, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(range, MAP_FAILED);
  LogRing ring(~std::size_t{0}, 5);
  EXPECT_FALSE(ring.push(Bytes(static_cast<const std::byte*>(range), too_large)));
  EXPECT_EQ(ring.dropped().value(), 1U);
  ::munmap(range, too_large);
  EXPECT_EQ(ring.number(), 5U);
  EXPECT_TRUE(ring.push(sized(1024, 1)));
  ring.mark();
  std::vector<std::byte> taken;
  ASSERT_TRUE(ring.pop(taken));
  EXPECT_EQ(taken, sized(1024, 1));
}

TEST(LogRing, IsFilledToItsLastByte) {
  std::vector<std::byte> taken;
  for (const std::size_t more : {0U, 1U}) {
    LogRing ring(0, 0);
    for (int round = 0; round < 3; ++round) {  // the second round wraps around
      for (int record = 0; record < 7; ++record) EXPECT_TRUE(ring.push(sized(1024, record)));
      EXPECT_EQ(ring.push(sized(1024 + more, 7)), more == 0);
      EXPECT_TRUE(ring.push(sized(20, 8)) == (more != 0)) << "there is room for less";
      ring.mark();
      for (int record = 0; record < 8 - static_cast<int>(more); ++record) {
        ASSERT_TRUE(ring.pop(taken));
        EXPECT_EQ(taken, sized(1024, record));
      }
      if (more != 0) {
        ASSERT_TRUE(ring.pop(taken));
        EXPECT_EQ(taken, sized(20, 8));
      }
      EXPECT_FALSE(ring.pop(taken));
      EXPECT_TRUE(ring.empty());
    }
    EXPECT_EQ(ring.dropped().value(), 3U);
  }
}

TEST(LogRing, NumbersItsIdsFromOne) {
  LogRing ring(0, 0);
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(ring.next_sequence(), id);
}

TEST(LogRing, NoRecordIsLostBetweenTwoThreads) {
  constexpr std::uint64_t count = 100'000;
  LogRing ring(16 * 1024, 0);
  std::thread pusher([&] {
    for (std::uint64_t number = 0; number < count; ++number) {
      auto bytes = sized(12 + number % 100, 0);
      std::memcpy(bytes.data() + 4, &number, sizeof number);
      ring.push(bytes);
    }
  });
  std::vector<std::byte> taken;
  std::uint64_t received = 0;
  std::uint64_t next = 0;
  // The last record may be dropped; the counters then show the end.
  while (received + ring.dropped().value() < count) {
    ring.mark();
    while (ring.pop(taken)) {
      std::uint64_t number = 0;
      std::memcpy(&number, taken.data() + 4, sizeof number);
      ASSERT_GE(number, next);
      ASSERT_EQ(taken.size(), 12 + number % 100);
      next = number + 1;
      ++received;
    }
    std::this_thread::yield();
  }
  pusher.join();
  EXPECT_EQ(received + ring.dropped().value(), count);
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace weir::log_service_test
