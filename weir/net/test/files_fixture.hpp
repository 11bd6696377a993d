// Fixture of the tests of files. It provides each platform and backend of this machine, and a
// folder. Library code does not include it, so it may use weir/testing.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/net/files.hpp"
#include "weir/os/test/temporary_tree.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/test/contract/contract_fixture.hpp"

namespace weir {

struct FilesKind {
  const char* name;
  std::optional<MemoryFiles> simulated;
  BackendChoice backend;

  friend void PrintTo(const FilesKind& kind, std::ostream* out) { *out << kind.name; }
};

inline constexpr FilesKind files_in_memory{"memory", MemoryFiles::by_backend,
                                           BackendChoice::automatic};
inline constexpr FilesKind files_in_memory_by_threads{"memory_threads", MemoryFiles::by_threads,
                                                      BackendChoice::automatic};
inline constexpr FilesKind files_on_uring{"uring", std::nullopt, BackendChoice::uring};
inline constexpr FilesKind files_on_uring_6_1{"uring_6_1", std::nullopt, BackendChoice::uring_6_1};
inline constexpr FilesKind files_on_epoll{"epoll", std::nullopt, BackendChoice::epoll};
inline constexpr FilesKind files_on_poll{"poll", std::nullopt, BackendChoice::poll};

inline auto every_files_kind() {
  return testing::Values(files_in_memory, files_in_memory_by_threads, files_on_uring,
                         files_on_uring_6_1, files_on_epoll, files_on_poll);
}
inline auto simulated_files_kinds() {
  return testing::Values(files_in_memory, files_in_memory_by_threads);
}
inline auto every_kernel_files_kind() {
  return testing::Values(files_on_uring, files_on_uring_6_1, files_on_epoll, files_on_poll);
}

/// A fixture that checks that a test leaves no descriptor open and no block of the loop in use.
class FilesTest : public testing::TestWithParam<FilesKind> {
 protected:
  void SetUp() override {
    if (GetParam().simulated) {
      MemoryPlatformOptions options;
      options.files = *GetParam().simulated;
      auto memory = std::make_unique<MemoryPlatform>(options);
      memory_ = memory.get();
      platform_ = std::move(memory);
    } else {
      platform_ = std::make_unique<OsPlatform>();
      tree_.emplace();
    }
    auto made = Loop::make(*platform_, {.backend = GetParam().backend});
    if (!made) GTEST_SKIP() << "backend not available: " << made.error().message();
    loop_ = std::move(*made);
    blocks_.emplace(loop_->blocks());
  }
  void TearDown() override {
    if (loop_ == nullptr) return;
    blocks_.reset();
    loop_->blocks().collect();
    // io_uring holds the buffers that it lends to the kernel.
    if (!loop_->backend().name().starts_with("uring")) {
      EXPECT_EQ(loop_->blocks().blocks_in_use(), 0U);
    }
    loop_.reset();
    if (memory_ != nullptr) {
      EXPECT_EQ(memory_->open_descriptors(), 0U);
    }
  }

  template <class T>
  T run(Task<T> task, CancelSource* cancel = nullptr) {
    return weir::run(*loop_, std::move(task), cancel);
  }

  bool simulated() const { return memory_ != nullptr; }
  std::string path(std::string_view name) const {
    return (simulated() ? "/tmp" : tree_->root()) + "/" + std::string(name);
  }
  std::string folder() const { return path(""); }

  /// Returns the content of a file, read with blocking calls; nullopt if the file does not exist.
  std::optional<std::string> contents(std::string_view name) const {
    const auto file = platform_->files().open(path(name), {});
    if (!file) return std::nullopt;
    std::string text;
    std::string piece(65536, '\0');
    for (;;) {
      const MutableBytes room(reinterpret_cast<std::byte*>(piece.data()), piece.size());
      const std::size_t count =
          platform_->files().read_at(file->value(), room, text.size()).value();
      if (count == 0) return text;
      text.append(piece, 0, count);
    }
  }
  void put(std::string_view name, std::string_view text) const {
    const auto file = platform_->files().open(path(name), {.mode = os::FileMode::truncate});
    ASSERT_TRUE(file) << name << ": " << file.error().message();
    for (std::size_t done = 0; done < text.size();) {
      done += platform_->files().write_at(file->value(), to_bytes(text.substr(done)), done).value();
    }
  }
  /// Returns the names in the folder, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    const auto entries = platform_->files().list(folder(), 1000);
    for (const auto& entry : entries.value()) {
      names.push_back(entry.name);
    }
    std::ranges::sort(names);
    return names;
  }

  std::unique_ptr<loop::Platform> platform_;
  MemoryPlatform* memory_ = nullptr;
  std::optional<os::TemporaryTree> tree_;
  std::unique_ptr<Loop> loop_;
  std::optional<ScopedBlockPool> blocks_;
};

/// Returns the error of a result; no error if it has a value.
template <class T>
std::error_code error_of(const Result<T>& result) {
  return result ? std::error_code() : result.error();
}

/// Reads the rest of a file in pieces of at most `most` bytes.
inline Task<Result<std::string>> read_rest(files::File& file, std::size_t most) {
  std::string text;
  for (;;) {
    WEIR_CO_TRY(const auto bytes, co_await file.read(most));
    if (bytes.empty()) co_return text;
    EXPECT_LE(bytes.size(), most);
    text += bytes.text();
  }
}

}  // namespace weir
