// Tests of file operations that do more than their system calls.
#include "weir/os/detail/io/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/os/test/temporary_tree.hpp"

namespace weir::os {
namespace {

constexpr std::array every_mode{FileMode::read, FileMode::read_write, FileMode::truncate,
                                FileMode::create_new, FileMode::append};

template <class T>
std::error_code error_of(const Result<T>& result) {
  return result ? std::error_code() : result.error();
}

TEST(File, IsCloseOnExecAndBlocking) {
  const TemporaryTree tree;
  tree.write("f", "text");
  for (const FileMode mode : every_mode) {
    const std::string path = tree.path(mode == FileMode::create_new ? "new" : "f");
    const Fd file = open_file(path, {.mode = mode}).value();
    EXPECT_NE(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(::fcntl(file.get(), F_GETFL) & O_NONBLOCK, 0)
        << "io_uring would return EAGAIN if it had to wait for the disk";
  }
}

TEST(File, ANewFileGetsThePermissionsWithoutTheUmask) {
  const TemporaryTree tree;
  const mode_t before = ::umask(027);
  const auto made = open_file(tree.path("f"), {.mode = FileMode::create_new, .permissions = 0666});
  ::umask(before);
  ASSERT_TRUE(made);
  EXPECT_EQ(file_status(made->get()).value().permissions, 0640U);
}

TEST(File, RejectsAPipeWithoutWaiting) {
  const TemporaryTree tree;
  const std::string path = tree.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  for (const FileMode mode : every_mode) {
    const bool there = mode == FileMode::create_new;
    const std::error_code expected =
        there ? system_error(EEXIST) : make_error_code(Errc::unsupported);
    EXPECT_EQ(error_of(open_file(path, {.mode = mode})), expected);
  }
  // A pipe with a reader could be opened for writing immediately.
  const Fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(reader);
  EXPECT_EQ(error_of(open_file(path, {.mode = FileMode::append})), Errc::unsupported);
}

TEST(File, FollowsLinksExceptForNewFiles) {
  const TemporaryTree tree;
  tree.write("f", "text");
  ASSERT_EQ(::symlink("f", tree.path("link").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", tree.path("broken").c_str()), 0);
  EXPECT_TRUE(open_file(tree.path("link"), {}));
  EXPECT_EQ(path_status(tree.path("link")).value().size, 4U);
  EXPECT_EQ(error_of(open_file(tree.path("broken"), {})), system_error(ENOENT));
  EXPECT_EQ(error_of(open_file(tree.path("broken"), {.mode = FileMode::create_new})),
            system_error(EEXIST));
  ASSERT_TRUE(remove_path(tree.path("link")));
  EXPECT_TRUE(path_status(tree.path("f"))) << "only the link is gone";
}

TEST(File, ListsEntriesWithTheirKind) {
  const TemporaryTree tree;
  tree.write("file", "");
  ASSERT_TRUE(make_directory(tree.path("directory"), 0777));
  ASSERT_EQ(::symlink("file", tree.path("link").c_str()), 0);
  ASSERT_EQ(::mkfifo(tree.path("pipe").c_str(), 0600), 0);
  const auto entries = list_directory(tree.root(), 4).value();
  const std::vector<DirectoryEntry> expected{{"directory", FileKind::directory},
                                             {"file", FileKind::file},
                                             {"link", FileKind::link},
                                             {"pipe", FileKind::other}};
  EXPECT_EQ(entries, expected);
  EXPECT_EQ(error_of(list_directory(tree.root(), 3)), Errc::limit_reached);
  EXPECT_TRUE(sync_directory(tree.root()));
}

TEST(File, SortsListsByName) {
  const TemporaryTree tree;
  std::vector<DirectoryEntry> expected;
  for (int number = 100; number < 200; ++number) {
    // Creates the files in neither ascending nor descending order.
    tree.write(std::to_string(100 + (number * 37) % 100), "");
    expected.push_back({std::to_string(number), FileKind::file});
  }
  EXPECT_EQ(list_directory(tree.root(), 100).value(), expected);
}

TEST(File, AFullDeviceReportsNoSpace) {
  const Fd full = open_file("/dev/full", {.mode = FileMode::read_write}).value();
  const std::array<std::byte, 1> byte{};
  EXPECT_EQ(error_of(write_at(full.get(), byte, 0)), system_error(ENOSPC));
}

TEST(File, ReportsTheKernelsTimesAndSizes) {
  const TemporaryTree tree;
  tree.write("f", "12345");
  const std::array<timespec, 2> times{{{1, 0}, {1'700'000'000, 123'456'789}}};
  ASSERT_EQ(::utimensat(AT_FDCWD, tree.path("f").c_str(), times.data(), 0), 0);
  const FileStatus status = path_status(tree.path("f")).value();
  EXPECT_EQ(status.modified.time_since_epoch().count(), 1'700'000'000'123'456'789);
  EXPECT_EQ(status.size, 5U);
  EXPECT_EQ(status.kind, FileKind::file);
}

}  // namespace
}  // namespace weir::os
