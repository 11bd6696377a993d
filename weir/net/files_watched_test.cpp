// Tests that file functions run no call that can wait for a disk on the loop's own thread.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/net/files.hpp"
#include "weir/net/test/files_fixture.hpp"

namespace weir::files_watched_test {
namespace {

using files::File;

/// Counts the calls that remove a file, in total and inside a turn of a loop. All these calls fail
/// if `failing` is set. Records the limit of the last list.
class WatchedFiles final : public OsFileSystem {
 public:
  using OsFileSystem::OsFileSystem;
  Result<> remove(const std::string& path) override {
    ++removed;
    if (Loop::current() != nullptr) ++removed_in_turns;
    if (const int error = failing.load(); error != 0) return fail(system_error(error));
    return OsFileSystem::remove(path);
  }
  Result<std::vector<os::DirectoryEntry>> list(const std::string& path,
                                               std::size_t entries_max) override {
    entries_listed_max = entries_max;
    return OsFileSystem::list(path, entries_max);
  }

  std::atomic<int> removed = 0;
  std::atomic<int> removed_in_turns = 0;
  std::atomic<int> failing = 0;
  std::atomic<std::size_t> entries_listed_max = 0;
};

/// Counts closed descriptors, in total and inside a turn of a loop.
class WatchedPlatform final : public OsPlatform {
 public:
  void close(int descriptor) noexcept override {
    ++closed;
    if (Loop::current() != nullptr) ++closed_in_turns;
    OsPlatform::close(descriptor);
  }
  WatchedFiles& files() noexcept override { return watched_files_; }

  std::atomic<int> closed = 0;
  std::atomic<int> closed_in_turns = 0;

 private:
  WatchedFiles watched_files_{*this};
};

class FilesWatched : public testing::TestWithParam<FilesKind> {
 protected:
  void SetUp() override {
    auto made = Loop::make(platform_, {.backend = GetParam().backend});
    if (!made) GTEST_SKIP() << "backend not available: " << made.error().message();
    loop_ = std::move(*made);
  }
  template <class T>
  T run(Task<T> task, CancelSource* cancel = nullptr) {
    return weir::run(*loop_, std::move(task), cancel);
  }
  std::string path(std::string_view name) const { return tree_.path(name); }
  std::size_t names() { return platform_.files().list(tree_.root(), 100).value().size(); }

  const os::TemporaryTree tree_;
  WatchedPlatform platform_;
  std::unique_ptr<Loop> loop_;
};

TEST_P(FilesWatched, WholeFilesAreClosedOnAnotherThread) {
  tree_.write("f", std::string(100'000, 'x'));
  EXPECT_EQ(run(files::read_file(path("f"))).value().size(), 100'000U);
  EXPECT_EQ(platform_.closed, 1);
  EXPECT_EQ(error_of(run(files::read_file(path("f"), 99'999))), Errc::limit_reached);
  EXPECT_EQ(platform_.closed, 2);
  ASSERT_TRUE(run(files::write_file(path("g"), "text")));
  EXPECT_EQ(platform_.closed, 3);
  EXPECT_EQ(platform_.files().removed, 0) << "a renamed file has no temporary name any more";
  EXPECT_EQ(platform_.closed_in_turns, 0);
}

Task<Result<>> cancel_and_write(File& file, CancelSource& own) {
  own.cancel();
  co_return co_await file.write("never");
}

Task<Result<>> fail_after_writing(File& file) {
  auto written = co_await file.write("text");
  if (!written) co_return written;
  co_return fail(system_error(ECONNRESET));
}

TEST_P(FilesWatched, CancelledAndFailedFilesAreClosedAndRemovedOnAnotherThread) {
  CancelSource source;
  auto cancelled = files::replace(path("f"), cancel_and_write, std::ref(source));
  EXPECT_EQ(error_of(run(std::move(cancelled), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(files::replace(path("f"), fail_after_writing))), system_error(ECONNRESET));
  EXPECT_EQ(names(), 0U);
  EXPECT_EQ(platform_.closed, 2);
  EXPECT_EQ(platform_.closed_in_turns, 0);
  EXPECT_EQ(platform_.files().removed, 2);
  EXPECT_EQ(platform_.files().removed_in_turns, 0);
}

TEST_P(FilesWatched, FailedRemovalIsNotRetriedOnTheLoop) {
  platform_.files().failing = EACCES;
  EXPECT_EQ(error_of(run(files::replace(path("f"), fail_after_writing))), system_error(ECONNRESET));
  EXPECT_EQ(platform_.files().removed, 1);
  EXPECT_EQ(platform_.files().removed_in_turns, 0);
}

TEST_P(FilesWatched, AListIsLimitedByDefault) {
  EXPECT_TRUE(run(files::list(tree_.root())));
  EXPECT_EQ(platform_.files().entries_listed_max, 100'000U);
}

INSTANTIATE_TEST_SUITE_P(On, FilesWatched, every_kernel_files_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir::files_watched_test
