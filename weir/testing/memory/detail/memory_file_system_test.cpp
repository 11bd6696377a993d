// Tests of the files of a simulated platform: the errors and effects of Linux, and losses of power.
#include "weir/testing/memory/detail/memory_file_system.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "weir/testing/test/scripted_platform.hpp"

namespace weir::memory_file_system_test {
namespace {

using os::FileKind;
using os::FileMode;

class MemoryFileSystemTest : public testing::Test {
 protected:
  /// Returns the errno value of a result; 0 if it has a value.
  template <class T>
  static int error_of(const Result<T>& result) {
    return result ? 0 : result.error().value();
  }
  int open_error(const std::string& path, FileMode mode = FileMode::read) {
    return error_of(files_.open(path, {.mode = mode}));
  }
  loop::Descriptor open(const std::string& path, FileMode mode = FileMode::read) {
    auto opened = files_.open(path, {.mode = mode});
    EXPECT_TRUE(opened) << path << ": " << opened.error().message();
    return opened ? std::move(*opened) : loop::Descriptor();
  }
  void put(const std::string& path, std::string_view text) {
    const loop::Descriptor file = open(path, FileMode::truncate);
    EXPECT_EQ(files_.write_at(file.value(), to_bytes(text), 0).value_or(99), text.size());
  }
  std::string get(const std::string& path) {
    const auto file = files_.open(path, {});
    if (!file) return "error " + std::to_string(file.error().value());
    std::string text(100, '\0');
    text.resize(files_.read_at(file->value(), std::as_writable_bytes(std::span(text)), 0).value());
    return text;
  }
  std::string list(const std::string& path) {
    const auto entries = files_.list(path, 100);
    if (!entries) return "error " + std::to_string(entries.error().value());
    std::string text;
    for (const os::DirectoryEntry& each : *entries) {
      text += each.name + (each.kind == FileKind::directory ? "/ " : " ");
    }
    return text;
  }
  void make(const std::string& path) { EXPECT_TRUE(files_.make_directory(path, 0755)) << path; }
  WallTime modified(const std::string& path) { return files_.path_status(path)->modified; }
  void pass(Duration length) { platform_.clock().move_to(after(platform_.now(), length)); }

  ScriptedPlatform platform_;
  MemoryFileSystem& files_ = platform_.files();
};

TEST_F(MemoryFileSystemTest, BeginsWithAnEmptyFolderForTemporaryFiles) {
  EXPECT_EQ(list("/"), "tmp/ ");
  EXPECT_EQ(list("/tmp"), "");
  EXPECT_EQ(files_.path_status("/")->permissions, 0755U);
  EXPECT_EQ(files_.path_status("/tmp")->permissions, 0755U);
  EXPECT_EQ(files_.path_status("/tmp")->kind, FileKind::directory);
  files_.lose_power();
  EXPECT_EQ(list("/"), "tmp/ ");
}

TEST_F(MemoryFileSystemTest, PathsAreResolvedAsOnLinux) {
  make("/tmp/a");
  make("/tmp/a/b");
  put("/tmp/a/file", "text");
  for (const char* const path :
       {"/tmp/a/file", "tmp/a/file", "//tmp///a//file", "/tmp/./a/./file", "/tmp/a/b/../file",
        "/tmp/a/b/../../a/file", "/../tmp/a/file", "../../tmp/a/file", "/tmp/../tmp/a/file",
        "/tmp/a/b/../b/../file"}) {
    EXPECT_EQ(get(path), "text") << path;
  }
  EXPECT_EQ(list("/tmp/a/b/.."), "b/ file ");
  EXPECT_EQ(list("/tmp/a/"), "b/ file ");
  struct {
    std::string path;
    int error;
  } const cases[] = {
      {"", ENOENT},
      {std::string("/tmp/a\0b", 8), EINVAL},
      {"/tmp/missing", ENOENT},
      {"/tmp/missing/file", ENOENT},
      {"/tmp/missing/../a/file", ENOENT},
      {"/tmp/a/file/", ENOTDIR},
      {"/tmp/a/file/.", ENOTDIR},
      {"/tmp/a/file/x", ENOTDIR},
      {"/tmp/a/file/..", ENOTDIR},
      {"/tmp/" + std::string(255, 'x'), ENOENT},
      {"/tmp/" + std::string(256, 'x'), ENAMETOOLONG},
      {std::string(4095, '/'), 0},
      {std::string(4096, '/'), ENAMETOOLONG},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(error_of(files_.path_status(each.path)), each.error) << each.path;
    const int to_open = each.error == 0 ? EISDIR : each.error;
    EXPECT_EQ(open_error(each.path), to_open) << each.path;
    EXPECT_EQ(open_error(each.path, FileMode::read_write), to_open) << each.path;
  }
}

TEST_F(MemoryFileSystemTest, EachModeOpensAsOnLinux) {
  put("/tmp/there", "text");
  make("/tmp/folder");
  struct {
    FileMode mode;
    int missing;
    int there;
    const char* content;
  } const cases[] = {
      {FileMode::read, ENOENT, 0, "text"}, {FileMode::read_write, ENOENT, 0, "text"},
      {FileMode::append, 0, 0, "text"},    {FileMode::create_new, 0, EEXIST, "text"},
      {FileMode::truncate, 0, 0, ""},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(open_error("/tmp/missing", each.mode), each.missing);
    EXPECT_EQ(list("/tmp"), each.missing == 0 ? "folder/ missing there " : "folder/ there ");
    if (each.missing == 0) {
      EXPECT_EQ(files_.path_status("/tmp/missing")->kind, FileKind::file);
      EXPECT_TRUE(files_.remove("/tmp/missing"));
    }
    EXPECT_EQ(open_error("/tmp/there", each.mode), each.there);
    EXPECT_EQ(get("/tmp/there"), each.content);
    EXPECT_EQ(open_error("/tmp/folder", each.mode),
              each.mode == FileMode::create_new ? EEXIST : EISDIR);
    EXPECT_EQ(open_error("/tmp/new/", each.mode), each.missing == 0 ? EISDIR : ENOENT);
  }
  EXPECT_EQ(platform_.open_descriptors(), 0U);
}

TEST_F(MemoryFileSystemTest, AnOpenWithoutADescriptorChangesNothing) {
  put("/tmp/there", "text");
  platform_.set_descriptors_max(0);
  EXPECT_EQ(open_error("/tmp/new", FileMode::create_new), EMFILE);
  EXPECT_EQ(open_error("/tmp/there", FileMode::truncate), EMFILE);
  EXPECT_EQ(list("/tmp"), "there ");
  EXPECT_EQ(files_.path_status("/tmp/there")->size, 4U);
}

TEST_F(MemoryFileSystemTest, ReadsAndWritesFollowTheModeOfTheFile) {
  put("/tmp/a", "text");
  const loop::Descriptor reader = open("/tmp/a");
  const loop::Descriptor writer = open("/tmp/a", FileMode::append);
  const loop::Descriptor both = open("/tmp/a", FileMode::read_write);
  std::array<std::byte, 9> room{};
  EXPECT_EQ(files_.write_at(writer.value(), to_bytes("!"), 0).value(), 1U);
  EXPECT_EQ(get("/tmp/a"), "text!") << "an append ignores the offset";
  EXPECT_EQ(files_.write_at(both.value(), to_bytes("T"), 0).value(), 1U);
  EXPECT_EQ(files_.read_at(both.value(), room, 0).value(), 5U);
  EXPECT_EQ(to_text(Bytes(room).first(5)), "Text!");
  EXPECT_EQ(error_of(files_.read_at(writer.value(), room, 0)), EBADF);
  EXPECT_EQ(error_of(files_.write_at(reader.value(), to_bytes("x"), 0)), EBADF);
  EXPECT_EQ(error_of(files_.resize(reader.value(), 0)), EINVAL);
  EXPECT_TRUE(files_.resize(both.value(), 2));
  EXPECT_EQ(get("/tmp/a"), "Te");
  EXPECT_EQ(files_.file_status(reader.value())->size, 2U);
  for (const int closed : {-1, 2, 99}) {
    EXPECT_EQ(error_of(files_.read_at(closed, room, 0)), EBADF);
    EXPECT_EQ(error_of(files_.write_at(closed, to_bytes("x"), 0)), EBADF);
    EXPECT_EQ(error_of(files_.resize(closed, 0)), EBADF);
    EXPECT_EQ(error_of(files_.file_status(closed)), EBADF);
    EXPECT_EQ(error_of(files_.sync(closed)), EBADF);
  }
}

TEST_F(MemoryFileSystemTest, OffsetsHaveALimit) {
  put("/tmp/a", "text");
  const loop::Descriptor file = open("/tmp/a", FileMode::read_write);
  std::array<std::byte, 1> room{};
  const std::uint64_t end = os::file_offset_max;
  EXPECT_EQ(files_.read_at(file.value(), room, end).value_or(9), 0U);
  EXPECT_EQ(error_of(files_.read_at(file.value(), room, end + 1)), EINVAL);
  EXPECT_EQ(error_of(files_.write_at(file.value(), room, end)), EFBIG);
  EXPECT_EQ(error_of(files_.write_at(file.value(), room, end + 1)), EINVAL);
  EXPECT_EQ(error_of(files_.resize(file.value(), end + 1)), EINVAL);
  EXPECT_TRUE(files_.resize(file.value(), end));
  EXPECT_EQ(files_.file_status(file.value())->size, end);
}

TEST_F(MemoryFileSystemTest, PermissionsOfTheOwnerApply) {
  put("/tmp/file", "text");
  make("/tmp/folder");
  put("/tmp/folder/inner", "text");
  struct {
    unsigned permissions;
    int read;
    int read_write;
    int append;
  } const of_file[] = {
      {0777, 0, 0, 0},
      {0477, 0, EACCES, EACCES},
      {0277, EACCES, EACCES, 0},
      {0177, EACCES, EACCES, EACCES},
  };
  for (const auto& each : of_file) {
    ASSERT_TRUE(files_.set_permissions("/tmp/file", each.permissions));
    EXPECT_EQ(files_.path_status("/tmp/file")->permissions, each.permissions);
    EXPECT_EQ(open_error("/tmp/file"), each.read);
    EXPECT_EQ(open_error("/tmp/file", FileMode::read_write), each.read_write);
    EXPECT_EQ(open_error("/tmp/file", FileMode::append), each.append);
  }
  struct {
    unsigned permissions;
    int list;
    int enter;
    int change;
  } const of_folder[] = {
      {0777, 0, 0, 0},      {0577, 0, 0, EACCES},           {0677, 0, EACCES, EACCES},
      {0377, EACCES, 0, 0}, {0277, EACCES, EACCES, EACCES},
  };
  for (const auto& each : of_folder) {
    ASSERT_TRUE(files_.set_permissions("/tmp/folder", each.permissions));
    EXPECT_EQ(error_of(files_.list("/tmp/folder", 10)), each.list);
    EXPECT_EQ(open_error("/tmp/folder/inner"), each.enter);
    EXPECT_EQ(error_of(files_.make_directory("/tmp/folder/new", 0700)), each.change);
    EXPECT_EQ(error_of(files_.rename("/tmp/folder/inner", "/tmp/moved")), each.change);
    if (each.change == 0) {
      EXPECT_TRUE(files_.rename("/tmp/moved", "/tmp/folder/inner"));
    }
    EXPECT_EQ(error_of(files_.rename("/tmp/file", "/tmp/folder/file")), each.change);
    if (each.change == 0) {
      EXPECT_TRUE(files_.rename("/tmp/folder/file", "/tmp/file"));
    }
    EXPECT_EQ(error_of(files_.remove("/tmp/folder/new")),
              each.enter != 0 ? EACCES : (each.change == 0 ? 0 : ENOENT));
    EXPECT_EQ(open_error("/tmp/folder/made", FileMode::create_new), each.change);
    if (each.change == 0) {
      EXPECT_TRUE(files_.remove("/tmp/folder/made"));
    }
  }
  EXPECT_EQ(error_of(files_.set_permissions("/tmp/missing", 0700)), ENOENT);
  ASSERT_TRUE(files_.set_permissions("/tmp/file", 07644));
  EXPECT_EQ(files_.path_status("/tmp/file")->permissions, 0644U);
}

TEST_F(MemoryFileSystemTest, TheUmaskAppliesToNewFilesAndFolders) {
  ASSERT_TRUE(files_.make_directory("/tmp/folder", 0777));
  EXPECT_EQ(files_.path_status("/tmp/folder")->permissions, 0755U);
  ASSERT_TRUE(files_.open("/tmp/file", {.mode = FileMode::create_new, .permissions = 07666}));
  EXPECT_EQ(files_.path_status("/tmp/file")->permissions, 0644U);
}

TEST_F(MemoryFileSystemTest, RenamesAsLinuxDoes) {
  put("/tmp/file", "file");
  put("/tmp/other", "other");
  make("/tmp/folder");
  make("/tmp/empty");
  put("/tmp/folder/inner", "inner");
  make("/tmp/folder/deep");
  make("/tmp/folder/deep/deeper");
  struct {
    const char* from;
    const char* to;
    int error;
  } const cases[] = {
      {"/tmp/missing", "/tmp/x", ENOENT},
      {"/tmp/missing/x", "/tmp/x", ENOENT},
      {"/tmp/file", "/tmp/missing/x", ENOENT},
      {"/tmp/file", "/tmp/other/x", ENOTDIR},
      {"/tmp/file", "/tmp/new/", ENOTDIR},
      {"/", "/tmp/x", EBUSY},
      {"/tmp/..", "/tmp/x", EBUSY},
      {"/tmp/file", "/", EBUSY},
      {"/tmp/folder", "/tmp/folder/deep/x", EINVAL},
      {"/tmp/folder", "/tmp/folder/deep/deeper/x", EINVAL},
      {"/tmp/folder", "/tmp/folder/x", EINVAL},
      {"/tmp/folder", "/tmp/file", ENOTDIR},
      {"/tmp/file", "/tmp/empty", EISDIR},
      {"/tmp/empty", "/tmp/folder", ENOTEMPTY},
      {"/tmp/file", "/tmp/./file", 0},
      {"/tmp/folder", "/tmp/folder", 0},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(error_of(files_.rename(each.from, each.to)), each.error)
        << each.from << " to " << each.to;
  }
  EXPECT_EQ(list("/tmp"), "empty/ file folder/ other ") << "nothing has changed";
  EXPECT_TRUE(files_.rename("/tmp/file", "/tmp/other"));
  EXPECT_EQ(get("/tmp/other"), "file");
  EXPECT_TRUE(files_.rename("/tmp/folder", "/tmp/empty")) << "an empty folder is replaced";
  EXPECT_EQ(list("/tmp"), "empty/ other ");
  EXPECT_EQ(list("/tmp/empty"), "deep/ inner ");
  EXPECT_TRUE(files_.rename("/tmp/empty/deep", "/tmp/moved/"));
  EXPECT_TRUE(files_.rename("/tmp/empty", "/tmp/moved/in"));
  EXPECT_EQ(get("/tmp/moved/in/inner"), "inner");
}

TEST_F(MemoryFileSystemTest, RemovesFilesAndEmptyFolders) {
  make("/tmp/folder");
  put("/tmp/folder/file", "text");
  EXPECT_EQ(error_of(files_.remove("/tmp/folder")), ENOTEMPTY);
  EXPECT_EQ(error_of(files_.remove("/tmp/missing")), ENOENT);
  EXPECT_EQ(error_of(files_.remove("/tmp/folder/file/x")), ENOTDIR);
  EXPECT_EQ(error_of(files_.remove("/")), EBUSY);
  const loop::Descriptor file = open("/tmp/folder/file", FileMode::read_write);
  EXPECT_TRUE(files_.remove("/tmp/folder/file"));
  EXPECT_EQ(files_.file_status(file.value())->size, 4U) << "an open file stays";
  EXPECT_TRUE(files_.remove("/tmp/folder"));
  EXPECT_EQ(list("/tmp"), "");
  EXPECT_EQ(error_of(files_.make_directory("/tmp", 0700)), EEXIST);
  EXPECT_EQ(error_of(files_.make_directory("/x/y", 0700)), ENOENT);
  EXPECT_EQ(error_of(files_.make_directory("", 0700)), ENOENT);
}

TEST_F(MemoryFileSystemTest, AListHasALimit) {
  put("/tmp/b", "");
  put("/tmp/a", "");
  EXPECT_EQ(files_.list("/tmp", 2)->size(), 2U);
  EXPECT_EQ(files_.list("/tmp", 1).error(), Errc::limit_reached);
  EXPECT_EQ(list("/tmp"), "a b ") << "sorted";
  EXPECT_EQ(list("/tmp/a"), "error " + std::to_string(ENOTDIR));
  EXPECT_EQ(list("/tmp/x"), "error " + std::to_string(ENOENT));
}

TEST_F(MemoryFileSystemTest, ChangesSetTheTimeOfModification) {
  pass(1s);
  put("/tmp/a", "");
  const WallTime made = platform_.wall_time();
  EXPECT_EQ(modified("/tmp/a"), made);
  EXPECT_EQ(modified("/tmp"), made);
  const loop::Descriptor file = open("/tmp/a", FileMode::read_write);
  pass(1s);
  ASSERT_TRUE(files_.write_at(file.value(), to_bytes("x"), 0));
  EXPECT_EQ(modified("/tmp/a"), made + 1s);
  EXPECT_EQ(files_.file_status(file.value())->modified, made + 1s);
  EXPECT_EQ(modified("/tmp"), made) << "its names are the same";
  pass(1s);
  ASSERT_TRUE(files_.resize(file.value(), 0));
  EXPECT_EQ(modified("/tmp/a"), made + 2s);
  make("/tmp/folder");
  EXPECT_EQ(modified("/tmp"), made + 2s);
  pass(1s);
  ASSERT_TRUE(files_.rename("/tmp/a", "/tmp/folder/a"));
  EXPECT_EQ(modified("/tmp"), made + 3s);
  EXPECT_EQ(modified("/tmp/folder"), made + 3s);
  pass(1s);
  ASSERT_TRUE(files_.remove("/tmp/folder/a"));
  EXPECT_EQ(modified("/tmp/folder"), made + 4s);
  put("/tmp/b", "text");
  pass(1s);
  EXPECT_EQ(open_error("/tmp/b", FileMode::read_write), 0);
  EXPECT_EQ(modified("/tmp/b"), made + 4s);
  EXPECT_EQ(open_error("/tmp/b", FileMode::truncate), 0);
  EXPECT_EQ(modified("/tmp/b"), made + 5s) << "a cut is a change";
  EXPECT_EQ(modified("/tmp"), made + 4s) << "its names are the same";
}

TEST_F(MemoryFileSystemTest, AnotherFileOfTheSameNameHasAnotherInode) {
  put("/tmp/a", "1");
  put("/tmp/b", "1");
  const os::FileStatus first = files_.path_status("/tmp/a").value();
  EXPECT_EQ(files_.path_status("/tmp/a").value(), first);
  ASSERT_TRUE(files_.rename("/tmp/b", "/tmp/a"));
  EXPECT_NE(files_.path_status("/tmp/a")->inode, first.inode);
}

TEST_F(MemoryFileSystemTest, ALossOfPowerRestoresWhatWasSynced) {
  put("/tmp/kept", "first");
  put("/tmp/unnamed", "x");
  const loop::Descriptor kept = open("/tmp/kept", FileMode::read_write);
  ASSERT_TRUE(files_.sync(kept.value()));
  ASSERT_TRUE(files_.sync_directory("/tmp"));
  ASSERT_TRUE(files_.write_at(kept.value(), to_bytes("second"), 0));
  put("/tmp/late", "late");
  make("/tmp/folder");
  ASSERT_TRUE(files_.remove("/tmp/unnamed"));
  files_.lose_power();
  EXPECT_EQ(list("/tmp"), "kept unnamed ");
  EXPECT_EQ(get("/tmp/kept"), "first");
  EXPECT_EQ(get("/tmp/unnamed"), "") << "its bytes were never synced";
  EXPECT_EQ(error_of(files_.sync_directory("/tmp/kept")), ENOTDIR);
  EXPECT_EQ(error_of(files_.sync_directory("/tmp/missing")), ENOENT);
}

TEST_F(MemoryFileSystemTest, AMovedFolderIsInOneFolderAfterALossOfPower) {
  make("/tmp/from");
  make("/tmp/to");
  make("/tmp/from/moved");
  put("/tmp/from/moved/file", "text");
  for (const char* const path : {"/tmp/from/moved", "/tmp/from", "/tmp/to", "/tmp"}) {
    ASSERT_TRUE(files_.sync_directory(path));
  }
  ASSERT_TRUE(files_.rename("/tmp/from/moved", "/tmp/to/moved"));
  ASSERT_TRUE(files_.sync_directory("/tmp/to"));
  files_.lose_power();
  const std::string both = list("/tmp/from") + list("/tmp/to");
  EXPECT_EQ(both, "moved/ ");
  // Folders that contain each other among the synced names are destroyed all the same.
  make("/tmp/one");
  make("/tmp/two");
  for (const char* const path : {"/tmp", "/tmp/one", "/tmp/two"}) {
    ASSERT_TRUE(files_.sync_directory(path));
  }
  ASSERT_TRUE(files_.rename("/tmp/one", "/tmp/two/one"));
  ASSERT_TRUE(files_.sync_directory("/tmp/two"));
  ASSERT_TRUE(files_.rename("/tmp/two/one", "/tmp/one"));
  ASSERT_TRUE(files_.rename("/tmp/two", "/tmp/one/two"));
  ASSERT_TRUE(files_.sync_directory("/tmp/one"));
}

TEST_F(MemoryFileSystemTest, SpaceHasALimitThatSyncedDataUsesTwice) {
  files_.set_pages_max(2);
  put("/tmp/a", "text");
  EXPECT_EQ(files_.pages(), 1U);
  const loop::Descriptor file = open("/tmp/a", FileMode::append);
  ASSERT_TRUE(files_.sync(file.value()));
  EXPECT_EQ(files_.pages(), 2U);
  const loop::Descriptor other = open("/tmp/b", FileMode::append);
  EXPECT_EQ(error_of(files_.write_at(other.value(), to_bytes("x"), 0)), ENOSPC);
  EXPECT_EQ(files_.write_at(file.value(), to_bytes("x"), 0).value_or(0), 1U);
  files_.set_pages_max(3);
  EXPECT_EQ(files_.write_at(other.value(), to_bytes("x"), 0).value_or(0), 1U);
}

TEST_F(MemoryFileSystemTest, SpaceIsGivenBack) {
  files_.set_pages_max(2);
  put("/tmp/a", "a");
  put("/tmp/b", "b");
  EXPECT_EQ(files_.pages(), 2U);
  ASSERT_TRUE(files_.rename("/tmp/a", "/tmp/b"));
  EXPECT_EQ(files_.pages(), 1U) << "the file that was replaced";
  EXPECT_EQ(open_error("/tmp/b", FileMode::truncate), 0);
  EXPECT_EQ(files_.pages(), 0U);
  put("/tmp/b", "b");
  {
    const loop::Descriptor open_file = open("/tmp/b");
    ASSERT_TRUE(files_.remove("/tmp/b"));
    EXPECT_EQ(files_.pages(), 1U) << "an open file stays";
  }
  EXPECT_EQ(files_.pages(), 0U);
}

TEST_F(MemoryFileSystemTest, ALossOfPowerGivesTheSpaceOfUnsyncedDataBack) {
  put("/tmp/kept", "text");
  ASSERT_TRUE(files_.sync(open("/tmp/kept").value()));
  ASSERT_TRUE(files_.sync_directory("/tmp"));
  const loop::Descriptor kept = open("/tmp/kept", FileMode::read_write);
  const std::string more(3 * MemoryFileBytes::page_bytes, 'x');
  ASSERT_TRUE(files_.write_at(kept.value(), to_bytes(more), 0));
  put("/tmp/late", "late");
  EXPECT_EQ(files_.pages(), 5U) << "3, one synced, and 1";
  files_.lose_power();
  EXPECT_EQ(files_.pages(), 2U);
  EXPECT_EQ(get("/tmp/kept"), "text");
  files_.lose_power();
  EXPECT_EQ(get("/tmp/kept"), "text") << "the state of the last sync stays";
}

TEST_F(MemoryFileSystemTest, AKilledProcessCanOnlyRead) {
  put("/tmp/a", "text");
  const loop::Descriptor file = open("/tmp/a", FileMode::read_write);
  platform_.script.isolated = true;
  for (const FileMode mode :
       {FileMode::read_write, FileMode::truncate, FileMode::create_new, FileMode::append}) {
    EXPECT_EQ(open_error("/tmp/a", mode), EINTR);
  }
  EXPECT_EQ(error_of(files_.write_at(file.value(), to_bytes("x"), 0)), EINTR);
  EXPECT_EQ(error_of(files_.resize(file.value(), 0)), EINTR);
  EXPECT_EQ(error_of(files_.sync(file.value())), EINTR);
  EXPECT_EQ(error_of(files_.sync_directory("/tmp")), EINTR);
  EXPECT_EQ(error_of(files_.rename("/tmp/a", "/tmp/b")), EINTR);
  EXPECT_EQ(error_of(files_.remove("/tmp/a")), EINTR);
  EXPECT_EQ(error_of(files_.make_directory("/tmp/b", 0700)), EINTR);
  EXPECT_EQ(get("/tmp/a"), "text");
  EXPECT_EQ(list("/tmp"), "a ");
}

}  // namespace
}  // namespace weir::memory_file_system_test
