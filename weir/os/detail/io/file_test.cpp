// Tests of file operations that do more than their system calls.
#include "weir/os/detail/io/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "weir/os/detail/io/text_file.hpp"
#include "weir/os/test/scarce_descriptors.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::file_test {
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

/// Ends this (child) process, which has no terminal, with 0 if a terminal that it opens does not
/// become its controlling terminal. Ends with 77 if this machine has no pseudoterminals.
[[noreturn]] void open_a_terminal() {
  if (::setsid() < 0) ::_exit(2);
  const Fd controller(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 100> name{};
  if (!controller || ::grantpt(controller.get()) != 0 || ::unlockpt(controller.get()) != 0 ||
      ::ptsname_r(controller.get(), name.data(), name.size()) != 0) {
    ::_exit(77);
  }
  const auto terminal = open_file(name.data(), {.mode = FileMode::read_write});
  if (!terminal || ::isatty(terminal->get()) != 1) ::_exit(3);
  ::_exit(::open("/dev/tty", O_RDWR | O_CLOEXEC) < 0 && errno == ENXIO ? 0 : 4);
}

bool ends_with_0_or_77(int status) {
  return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
}

TEST(FileDeathTest, ATerminalDoesNotBecomeThatOfTheProcess) {
  EXPECT_EXIT(open_a_terminal(), ends_with_0_or_77, "");
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

TEST(File, OpensForReadingByDefault) {
  const TemporaryTree tree;
  tree.write("f", "text");
  const Fd file = open_file(tree.path("f"), {}).value();
  EXPECT_EQ(::fcntl(file.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  const mode_t before = ::umask(0);
  const auto made = open_file(tree.path("new"), {.mode = FileMode::append});
  ::umask(before);
  EXPECT_EQ(file_status(made->get()).value().permissions, 0666U);
}

TEST(File, RejectsPathsThatTheKernelWouldCut) {
  const TemporaryTree tree;
  tree.write("f", "text");
  const std::string good = tree.path("f");
  const std::string cut = good + std::string("\0x", 2);
  for (const auto& [path, error] : {std::pair(std::string(), ENOENT), std::pair(cut, EINVAL)}) {
    const std::error_code expected = system_error(error);
    EXPECT_EQ(error_of(validate_path(path)), expected);
    EXPECT_EQ(error_of(open_file(path, {})), expected);
    EXPECT_EQ(error_of(path_status(path)), expected);
    EXPECT_EQ(error_of(list_directory(path, 1)), expected);
    EXPECT_EQ(error_of(rename_path(path, good)), expected);
    EXPECT_EQ(error_of(rename_path(good, path)), expected);
    EXPECT_EQ(error_of(remove_path(path)), expected);
    EXPECT_EQ(error_of(make_directory(path, 0777)), expected);
    EXPECT_EQ(error_of(sync_directory(path)), expected);
  }
  EXPECT_TRUE(validate_path(good));
  EXPECT_TRUE(path_status(good)) << "it is still there";
}

TEST(File, OffsetsReachTheKernelsMaximum) {
  const TemporaryTree tree;
  tree.write("f", "text");
  const Fd file = open_file(tree.path("f"), {.mode = FileMode::read_write}).value();
  EXPECT_EQ(read_at(file.get(), {}, file_offset_max).value(), 0U);
  std::array<std::byte, 4> bytes{};
  const std::error_code invalid = system_error(EINVAL);
  for (const std::uint64_t offset : {file_offset_max + 1, std::uint64_t{UINT64_MAX}}) {
    EXPECT_EQ(error_of(read_at(file.get(), bytes, offset)), invalid);
    EXPECT_EQ(error_of(write_at(file.get(), bytes, offset)), invalid);
    EXPECT_EQ(error_of(resize_file(file.get(), offset)), invalid);
  }
  EXPECT_EQ(file_status(file.get()).value().size, 4U);
}

TEST(File, ReadsWritesAndResizesAtOffsets) {
  const TemporaryTree tree;
  const std::string path = tree.path("f");
  tree.write("f", "0123456789");
  const Fd file = open_file(path, {.mode = FileMode::read_write}).value();
  std::array<std::byte, 4> bytes{};
  EXPECT_EQ(read_at(file.get(), bytes, 3).value(), 4U);
  EXPECT_EQ(to_text(bytes), "3456");
  EXPECT_EQ(read_at(file.get(), bytes, 8).value(), 2U);
  EXPECT_EQ(read_at(file.get(), bytes, 10).value(), 0U);
  EXPECT_EQ(write_at(file.get(), to_bytes("xyz"), 2).value(), 3U);
  ASSERT_TRUE(resize_file(file.get(), 6));
  ASSERT_TRUE(sync_file(file.get()));
  EXPECT_EQ(read_text_file(path).value(), "01xyz5");
  ASSERT_TRUE(resize_file(file.get(), 8));
  EXPECT_EQ(read_text_file(path).value(), std::string("01xyz5\0\0", 8));
}

TEST(File, EachModeOpensAsItSays) {
  const TemporaryTree tree;
  const auto write_to = [&](const char* name, FileMode mode) -> std::error_code {
    const auto file = open_file(tree.path(name), {.mode = mode});
    if (!file) return file.error();
    return error_of(write_at(file->get(), to_bytes("new"), 0));
  };
  for (const FileMode mode : {FileMode::read, FileMode::read_write}) {
    EXPECT_EQ(write_to("missing", mode), system_error(ENOENT));
  }
  tree.write("f", "content");
  EXPECT_EQ(write_to("f", FileMode::read), system_error(EBADF));
  EXPECT_EQ(write_to("f", FileMode::create_new), system_error(EEXIST));
  EXPECT_EQ(write_to("f", FileMode::append), std::error_code());
  EXPECT_EQ(read_text_file(tree.path("f")).value(), "contentnew");
  EXPECT_EQ(write_to("f", FileMode::read_write), std::error_code());
  EXPECT_EQ(read_text_file(tree.path("f")).value(), "newtentnew");
  EXPECT_EQ(write_to("f", FileMode::truncate), std::error_code());
  EXPECT_EQ(read_text_file(tree.path("f")).value(), "new");
  for (const auto& [name, mode] :
       {std::pair("a", FileMode::truncate), std::pair("b", FileMode::create_new),
        std::pair("c", FileMode::append)}) {
    EXPECT_EQ(write_to(name, mode), std::error_code());
    EXPECT_EQ(read_text_file(tree.path(name)).value(), "new") << name;
  }
}

TEST(File, ReportsTheKindOfAFile) {
  const TemporaryTree tree;
  EXPECT_EQ(path_status(tree.root()).value().kind, FileKind::directory);
  EXPECT_EQ(path_status("/dev/null").value().kind, FileKind::other);
  EXPECT_EQ(FileStatus().kind, FileKind::other);
  EXPECT_EQ(FileStatus().size, 0U);
  EXPECT_EQ(FileStatus().permissions, 0U);
  EXPECT_EQ(DirectoryEntry().kind, FileKind::other);
  tree.write("f", "");
  ASSERT_EQ(::chmod(tree.path("f").c_str(), 0705), 0);
  EXPECT_EQ(path_status(tree.path("f")).value().permissions, 0705U);
}

TEST(File, RenamesReplaceAndRemovalsRemove) {
  const TemporaryTree tree;
  tree.write("from", "new");
  tree.write("to", "old");
  ASSERT_TRUE(rename_path(tree.path("from"), tree.path("to")));
  EXPECT_EQ(read_text_file(tree.path("to")).value(), "new");
  EXPECT_EQ(error_of(path_status(tree.path("from"))), system_error(ENOENT));
  const mode_t before = ::umask(0);
  ASSERT_TRUE(make_directory(tree.path("folder"), 0750));
  ::umask(before);
  EXPECT_EQ(path_status(tree.path("folder")).value().permissions, 0750U);
  tree.write("folder/f", "");
  EXPECT_EQ(error_of(remove_path(tree.path("folder"))), system_error(ENOTEMPTY));
  ASSERT_TRUE(remove_path(tree.path("folder/f")));
  ASSERT_TRUE(remove_path(tree.path("folder")));
  EXPECT_EQ(list_directory(tree.root(), 10).value().size(), 1U);
}

TEST(File, FailuresAreTheKernels) {
  const TemporaryTree tree;
  const std::string missing = tree.path("missing");
  const std::error_code absent = system_error(ENOENT);
  EXPECT_EQ(error_of(open_file(missing, {})), absent);
  EXPECT_EQ(error_of(open_file(tree.root(), {})), system_error(EISDIR));
  EXPECT_EQ(error_of(path_status(missing)), absent);
  EXPECT_EQ(error_of(list_directory(missing, 1)), absent);
  EXPECT_EQ(error_of(rename_path(missing, tree.path("f"))), absent);
  EXPECT_EQ(error_of(remove_path(missing)), absent);
  EXPECT_EQ(error_of(make_directory(tree.root(), 0777)), system_error(EEXIST));
  EXPECT_EQ(error_of(sync_directory(missing)), absent);
  tree.write("f", "");
  EXPECT_EQ(error_of(list_directory(tree.path("f"), 1)), system_error(ENOTDIR));
  std::array<std::byte, 1> byte{};
  const std::error_code bad = system_error(EBADF);
  EXPECT_EQ(error_of(read_at(-1, byte, 0)), bad);
  EXPECT_EQ(error_of(write_at(-1, byte, 0)), bad);
  EXPECT_EQ(error_of(sync_file(-1)), bad);
  EXPECT_EQ(error_of(file_status(-1)), bad);
  EXPECT_NE(error_of(resize_file(-1, 0)), std::error_code());
}

TEST(File, ListingClosesTheDirectory) {
  const TemporaryTree tree;
  tree.write("f", "");
  const int before = lowest_free_descriptor();
  EXPECT_TRUE(list_directory(tree.root(), 1));
  EXPECT_FALSE(list_directory(tree.root(), 0));
  EXPECT_TRUE(sync_directory(tree.root()));
  EXPECT_EQ(lowest_free_descriptor(), before);
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
  EXPECT_GT(status.changed, status.modified) << "programs cannot set it";
  EXPECT_EQ(status.size, 5U);
  EXPECT_EQ(status.kind, FileKind::file);
}

TEST(File, TimesBeyondThoseOfAClockAreTheNearestOnes) {
  const TemporaryTree tree;
  tree.write("f", "12345");
  const auto modified_at = [&](std::time_t seconds) {
    const std::array<timespec, 2> times{{{1, 0}, {seconds, 0}}};
    EXPECT_EQ(::utimensat(AT_FDCWD, tree.path("f").c_str(), times.data(), 0), 0);
    return path_status(tree.path("f")).value().modified;
  };
  EXPECT_EQ(modified_at(2'208'988'800), WallTime(std::chrono::seconds(2'208'988'800)));  // 2040
  const WallTime far = modified_at(13'569'465'600);  // 2400; the file system may know a limit
  EXPECT_GT(far, WallTime(std::chrono::seconds(4'000'000'000)));
}

TEST(File, AnotherFileOfTheSameNameHasAnotherInode) {
  const TemporaryTree tree;
  tree.write("f", "1");
  tree.write("g", "1");
  const FileStatus first = path_status(tree.path("f")).value();
  EXPECT_EQ(path_status(tree.path("f")).value(), first);
  ASSERT_TRUE(rename_path(tree.path("g"), tree.path("f")));
  EXPECT_NE(path_status(tree.path("f")).value().inode, first.inode);
}

}  // namespace
}  // namespace weir::os::file_test
