// Tests of cancelled file operations. Operations that have not begun are skipped; others are
// awaited.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "weir/net/files.hpp"
#include "weir/net/test/files_fixture.hpp"
#include "weir/task/combinators.hpp"

namespace weir::files_cancel_test {
namespace {

using files::File;
using files::Mode;

class FilesCancel : public FilesTest {};

TEST_P(FilesCancel, NothingBeginsIfTheSourceIsCancelled) {
  put("f", "old");
  CancelSource source;
  source.cancel();
  File file = run(files::open(path("f"), Mode::read_write)).value();
  EXPECT_EQ(error_of(run(files::open(path("g"), Mode::truncate), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(file.read(), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(file.write("new"), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(file.write_at(7, to_bytes("new")), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(file.sync(), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(file.resize(0), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(file.status(), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(files::read_file(path("f")), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(files::write_file(path("f"), "new"), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(files::status(path("f")), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(files::list(folder()), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(files::rename(path("f"), path("g")), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(files::remove(path("f")), &source)), Errc::cancelled);
  EXPECT_EQ(error_of(run(files::make_directory(path("g")), &source)), Errc::cancelled);
  EXPECT_EQ(file.position(), 0U);
  run(file.close(), &source);
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
  EXPECT_EQ(contents("f"), "old");
}

Task<> some_yields(int count) {
  for (int i = 0; i < count; ++i) co_await yield();
}

// The memory is freed as soon as the write has returned. The address sanitizer detects a later use.
Task<> write_lent(File& file, std::size_t size, Result<>& result) {
  const auto text = std::make_unique<std::string>(pattern(size, size));
  result = co_await file.write_at(0, to_bytes(*text));
}

Task<> write_and_cancel(File& file, std::size_t size, int yields, Result<>& result) {
  co_await race(write_lent(file, size, result), some_yields(yields));
}

TEST_P(FilesCancel, CancelledWriteDoesNotUseItsMemoryAfterItsReturn) {
  const std::size_t size = 300'000;
  File file = run(files::open(path("f"), Mode::truncate)).value();
  for (int round = 0; round < 60; ++round) {
    Result<> result;
    ASSERT_TRUE(run(file.resize(0)));
    run(write_and_cancel(file, size, round % 6, result));
    if (!result) {
      EXPECT_EQ(result.error(), Errc::cancelled);
    }
    const std::string left = contents("f").value();
    EXPECT_TRUE(left == pattern(size, size).substr(0, left.size())) << "not a prefix";
    if (result) {
      EXPECT_EQ(left.size(), size);
    }
  }
}

Task<> read_lent(File& file, Result<Buffer>& result) {
  result = co_await file.read(200'000);
}

Task<> read_and_cancel(File& file, int yields, Result<Buffer>& result) {
  co_await race(read_lent(file, result), some_yields(yields));
}

TEST_P(FilesCancel, CancelledReadLosesNoData) {
  const std::string text = pattern(2'000'000, 6);
  put("f", text);
  File file = run(files::open(path("f"))).value();
  std::string got;
  for (int round = 0; got.size() < text.size(); ++round) {
    Result<Buffer> result;
    if (round % 6 == 0) {
      run(read_lent(file, result));  // makes progress even on a slow disk
      EXPECT_TRUE(result);
    } else {
      run(read_and_cancel(file, round % 6, result));
    }
    if (result) {
      got += result->text();
    } else {
      EXPECT_EQ(result.error(), Errc::cancelled);
    }
    EXPECT_EQ(file.position(), got.size());
  }
  EXPECT_TRUE(got == text);
}

Task<> open_and_cancel(std::string path, int yields, Result<File>& result) {
  const auto open = [](std::string name, Result<File>& opened) -> Task<> {
    opened = co_await files::open(std::move(name), Mode::append);
  };
  co_await race(open(std::move(path), result), some_yields(yields));
}

// The fixture detects descriptors that were not closed.
TEST_P(FilesCancel, CancelledOpenLeavesNoDescriptorOpen) {
  for (int round = 0; round < 60; ++round) {
    Result<File> result = fail(Errc::closed);
    run(open_and_cancel(path("f"), round % 6, result));
    if (!result) {
      EXPECT_EQ(result.error(), Errc::cancelled);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On, FilesCancel, every_files_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir::files_cancel_test
