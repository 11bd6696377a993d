// Tests of files in virtual time with cancellation, timeouts or a loss of power at every step.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/net/files.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::files_steps_test {
namespace {

using files::File;
using files::Mode;

MemoryPlatformOptions slow_files(MemoryFiles who) {
  MemoryPlatformOptions options;
  options.files = who;
  options.file_time = 10ms;
  return options;
}

class FilesSteps : public CancelSweepTest, public testing::WithParamInterface<MemoryFiles> {
 protected:
  FilesSteps() : CancelSweepTest(slow_files(GetParam())) {}

  std::string contents(const std::string& path) {
    const auto file = platform_.files().open(path, {});
    if (!file) return "(none)";
    std::string text(100'000, '\0');
    const MutableBytes room(reinterpret_cast<std::byte*>(text.data()), text.size());
    text.resize(platform_.files().read_at(file->value(), room, 0).value());
    return text;
  }
  /// Writes a file that survives a loss of power.
  void put(const std::string& path, const std::string& text) {
    const auto file = platform_.files().open(path, {.mode = os::FileMode::truncate});
    ASSERT_TRUE(platform_.files().write_at(file->value(), to_bytes(text), 0));
    ASSERT_TRUE(platform_.files().sync(file->value()));
    ASSERT_TRUE(platform_.files().sync_directory("/tmp"));
  }
  std::size_t files_in_tmp() { return platform_.files().list("/tmp", 100).value().size(); }
};

TEST_P(FilesSteps, ReplacementCancelledAtAnyStepIsAtomic) {
  int replaced = 0;
  const auto scenario = [&](CancelInjector& injector) -> Task<> {
    put("/tmp/f", "old");
    auto writing = injector.as_target(0, files::write_file("/tmp/f", "new"));
    const auto written = co_await std::move(writing);
    EXPECT_EQ(contents("/tmp/f"), written ? "new" : "old");
    EXPECT_EQ(files_in_tmp(), 1U);
    if (written) {
      ++replaced;
    } else {
      EXPECT_EQ(written.error(), Errc::cancelled);
    }
  };
  EXPECT_GT(sweep(1, scenario), 4U);
  EXPECT_GE(replaced, 1);
}

TEST_P(FilesSteps, CancelDoesNotAffectOtherTasks) {
  const auto scenario = [&](CancelInjector& injector) -> Task<> {
    put("/tmp/f", "text");
    auto first = injector.as_target(0, files::read_file("/tmp/f"));
    auto second = injector.as_target(1, files::write_file("/tmp/g", "other"));
    auto third = injector.as_target(2, files::read_file("/tmp/f"));
    const auto look = [&](Scope& scope) -> Task<Result<>> {
      const auto check = [](auto task) -> Task<> {
        const auto done = co_await std::move(task);
        if (!done) {
          EXPECT_EQ(done.error(), Errc::cancelled);
        }
      };
      scope.spawn(check(std::move(first)));
      scope.spawn(check(std::move(second)));
      const auto text = co_await std::move(third);
      if (text) {
        EXPECT_EQ(*text, "text");
      }
      co_return {};
    };
    std::ignore = co_await with_scope(OnFailure::isolate, look);
  };
  EXPECT_GT(sweep(3, scenario), 12U);
}

// The name leads to the complete old file or the complete new one after a loss of power at any
// moment.
TEST_P(FilesSteps, ReplacementSurvivesALossOfPowerAtAnyMoment) {
  const std::string old_text(9000, 'o');
  const std::string new_text(20'000, 'n');
  int old_seen = 0;
  for (int moment = 0; moment < 8; ++moment) {
    put("/tmp/f", old_text);
    const auto event = platform_.at(after(platform_.now(), moment * 5ms), [&] {
      platform_.files().lose_power();
      const std::string left = contents("/tmp/f");
      EXPECT_TRUE(left == old_text || left == new_text) << left.size() << " at " << moment;
      old_seen += left == old_text;
    });
    static_cast<void>(run_made(files::write_file, std::string("/tmp/f"), new_text));
    platform_.clock().cancel(event);
  }
  EXPECT_GE(old_seen, 1);
  put("/tmp/f", old_text);
  ASSERT_TRUE(run_made(files::write_file, std::string("/tmp/f"), new_text));
  platform_.files().lose_power();
  EXPECT_TRUE(contents("/tmp/f") == new_text) << "a reported replacement is durable";
}

TEST_P(FilesSteps, LossOfPowerDiscardsUnsyncedData) {
  const auto write = [](Mode mode, bool synced) -> Task<> {
    File file = (co_await files::open("/tmp/f", mode)).value();
    EXPECT_TRUE(co_await file.write("text"));
    if (synced) {
      EXPECT_TRUE(co_await file.sync());
    }
  };
  put("/tmp/f", "");
  run(write(Mode::append, false));
  platform_.files().lose_power();
  EXPECT_EQ(contents("/tmp/f"), "");
  run(write(Mode::append, true));
  run(write(Mode::append, false));
  EXPECT_EQ(contents("/tmp/f"), "texttext");
  platform_.files().lose_power();
  EXPECT_EQ(contents("/tmp/f"), "text");
}

TEST_P(FilesSteps, FullDiskLeavesTheOldFile) {
  put("/tmp/f", "old");
  platform_.files().set_pages_max(platform_.files().pages() + 2);
  const auto written = run_made(files::write_file, std::string("/tmp/f"), std::string(20'000, 'n'));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error(), system_error(ENOSPC));
  EXPECT_EQ(contents("/tmp/f"), "old");
  EXPECT_EQ(files_in_tmp(), 1U);
  EXPECT_TRUE(run_made(files::write_file, std::string("/tmp/f"), std::string("new")))
      << "the space of the temporary file is free again";
}

TEST_P(FilesSteps, OpenFailsWithoutAThreadAndLeavesNoFile) {
  platform_.set_threads_max(0);
  const auto opened =
      run_made(files::open, std::string("/tmp/f"), files::OpenOptions(Mode::truncate));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), system_error(EAGAIN));
  EXPECT_EQ(files_in_tmp(), 0U);
  platform_.set_threads_max(1);
  EXPECT_TRUE(run_made(files::write_file, std::string("/tmp/f"), std::string("text")));
}

// The pool is closed during the replacement. The temporary file is removed nevertheless.
TEST_P(FilesSteps, ReplacementRemovesItsTemporaryFileWithoutAThread) {
  put("/tmp/f", "old");
  const auto write = [](File& file, SharedPool* pool) -> Task<Result<>> {
    EXPECT_TRUE(co_await file.write("half"));
    pool->pool().close();
    co_return {};
  };
  const auto written = run_made(files::replace<decltype(write), SharedPool*>, std::string("/tmp/f"),
                                write, &shared_pool(*loop_));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error(), Errc::closed);
  EXPECT_EQ(contents("/tmp/f"), "old");
  EXPECT_EQ(files_in_tmp(), 1U);
}

TEST_P(FilesSteps, FullLaneRejectsCalls) {
  int refused = 0;
  const auto flood = [&](Scope& scope) -> Task<Result<>> {
    const auto ask = [](int& count) -> Task<> {
      const auto status = co_await files::status("/tmp");
      if (status) co_return;
      EXPECT_EQ(status.error(), Errc::limit_reached);
      ++count;
    };
    for (int i = 0; i < 6000; ++i) scope.spawn(ask(refused));
    co_return {};
  };
  EXPECT_TRUE(run_made([&] { return with_scope(OnFailure::isolate, flood); }));
  EXPECT_GT(refused, 0);
  EXPECT_LE(refused, 6000 - 4096);
}

INSTANTIATE_TEST_SUITE_P(On, FilesSteps,
                         testing::Values(MemoryFiles::by_backend, MemoryFiles::by_threads),
                         [](const auto& info) {
                           return info.param == MemoryFiles::by_backend ? "backend" : "threads";
                         });

class SlowFiles : public LoopTest {
 protected:
  SlowFiles() : LoopTest(slow_files(MemoryFiles::by_backend)) {}
};

Task<> read_with_timeouts(Duration& first, Result<Buffer>& read) {
  Loop& loop = *(co_await this_context()).loop;
  EXPECT_TRUE(co_await files::write_file("/tmp/f", "text"));
  File file = (co_await files::open("/tmp/f")).value();
  const Instant began = loop.now();
  const auto late = co_await timeout(4ms, file.read());
  EXPECT_FALSE(late);
  EXPECT_EQ(late.error(), Errc::timed_out);
  first = loop.now() - began;
  EXPECT_EQ(file.position(), 0U);
  read = co_await timeout(40ms, file.read());
}

TEST_F(SlowFiles, TimedOutReadLosesNoData) {
  Duration first{};
  Result<Buffer> read = fail(Errc::closed);
  run_made([&] { return read_with_timeouts(first, read); });
  EXPECT_EQ(first, 4ms);
  EXPECT_EQ(read.value().text(), "text");
}

TEST_F(SlowFiles, SimulatedFilesTakeTime) {
  const auto took = [&] {
    const Instant began = platform_.now();
    EXPECT_TRUE(run_made(files::write_file, std::string("/tmp/f"), std::string("text")));
    return platform_.now() - began;
  };
  EXPECT_EQ(took(), 20ms) << "one write, one sync";
}

TEST_F(SlowFiles, WritesPiecesOfAtMostAMebibyte) {
  constexpr std::size_t mebibyte = 1024 * 1024;
  const auto time_of = [&](std::size_t size) {
    const Instant began = platform_.now();
    EXPECT_TRUE(run_made(files::write_file, std::string("/tmp/f"), std::string(size, 'x')));
    return platform_.now() - began;
  };
  EXPECT_EQ(time_of(mebibyte), 20ms) << "one write, one sync";
  EXPECT_EQ(time_of(mebibyte + 1), 30ms);
  EXPECT_EQ(time_of(3 * mebibyte), 40ms);
}

}  // namespace
}  // namespace weir::files_steps_test
