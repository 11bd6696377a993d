// Tests logs on real threads: concurrent records arrive complete, in order, and without loss.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "weir/log/log_service.hpp"
#include "weir/log/test/log_fixture.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/task.hpp"

namespace weir::log_service_threads_test {
namespace {

RuntimeOptions cores(unsigned count) {
  RuntimeOptions options;
  options.cores = count;
  options.pin = false;
  options.handle_signals = false;
  options.announce = false;
  return options;
}

Task<Result<>> log_numbers(Scope& scope, const Logger& log, int count) {
  const Logger mine = log.with(field("from", scope.loop().core()));
  for (int number = 0; number < count; ++number) mine.info("number", field("n", number));
  co_return {};
}

TEST(LogServiceThreads, EveryCoreKeepsItsOrderAndNoRecordIsLost) {
  constexpr int count = 2000;
  StoredLog stored;
  OsPlatform platform;
  {
    LogOptions options;
    options.core_buffer = 1_MiB;  // room for all records
    LogService logs(platform, options, one_sink<MemorySink>(stored));
    const Logger log = logs.logger("a");
    Runtime runtime(platform, cores(3));
    ASSERT_EQ(runtime.run_on_each_core(log_numbers, std::cref(log), count), 0);
  }
  std::map<unsigned, int> next;
  for (const StoredRecord& each : stored.records) {
    const std::string expected =
        "number from=" + std::to_string(each.core) + " n=" + std::to_string(next[each.core]++);
    ASSERT_EQ(each.text, expected);
  }
  EXPECT_EQ(next, (std::map<unsigned, int>{{0, count}, {1, count}, {2, count}}));
}

/// A sink that blocks the writer thread until the gate opens.
class BlockingSink : public MemorySink {
 public:
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool held = false;
    bool open = false;
  };
  BlockingSink(StoredLog& stored, Gate& gate) noexcept : MemorySink(stored), gate_(gate) {}
  void write(const LogRecord& record) override {
    std::unique_lock lock(gate_.mutex);
    gate_.held = true;
    gate_.changed.notify_all();
    gate_.changed.wait(lock, [this] { return gate_.open; });
    MemorySink::write(record);
  }

 private:
  Gate& gate_;
};

TEST(LogServiceThreads, AReportMayBeReadWhileCoresLogTheirFirstRecords) {
  for (int round = 0; round < 5; ++round) {
    StoredLog stored;
    OsPlatform platform;
    LogService logs(platform, LogOptions(), one_sink<MemorySink>(stored));
    const Logger log = logs.logger("a");
    std::atomic<bool> ended{false};
    std::jthread reader([&] {
      while (!ended.load()) EXPECT_EQ(logs.report().dropped, 0U);
    });
    Runtime runtime(platform, cores(3));
    EXPECT_EQ(runtime.run_on_each_core(log_numbers, std::cref(log), 3), 0);
    ended.store(true);
    logs.flush();
    EXPECT_EQ(logs.report().written, 9U);
  }
}

TEST(LogServiceThreads, AHangingSinkDoesNotBlockCores) {
  constexpr std::uint64_t count = 5000;
  StoredLog stored;
  BlockingSink::Gate gate;
  OsPlatform platform;
  std::uint64_t dropped = 0;
  {
    LogOptions options;
    options.core_buffer = 16_KiB;
    LogService logs(platform, options, one_sink<BlockingSink>(stored, gate));
    const Logger log = logs.logger("a");
    log.info("first");
    {
      std::unique_lock lock(gate.mutex);
      gate.changed.wait(lock, [&] { return gate.held; });
    }
    Runtime runtime(platform, cores(2));
    // The runtime finishes although the writer thread is blocked.
    ASSERT_EQ(runtime.run_on_each_core(log_numbers, std::cref(log), int{count}), 0);
    dropped = logs.report().dropped;
    EXPECT_GT(dropped, 0u);
    {
      const std::lock_guard lock(gate.mutex);
      gate.open = true;
    }
    gate.changed.notify_all();
  }
  std::uint64_t numbers = 0;
  std::uint64_t told = 0;
  for (const StoredRecord& each : stored.records) {
    if (each.logger == "a" && each.text != "first") ++numbers;
    if (each.logger != "weir.logs") continue;
    const std::string_view beginning = "records dropped: a buffer was full dropped=";
    ASSERT_TRUE(each.text.starts_with(beginning)) << each.text;
    told += std::stoull(each.text.substr(beginning.size()));
  }
  EXPECT_EQ(numbers + dropped, 2 * count);
  EXPECT_EQ(told, dropped);
}

TEST(LogServiceThreads, ThreadsWithoutALoopCanLog) {
  constexpr int count = 1000;
  StoredLog stored;
  OsPlatform platform;
  {
    LogOptions options;
    options.core_buffer = 1_MiB;
    LogService logs(platform, options, one_sink<MemorySink>(stored));
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&logs, thread] {
        const Logger log = logs.logger("t" + std::to_string(thread));
        for (int number = 0; number < count; ++number) log.info("number", field("n", number));
      });
    }
    for (std::thread& each : threads) each.join();
    logs.flush();
    EXPECT_EQ(stored.records.size(), 3u * count);
  }
  std::map<std::string, int> next;
  for (const StoredRecord& each : stored.records) {
    ASSERT_EQ(each.text, "number n=" + std::to_string(next[each.logger]++));
    ASSERT_EQ(each.core, LogRecord::no_core);
  }
}

/// Calls `function(thread)` on several threads at the same time, and waits for them.
template <class Function>
void on_threads(Function function) {
  constexpr int count = 3;
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < count; ++thread) {
    threads.emplace_back([&, thread] {
      ready.fetch_add(1);
      while (ready.load() < count) std::this_thread::yield();
      function(thread);
    });
  }
  for (std::thread& each : threads) each.join();
}

TEST(LogServiceThreads, NamesAndLevelsAreForAllThreads) {
  StoredLog stored;
  OsPlatform platform;
  LogService logs(platform, LogOptions(), one_sink<MemorySink>(stored));
  LogOptions options;
  for (int i = 0; i < 20; ++i) options.levels["level" + std::to_string(i)] = LogLevel::debug;
  on_threads([&](int thread) {
    for (int i = 0; i < 400; ++i) {
      const std::string name = "t" + std::to_string(thread) + "." + std::to_string(i);
      EXPECT_EQ(logs.logger(name).name(), name);
      if (i % 4 == thread) logs.set_levels(options);
      if (i % 4 == 3) logs.set_level("level" + std::to_string(i % 20), LogLevel::debug);
      for (int j = 0; j < 20; ++j) {
        const LogLevel level = logs.level("level" + std::to_string(j) + ".below");
        EXPECT_TRUE(level == LogLevel::debug || level == LogLevel::info);
      }
    }
  });
  for (int i = 0; i < 400; ++i) EXPECT_TRUE(logs.logger("t0." + std::to_string(i)).name() != "");
}

TEST(LogServiceThreads, IdsOfThreadsWithoutALoopAreUnique) {
  constexpr int each = 5000;
  StoredLog stored;
  OsPlatform platform;
  LogOptions options;
  options.core_buffer = 4_MiB;
  {
    LogService logs(platform, options, one_sink<MemorySink>(stored));
    const Logger log = logs.logger("a");
    on_threads([&](int) {
      for (int i = 0; i < each; ++i) log.with_id().info("m");
    });
  }
  std::set<std::string> ids;
  for (const StoredRecord& record : stored.records) ids.insert(record.text);
  EXPECT_EQ(stored.records.size(), 3U * each);
  EXPECT_EQ(ids.size(), 3U * each);
}

TEST(LogServiceThreads, AllThreadsMayFlush) {
  constexpr int count = 300;
  StoredLog stored;
  OsPlatform platform;
  LogOptions options;
  options.core_buffer = 1_MiB;
  LogService logs(platform, options, one_sink<MemorySink>(stored));
  on_threads([&](int thread) {
    const Logger log = logs.logger("t" + std::to_string(thread));
    for (int number = 0; number < count; ++number) {
      log.info("number", field("n", number), field("text", std::string(500, 'x')));
      logs.flush();
    }
  });
  std::map<std::string, int> next;
  for (const StoredRecord& each : stored.records) {
    const std::string expected = "number n=" + std::to_string(next[each.logger]++) + " text=x";
    ASSERT_TRUE(each.text.starts_with(expected)) << each.text;
  }
  EXPECT_EQ(next, (std::map<std::string, int>{{"t0", count}, {"t1", count}, {"t2", count}}));
  EXPECT_EQ(logs.report().written, 3U * count);
}

TEST(LogServiceThreads, LevelsChangeWhileCoresLog) {
  StoredLog stored;
  OsPlatform platform;
  LogService logs(platform, LogOptions(), one_sink<MemorySink>(stored));
  const Logger log = logs.logger("a.b");
  std::atomic<bool> over{false};
  std::thread changer([&] {
    while (!over.load()) {
      logs.set_level("a", LogLevel::off);
      logs.set_level("a", LogLevel::info);
      static_cast<void>(logs.logger("c"));
    }
  });
  Runtime runtime(platform, cores(2));
  EXPECT_EQ(runtime.run_on_each_core(log_numbers, std::cref(log), 2000), 0);
  over.store(true);
  changer.join();
  logs.set_level("a", LogLevel::info);
  log.info("last");
  logs.flush();
  ASSERT_FALSE(stored.records.empty());
  EXPECT_EQ(stored.records.back().text, "last");
}

/// Gives the whole pages of the bytes back to the kernel. A write to them then takes longer.
void release_pages(std::vector<std::byte>& bytes) {
  constexpr std::uintptr_t page = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t end = (begin + bytes.size()) / page * page;
  if (first >= end) return;
  ASSERT_EQ(::madvise(bytes.data() + (first - begin), end - first, MADV_DONTNEED), 0);
}

// The ring is always full, so its producer uses the memory of a record again as soon as the record
// has been taken. The consumer copies the record slowly.
TEST(LogRingThreads, ARecordIsCopiedBeforeItsMemoryIsUsedAgain) {
  constexpr std::uint64_t count = 2500;
  constexpr std::size_t size = 64 * 1024;
  const auto record = [](std::uint64_t number) {
    std::vector<std::byte> bytes(size, static_cast<std::byte>(number % 251));
    constexpr auto written = static_cast<std::uint32_t>(size);
    std::memcpy(bytes.data(), &written, sizeof written);
    return bytes;
  };
  LogRing ring(2 * size, 0);
  std::thread producer([&] {
    for (std::uint64_t number = 0; number < count; ++number) {
      const auto next = record(number);
      while (!ring.push(next)) std::this_thread::yield();
    }
  });
  std::vector<std::byte> taken;
  std::uint64_t received = 0;
  std::uint64_t wrong = 0;
  while (received < count) {
    ring.mark();
    release_pages(taken);
    if (ring.pop(taken)) {
      wrong += taken == record(received) ? 0 : 1;
      ++received;
    } else {
      std::this_thread::yield();
    }
  }
  producer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_TRUE(ring.empty());
}

/// A sink that needs a different time for each flush.
class IrregularSink final : public LogSink {
 public:
  void write(const LogRecord&) override {}
  void flush() override {
    constexpr unsigned length_max = 4000;
    length_ = (length_ + 7) % length_max;
    for (unsigned step = 0; step < length_; ++step) static_cast<void>(slow_);
  }

 private:
  unsigned length_ = 0;
  volatile unsigned slow_ = 0;  // a read takes time
};

// The next record comes just before or after the writer thread goes to sleep, or at that moment.
TEST(LogServiceThreads, ARecordThatComesWhenTheWriterGoesToSleepIsWritten) {
  constexpr unsigned count = 20'000;
  OsPlatform platform;
  LogService logs(platform, LogOptions(), one_sink<IrregularSink>());
  const auto log_one_by_one = [&logs](Scope&) -> Task<Result<>> {
    const Logger log = logs.logger("a");
    for (unsigned number = 1; number <= count; ++number) {
      log.info("m");
      for (unsigned looks = 1; logs.report().written != number; ++looks) {
        if (looks % 1000 == 0) std::this_thread::yield();
      }
      if (number % 100 == 0) co_await yield();
    }
    co_return {};
  };
  Runtime runtime(platform, cores(1));
  EXPECT_EQ(runtime.run_on_each_core(log_one_by_one), 0);
  EXPECT_EQ(logs.report().dropped, 0U);
}

TEST(LogServiceThreads, SeveralRuntimesMayUseOneLogService) {
  StoredLog stored;
  OsPlatform platform;
  {
    LogService logs(platform, LogOptions(), one_sink<MemorySink>(stored));
    const Logger log = logs.logger("a");
    for (int round = 0; round < 20; ++round) {
      Runtime runtime(platform, cores(2));
      ASSERT_EQ(runtime.run_on_each_core(log_numbers, std::cref(log), 10), 0);
    }
    EXPECT_EQ(logs.report().dropped, 0u);
  }
  EXPECT_EQ(stored.records.size(), 20u * 2 * 10);
}

}  // namespace
}  // namespace weir::log_service_threads_test
