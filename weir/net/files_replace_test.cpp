// Tests of atomic file replacement, with failures and cancellation in between.
#include <gtest/gtest.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/loop/os/os_platform.hpp"
#include "weir/net/files.hpp"
#include "weir/net/test/files_fixture.hpp"
#include "weir/task/combinators.hpp"

namespace weir::files_replace_test {
namespace {

using files::File;

class FilesReplace : public FilesTest {};
/// The tests that would write outside of the test's folder.
class SimulatedFilesReplace : public FilesReplace {};

Task<Result<>> write_text(File& file, std::string text) {
  co_return co_await file.write(text);
}

Task<Result<>> fail_midway(File& file, std::error_code error) {
  auto written = co_await file.write("half of it");
  EXPECT_TRUE(written);
  co_return fail(error);
}

Task<Result<>> throw_midway(File& file, std::string what) {
  auto written = co_await file.write("half of it");
  EXPECT_TRUE(written);
  throw std::runtime_error(what);
}

Task<Result<>> cancel_midway(File& file, std::string folder, std::vector<std::string>* seen,
                             CancelSource* own) {
  auto written = co_await file.write("half of it");
  EXPECT_TRUE(written);
  const auto entries = co_await files::list(folder);
  for (const auto& entry : entries.value()) seen->push_back(entry.name);
  own->cancel();
  co_return co_await file.write("the other half");
}

TEST_P(FilesReplace, CreatesAndReplacesAFile) {
  ASSERT_TRUE(run(files::replace(path("f"), write_text, std::string("first"))));
  EXPECT_EQ(contents("f"), "first");
  const std::string text = pattern(2'500'000, 5);
  ASSERT_TRUE(run(files::replace(path("f"), write_text, text)));
  EXPECT_TRUE(contents("f") == text);
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

TEST_P(FilesReplace, OpenOldFileStaysReadable) {
  put("f", "the old one");
  File old = run(files::open(path("f"))).value();
  ASSERT_TRUE(run(files::write_file(path("f"), "new")));
  EXPECT_EQ(run(read_rest(old, 4)).value(), "the old one");
  EXPECT_EQ(contents("f"), "new");
}

TEST_P(FilesReplace, FailureChangesNothing) {
  const std::error_code why = system_error(ECONNRESET);
  EXPECT_EQ(error_of(run(files::replace(path("f"), fail_midway, why))), why);
  EXPECT_EQ(names(), std::vector<std::string>{});
  put("f", "old");
  EXPECT_EQ(error_of(run(files::replace(path("f"), fail_midway, why))), why);
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
  EXPECT_EQ(contents("f"), "old");
}

TEST_P(FilesReplace, ExceptionChangesNothing) {
  put("f", "old");
  EXPECT_THROW(static_cast<void>(run(files::replace(path("f"), throw_midway, std::string("x")))),
               std::runtime_error);
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
  EXPECT_EQ(contents("f"), "old");
}

TEST_P(FilesReplace, CancelChangesNothing) {
  put("f", "old");
  CancelSource source;
  std::vector<std::string> seen;
  auto replacing = files::replace(path("f"), cancel_midway, folder(), &seen, &source);
  EXPECT_EQ(error_of(run(std::move(replacing), &source)), Errc::cancelled);
  ASSERT_EQ(seen.size(), 2U) << "the temporary file has its own name";
  EXPECT_TRUE(seen[0].starts_with(".weir-")) << seen[0];
  EXPECT_EQ(seen[0].find_first_not_of("0123456789abcdef", 6), std::string::npos) << seen[0];
  EXPECT_EQ(seen[0].size(), 6U + 16U) << seen[0];
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
  EXPECT_EQ(contents("f"), "old");
}

TEST_P(SimulatedFilesReplace, AcceptsANameWithoutAFolder) {
  ASSERT_TRUE(run(files::write_file("plain", "text")));
  EXPECT_EQ(run(files::read_file("/plain")).value(), "text");
  EXPECT_EQ(platform_->files().list("/", 10).value().size(), 2U) << "beside /tmp";
}

TEST_P(FilesReplace, MissingFolderIsAnError) {
  EXPECT_EQ(error_of(run(files::write_file(path("none/f"), "x"))), system_error(ENOENT));
  put("file", "");
  EXPECT_EQ(error_of(run(files::write_file(path("file/f"), "x"))), system_error(ENOTDIR));
  EXPECT_EQ(names(), std::vector<std::string>{"file"});
}

Task<Result<>> write_in_turn(std::string path, std::vector<std::string> texts, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& text : texts) {
      auto written = co_await files::write_file(path, text);
      if (!written) co_return written;
    }
  }
  co_return {};
}

Task<Result<>> read_again_and_again(std::string path, std::vector<std::string> texts, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    WEIR_CO_TRY(const auto text, co_await files::read_file(path));
    EXPECT_TRUE(text == texts[0] || text == texts[1]) << text.size();
  }
  co_return {};
}

TEST_P(FilesReplace, ReaderSeesTheOldOrTheNewFile) {
  const std::vector<std::string> texts = {pattern(150'000, 1), pattern(70'000, 2)};
  put("f", texts[0]);
  const auto both = run(
      weir::all(write_in_turn(path("f"), texts, 10), read_again_and_again(path("f"), texts, 40)));
  EXPECT_TRUE(both) << both.error().message();
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

INSTANTIATE_TEST_SUITE_P(On, FilesReplace, every_files_kind(),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(On, SimulatedFilesReplace, simulated_files_kinds(),
                         [](const auto& info) { return std::string(info.param.name); });

/// A platform whose random numbers are all 1, until `ones` of them were drawn.
class UnluckyPlatform final : public MemoryPlatform {
 public:
  std::uint64_t random() override {
    if (ones == 0) return 0xfedc'ba98'7654'3210U;
    --ones;
    return 1;
  }
  int ones = 0;
};

TEST(FilesReplaceNames, TriesAtMostEightNames) {
  UnluckyPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  const std::string used = "/tmp/.weir-0000000000000001";
  ASSERT_TRUE(weir::run(*loop, files::write_file("/tmp/old", "other")));
  ASSERT_TRUE(platform.files().rename("/tmp/old", used));
  const auto list_names = [](File& file, loop::Platform* of, std::string* last) -> Task<Result<>> {
    const auto entries = of->files().list("/tmp", 10);
    *last = entries.value().back().name;
    co_return co_await file.write("text");
  };
  std::string last;
  loop::Platform* const base = &platform;
  platform.ones = 7;
  EXPECT_TRUE(weir::run(*loop, files::replace("/tmp/f", list_names, base, &last)));
  EXPECT_EQ(last, ".weir-fedcba9876543210");
  platform.ones = 8;
  const auto failed = weir::run(*loop, files::write_file("/tmp/g", "text"));
  EXPECT_EQ(error_of(failed), system_error(EEXIST));
  EXPECT_EQ(weir::run(*loop, files::read_file(used)).value(), "other");
  EXPECT_EQ(platform.files().list("/tmp", 10).value().size(), 2U);
}

TEST(FilesReplaceNames, TriesNoOtherNameAfterAnotherError) {
  UnluckyPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  platform.ones = 8;
  const auto failed = weir::run(*loop, files::write_file("/none/f", "text"));
  EXPECT_EQ(error_of(failed), system_error(ENOENT));
  EXPECT_EQ(platform.ones, 7) << "one name";
}

/// Files whose directories cannot be synced. Records which ones should be.
class UnsyncedFiles final : public OsFileSystem {
 public:
  using OsFileSystem::OsFileSystem;
  Result<> sync_directory(const std::string& path) override {
    asked.push_back(path);
    return fail(system_error(EIO));
  }
  std::vector<std::string> asked;
};

class UnsyncedPlatform final : public OsPlatform {
 public:
  UnsyncedFiles& files() noexcept override { return files_; }

 private:
  UnsyncedFiles files_{*this};
};

TEST(FilesReplaceDurability, ErrorAfterTheRenameLeavesTheNewFileInPlace) {
  UnsyncedPlatform platform;
  const os::TemporaryTree tree;
  tree.write("f", "old");
  const auto loop = Loop::make(platform, {.backend = BackendChoice::epoll}).value();
  const auto replaced = weir::run(*loop, files::write_file(tree.path("f"), "new"));
  EXPECT_EQ(error_of(replaced), system_error(EIO));
  EXPECT_EQ(weir::run(*loop, files::read_file(tree.path("f"))).value(), "new");
  EXPECT_EQ(platform.files().list(tree.root(), 10).value().size(), 1U) << "no temporary file";
  EXPECT_EQ(platform.files().asked, std::vector<std::string>{tree.root() + "/"});
}

TEST(FilesReplaceDurability, FailedRenameIsNotMadeDurable) {
  UnsyncedPlatform platform;
  const os::TemporaryTree tree;
  tree.write("dir/f", "old");
  const auto loop = Loop::make(platform, {.backend = BackendChoice::epoll}).value();
  const auto replaced = weir::run(*loop, files::write_file(tree.path("dir"), "new"));
  EXPECT_EQ(error_of(replaced), system_error(EISDIR));
  EXPECT_TRUE(platform.files().asked.empty());
  EXPECT_EQ(platform.files().list(tree.root(), 10).value().size(), 1U) << "no temporary file";
}

}  // namespace
}  // namespace weir::files_replace_test
