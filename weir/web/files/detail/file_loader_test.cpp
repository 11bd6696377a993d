// Tests of load_file() on the files of the operating system.
#include "weir/web/files/detail/file_loader.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

#include "weir/loop/os/os_platform.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::http::file_loader_test {
namespace {

namespace fs = std::filesystem;
using Content = LoadedVariant::Content;

class FileLoader : public testing::Test {
 protected:
  void SetUp() override {
    tree.write("www/a.txt", "content");
    tree.write("www/sub/index.html", "index");
    tree.write("secret.txt", "secret");
  }
  FileQuery query(const std::string& path) const {
    return {.root = tree.path("www"), .path = path, .index = "index.html", .precompressed = true};
  }
  Result<LoadedFile> load(const FileQuery& query) { return load_file(platform.files(), query); }
  std::error_code error_of(const FileQuery& query) {
    const auto loaded = load(query);
    return loaded ? std::error_code() : loaded.error();
  }

  os::TemporaryTree tree;
  OsPlatform platform;
};

TEST_F(FileLoader, ReadsSmallFilesAndOpensLargeOnes) {
  tree.write("www/large", std::string(small_file_max + 1, 'x'));
  const auto small = load(query("a.txt"));
  ASSERT_TRUE(small);
  EXPECT_EQ(small->variants[0].content, Content::bytes);
  EXPECT_EQ(*small->variants[0].bytes, "content");
  EXPECT_EQ(small->variants[0].status.size, 7u);
  EXPECT_EQ(small->variants[1].content, Content::missing);
  const auto large = load(query("large"));
  ASSERT_TRUE(large);
  EXPECT_EQ(large->variants[0].content, Content::file);
  EXPECT_TRUE(large->variants[0].file);
  EXPECT_EQ(error_of(query("missing")), system_error(ENOENT));
}

TEST_F(FileLoader, FindsDirectoriesAndTheirIndex) {
  const auto directory = load(query("sub"));
  ASSERT_TRUE(directory);
  EXPECT_TRUE(directory->is_directory);
  FileQuery wanted = query("sub");
  wanted.wants_directory = true;
  const auto index = load(wanted);
  ASSERT_TRUE(index);
  EXPECT_EQ(index->path, "sub/index.html");
  EXPECT_EQ(*index->variants[0].bytes, "index");
  wanted.index = "";
  EXPECT_EQ(error_of(wanted), system_error(ENOENT));
  wanted.index = "../sub";
  EXPECT_EQ(error_of(wanted), system_error(ENOENT));
  wanted.index = "index.html";
  wanted.path = "a.txt";
  EXPECT_EQ(error_of(wanted), system_error(ENOTDIR));
}

TEST_F(FileLoader, DoesNotReadAKnownFile) {
  FileQuery again = query("a.txt");
  again.known[0] = load(again)->variants[0].status;
  EXPECT_EQ(load(again)->variants[0].content, Content::unchanged);
  tree.write("www/a.txt", "other!!");
  fs::last_write_time(tree.path("www/a.txt"), fs::file_time_type::clock::now() + 10s);
  EXPECT_EQ(*load(again)->variants[0].bytes, "other!!");
}

TEST_F(FileLoader, NeverFollowsALinkOutOfTheFolder) {
  fs::create_symlink("../secret.txt", tree.path("www/out.txt"));
  fs::create_symlink(tree.path("secret.txt"), tree.path("www/absolute.txt"));
  fs::create_symlink("../secret.txt", tree.path("www/a.txt.gz"));
  fs::create_symlink(tree.path("secret.txt"), tree.path("www/a.txt.br"));
  fs::create_directory(tree.path("www/linked"));
  fs::create_symlink("../../secret.txt", tree.path("www/linked/index.html"));
  for (const auto links : {os::BeneathLinks::none, os::BeneathLinks::inside}) {
    const auto with = [&](FileQuery wanted) {
      wanted.links = links;
      return wanted;
    };
    EXPECT_TRUE(error_of(with(query("out.txt"))));
    EXPECT_TRUE(error_of(with(query("absolute.txt"))));
    FileQuery index = query("linked");
    index.wants_directory = true;
    EXPECT_TRUE(error_of(with(index)));
    const auto loaded = load(with(query("a.txt")));
    ASSERT_TRUE(loaded);
    for (std::size_t each = 1; each < variants_max; ++each) {
      EXPECT_EQ(loaded->variants[each].content, Content::missing);
    }
  }
}

TEST_F(FileLoader, FollowsLinksInsideTheFolderByOption) {
  fs::create_symlink("a.txt", tree.path("www/link.txt"));
  tree.write("www/b.gz", "zipped");
  fs::create_symlink("b.gz", tree.path("www/link.txt.gz"));
  FileQuery wanted = query("link.txt");
  EXPECT_EQ(error_of(wanted), system_error(ELOOP));
  wanted.links = os::BeneathLinks::inside;
  const auto loaded = load(wanted);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(*loaded->variants[0].bytes, "content");
  EXPECT_EQ(*loaded->variants[3].bytes, "zipped");
}

TEST_F(FileLoader, LeavesOutNeighboursThatAreOlderThanTheirFile) {
  tree.write("www/a.txt.br", "brotli");
  tree.write("www/a.txt.zst", "zstd");
  tree.write("www/a.txt.gz", "gzip");
  const auto modified = fs::last_write_time(tree.path("www/a.txt"));
  fs::last_write_time(tree.path("www/a.txt.br"), modified - std::chrono::microseconds(1));
  fs::last_write_time(tree.path("www/a.txt.zst"), modified);
  FileQuery again = query("a.txt");
  for (int time = 0; time < 2; ++time) {
    const auto loaded = load(again);
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->variants[1].content, Content::missing);
    EXPECT_NE(loaded->variants[2].content, Content::missing);
    EXPECT_NE(loaded->variants[3].content, Content::missing);
    for (const std::size_t each : {0U, 2U, 3U}) again.known[each] = loaded->variants[each].status;
  }
  fs::last_write_time(tree.path("www/a.txt"), modified + std::chrono::hours(1));
  const auto touched = load(again);
  ASSERT_TRUE(touched);
  for (std::size_t each = 1; each < variants_max; ++each) {
    EXPECT_EQ(touched->variants[each].content, Content::missing) << each;
  }
}

TEST_F(FileLoader, ReadsNeighboursOnlyByOption) {
  tree.write("www/a.txt.zst", "zstd");
  EXPECT_EQ(*load(query("a.txt"))->variants[2].bytes, "zstd");
  FileQuery plain = query("a.txt");
  plain.precompressed = false;
  EXPECT_EQ(load(plain)->variants[2].content, Content::missing);
  fs::create_directory(tree.path("www/a.txt.br"));
  EXPECT_EQ(load(query("a.txt"))->variants[1].content, Content::missing);
}

}  // namespace
}  // namespace weir::http::file_loader_test
