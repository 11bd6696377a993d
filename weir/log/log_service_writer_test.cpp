// Tests the writer thread of a LogService: its wake-ups, the order of flushes, and dropped records.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weir/log/log_service.hpp"
#include "weir/log/test/log_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/task.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::log_service_writer_test {
namespace {

using Texts = std::vector<std::string>;

/// A thread that counts the calls of wake().
class CountedThread final : public loop::PlatformThread {
 public:
  CountedThread(std::unique_ptr<loop::PlatformThread> thread, std::size_t& wake_ups) noexcept
      : thread_(std::move(thread)), wake_ups_(wake_ups) {}
  Result<> start() override { return thread_->start(); }
  void wake() noexcept override {
    ++wake_ups_;
    thread_->wake();
  }
  Duration cpu_time() noexcept override { return thread_->cpu_time(); }
  os::ThreadState state() noexcept override { return thread_->state(); }

 private:
  std::unique_ptr<loop::PlatformThread> thread_;
  std::size_t& wake_ups_;
};

class CountingPlatform final : public MemoryPlatform {
 public:
  std::unique_ptr<loop::PlatformThread> make_thread(const loop::PlatformThreadOptions& options,
                                                    loop::ThreadWork& work) override {
    return std::make_unique<CountedThread>(MemoryPlatform::make_thread(options, work), wake_ups);
  }
  std::size_t wake_ups = 0;
};

/// A sink that logs a record while it writes each of its first three records.
class LoggingSink final : public MemorySink {
 public:
  LoggingSink(StoredLog& stored, std::optional<LogService>& logs) noexcept
      : MemorySink(stored), logs_(logs) {}
  void write(const LogRecord& record) override {
    MemorySink::write(record);
    if (logged_ == 3) return;
    ++logged_;
    logs_->logger("sink").info("m", field("n", logged_));
  }

 private:
  std::optional<LogService>& logs_;
  int logged_ = 0;
};

/// A sink that adds a word for each call to `calls`.
class CallsSink final : public LogSink {
 public:
  CallsSink(Texts& calls, std::string name) : calls_(calls), name_(std::move(name)) {}
  void write(const LogRecord& record) override {
    calls_.push_back(name_ + " " + std::string(record.logger));
  }
  void flush() override { calls_.push_back(name_ + " flush"); }

 private:
  Texts& calls_;
  std::string name_;
};

class BrokenFlushSink final : public LogSink {
 public:
  void write(const LogRecord&) override {}
  void flush() override { throw std::runtime_error("no disk"); }
};

class LogWriterTest : public testing::Test {
 protected:
  LogWriterTest() { options_.core_buffer = 8_KiB; }
  void settle() { platform_.run_until_idle(*loop_); }
  /// Logs records of which two fit into a buffer, on `loop` or outside of loops.
  void log_large(Loop* loop, int count) {
    const auto fill = [&] {
      const std::string text(2700, 'x');
      for (int i = 0; i < count; ++i) logs_->logger("large").info("m", field("text", text));
    };
    const auto body = [&]() -> Task<> {
      fill();
      co_return;
    };
    if (loop == nullptr) {
      fill();
    } else {
      weir::run(*loop, body());
    }
  }

  CountingPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
  LogOptions options_;
  StoredLog stored_;
  std::optional<LogService> logs_;
};

TEST_F(LogWriterTest, IsWokenOnceForAllRecordsBeforeItsNextRun) {
  logs_.emplace(platform_, options_, one_sink<MemorySink>(stored_));
  const Logger log = logs_->logger("a");
  log.info("one");
  EXPECT_EQ(platform_.wake_ups, 0U) << "the first run follows the start";
  settle();
  EXPECT_EQ(stored_.texts(), Texts{"a: one"});
  for (std::size_t round = 1; round <= 3; ++round) {
    for (int records = 0; records < 3; ++records) log.info("m");
    log.debug("not written");
    EXPECT_EQ(platform_.wake_ups, round);
    settle();
    EXPECT_EQ(stored_.records.size(), 1 + 3 * round);
    EXPECT_EQ(platform_.wake_ups, round);
  }
}

TEST_F(LogWriterTest, NeedsNoWakeUpForRecordsThatComeWhileItWrites) {
  logs_.emplace(platform_, options_, one_sink<LoggingSink>(stored_, logs_));
  settle();
  logs_->logger("a").info("one");
  settle();
  EXPECT_EQ(stored_.texts(), (Texts{"a: one", "sink: m n=1", "sink: m n=2", "sink: m n=3"}));
  EXPECT_EQ(platform_.wake_ups, 1U);
  logs_->logger("a").info("two");
  EXPECT_EQ(platform_.wake_ups, 2U) << "it sleeps again";
}

TEST_F(LogWriterTest, FlushesEverySinkAfterTheLastRecord) {
  Texts calls;
  auto sinks = one_sink<CallsSink>(calls, "one");
  sinks.push_back(std::make_unique<BrokenFlushSink>());
  sinks.push_back(std::make_unique<CallsSink>(calls, "two"));
  logs_.emplace(platform_, options_, std::move(sinks));
  logs_->logger("a").info("m");
  logs_->logger("b").info("m");
  logs_->flush();
  EXPECT_EQ(std::exchange(calls, {}),
            (Texts{"one a", "two a", "one b", "two b", "one flush", "two flush"}));
  logs_->flush();
  EXPECT_EQ(std::exchange(calls, {}), (Texts{"one flush", "two flush"})) << "without a record";
  log_large(nullptr, 3);
  logs_.reset();
  EXPECT_EQ(calls, (Texts{"one large", "two large", "one large", "two large", "one weir.logs",
                          "two weir.logs", "one flush", "two flush"}))
      << "the warning of dropped records comes before the flush";
}

TEST_F(LogWriterTest, ReportsTheFirstFailureOfAFlush) {
  logs_.emplace(platform_, options_, one_sink<BrokenFlushSink>());
  logs_->flush();
  logs_->flush();
  EXPECT_EQ(platform_.logged(), Texts{"weir: log sink failed: no disk"});
  EXPECT_EQ(logs_->report().failed, 2U);
}

TEST_F(LogWriterTest, ReportsTheDropsOfEachBuffer) {
  const auto other = Loop::make(platform_, {.core = 1}).value();
  logs_.emplace(platform_, options_, one_sink<MemorySink>(stored_));
  const auto warnings = [this] {
    std::multiset<std::string> found;
    for (const StoredRecord& each : std::exchange(stored_.records, {})) {
      if (each.logger == "weir.logs") found.insert(each.text);
    }
    return found;
  };
  const auto warning = [](int dropped, int buffer) {
    return "records dropped: a buffer was full dropped=" + std::to_string(dropped) +
           " buffer=" + std::to_string(buffer);
  };
  log_large(loop_.get(), 3);
  log_large(other.get(), 4);
  log_large(nullptr, 5);
  EXPECT_EQ(logs_->report().dropped, 6U);
  logs_->flush();
  EXPECT_EQ(logs_->report().written, 6U + 3) << "two records and a warning of each buffer";
  EXPECT_EQ(warnings(), (std::multiset<std::string>{warning(3, 0), warning(1, 1), warning(2, 2)}));
  log_large(loop_.get(), 3);
  log_large(nullptr, 2);
  logs_->flush();
  EXPECT_EQ(logs_->report().dropped, 7U);
  EXPECT_EQ(warnings(), std::multiset<std::string>{warning(1, 1)}) << "only new drops";
}

}  // namespace
}  // namespace weir::log_service_writer_test
