// Tests of names of files and directories on every platform.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/net/files.hpp"
#include "weir/net/test/files_fixture.hpp"

namespace weir::files_names_test {
namespace {

using files::Entry;
using files::Kind;
using files::Mode;

std::error_code sys(int code) {
  return system_error(code);
}

class FileNames : public FilesTest {};

TEST_P(FileNames, ListIsSortedAndDistinguishesFilesAndDirectories) {
  EXPECT_EQ(run(files::list(folder())).value(), std::vector<Entry>{});
  put("b", "");
  put(".hidden", "");
  put("a b\n\xFF", "");
  ASSERT_TRUE(run(files::make_directory(path("dir"))));
  put("dir/inner", "");
  const std::vector<Entry> expected = {{".hidden", Kind::file},
                                       {"a b\n\xFF", Kind::file},
                                       {"b", Kind::file},
                                       {"dir", Kind::directory}};
  EXPECT_EQ(run(files::list(folder())).value(), expected);
  EXPECT_EQ(run(files::list(path("dir"))).value(), (std::vector<Entry>{{"inner", Kind::file}}));
  EXPECT_EQ(run(files::list(folder(), 4)).value().size(), 4U);
  EXPECT_EQ(error_of(run(files::list(folder(), 3))), Errc::limit_reached);
  EXPECT_EQ(error_of(run(files::list(path("none")))), sys(ENOENT));
  EXPECT_EQ(error_of(run(files::list(path("b")))), sys(ENOTDIR));
}

TEST_P(FileNames, ListsManyEntries) {
  std::vector<Entry> expected;
  for (int i = 1000; i < 2200; ++i) {
    const std::string name = std::to_string(i) + std::string(100, 'n');
    put(name, "");
    expected.push_back({name, Kind::file});
  }
  EXPECT_EQ(run(files::list(folder())).value(), expected);
}

TEST_P(FileNames, RenameReplacesAtomically) {
  put("from", "new");
  put("to", "old");
  ASSERT_TRUE(run(files::rename(path("from"), path("to"))));
  EXPECT_EQ(contents("from"), std::nullopt);
  EXPECT_EQ(contents("to"), "new");
  ASSERT_TRUE(run(files::rename(path("to"), path("to"))));
  EXPECT_EQ(contents("to"), "new");
  EXPECT_EQ(error_of(run(files::rename(path("none"), path("to")))), sys(ENOENT));
  EXPECT_EQ(contents("to"), "new");
}

TEST_P(FileNames, RenameDistinguishesFilesAndDirectories) {
  put("file", "text");
  for (const char* const name : {"one", "two", "one/inner"}) {
    ASSERT_TRUE(run(files::make_directory(path(name))));
  }
  EXPECT_EQ(error_of(run(files::rename(path("file"), path("two")))), sys(EISDIR));
  EXPECT_EQ(error_of(run(files::rename(path("two"), path("file")))), sys(ENOTDIR));
  EXPECT_EQ(error_of(run(files::rename(path("two"), path("one")))), sys(ENOTEMPTY));
  EXPECT_EQ(error_of(run(files::rename(path("one"), path("one/inner/x")))), sys(EINVAL));
  EXPECT_EQ(error_of(run(files::rename(path("file"), path("new/")))), sys(ENOTDIR));
  EXPECT_EQ(error_of(run(files::rename(path("file"), path("file/x")))), sys(ENOTDIR));
  ASSERT_TRUE(run(files::rename(path("one"), path("two"))));
  EXPECT_EQ(run(files::status(path("two/inner"))).value().kind, Kind::directory);
  ASSERT_TRUE(run(files::rename(path("file"), path("two/inner/file"))));
  EXPECT_EQ(contents("two/inner/../inner/./file"), "text");
  EXPECT_EQ(names(), std::vector<std::string>{"two"});
}

TEST_P(FileNames, RemovesFilesAndEmptyDirectories) {
  ASSERT_TRUE(run(files::make_directory(path("dir"))));
  EXPECT_EQ(error_of(run(files::make_directory(path("dir")))), sys(EEXIST));
  put("dir/file", "text");
  EXPECT_EQ(error_of(run(files::remove(path("dir")))), sys(ENOTEMPTY));
  EXPECT_EQ(error_of(run(files::remove(path("dir/file/")))), sys(ENOTDIR));
  ASSERT_TRUE(run(files::remove(path("dir/file"))));
  ASSERT_TRUE(run(files::remove(path("dir"))));
  EXPECT_EQ(error_of(run(files::remove(path("dir")))), sys(ENOENT));
  EXPECT_EQ(error_of(run(files::make_directory(path("none/dir")))), sys(ENOENT));
}

TEST_P(FileNames, DirectoriesCannotBeUsedAsFiles) {
  ASSERT_TRUE(run(files::make_directory(path("dir"), 0750)));
  const auto status = run(files::status(path("dir/"))).value();
  EXPECT_EQ(status.kind, Kind::directory);
  EXPECT_EQ(status.permissions, 0750U);
  for (const Mode mode : {Mode::read, Mode::read_write, Mode::truncate, Mode::append}) {
    EXPECT_EQ(error_of(run(files::open(path("dir"), mode))), sys(EISDIR));
  }
  EXPECT_EQ(error_of(run(files::open(path("dir"), Mode::create_new))), sys(EEXIST));
  EXPECT_EQ(error_of(run(files::open(path("new/"), Mode::truncate))), sys(EISDIR));
  EXPECT_EQ(error_of(run(files::read_file(path("dir")))), sys(EISDIR));
  EXPECT_EQ(error_of(run(files::write_file(path("dir"), "x"))), sys(EISDIR));
  put("file", "text");
  EXPECT_EQ(error_of(run(files::open(path("file/x")))), sys(ENOTDIR));
  EXPECT_EQ(error_of(run(files::open(path("file/")))), sys(ENOTDIR));
  EXPECT_EQ(names(), (std::vector<std::string>{"dir", "file"}));
}

// The kernel would take only the part before the zero byte as the name.
TEST_P(FileNames, RejectsZeroBytesInPaths) {
  put("f", "text");
  const std::string wrong = path("f") + std::string("\0.txt", 5);
  EXPECT_EQ(error_of(run(files::open(wrong))), sys(EINVAL));
  EXPECT_EQ(error_of(run(files::open(wrong, Mode::truncate))), sys(EINVAL));
  EXPECT_EQ(error_of(run(files::read_file(wrong))), sys(EINVAL));
  EXPECT_EQ(error_of(run(files::write_file(wrong, "x"))), sys(EINVAL));
  EXPECT_EQ(error_of(run(files::status(wrong))), sys(EINVAL));
  EXPECT_EQ(error_of(run(files::list(folder() + std::string("\0", 1)))), sys(EINVAL));
  EXPECT_EQ(error_of(run(files::rename(wrong, path("g")))), sys(EINVAL));
  EXPECT_EQ(error_of(run(files::rename(path("f"), wrong))), sys(EINVAL));
  EXPECT_EQ(error_of(run(files::remove(wrong))), sys(EINVAL));
  EXPECT_EQ(error_of(run(files::make_directory(wrong))), sys(EINVAL));
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
  EXPECT_EQ(contents("f"), "text");
}

TEST_P(FileNames, RejectsEmptyAndOverlongNames) {
  for (const auto& [name, error] :
       {std::pair(std::string(), ENOENT), std::pair(path(std::string(256, 'n')), ENAMETOOLONG),
        std::pair(path(std::string(5000, '/') + "n"), ENAMETOOLONG)}) {
    EXPECT_EQ(error_of(run(files::open(name))), sys(error));
    EXPECT_EQ(error_of(run(files::open(name, Mode::truncate))), sys(error));
    EXPECT_EQ(error_of(run(files::status(name))), sys(error));
    EXPECT_EQ(error_of(run(files::remove(name))), sys(error));
    EXPECT_EQ(error_of(run(files::list(name))), sys(error));
  }
  EXPECT_TRUE(run(files::write_file(path(std::string(255, 'n')), "x")));
}

INSTANTIATE_TEST_SUITE_P(On, FileNames, every_files_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir::files_names_test
