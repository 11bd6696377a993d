// Writing more than the process may: an error like any other, whoever writes, and nobody dies of
// it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "weir/net/files.hpp"
#include "weir/net/files_fixture.hpp"

namespace weir {
namespace {

constexpr std::size_t limit_bytes = 64 * 1024;

Task<Result<>> write_too_much(std::string path, std::uint64_t& position) {
  auto file = co_await files::open(std::move(path), files::Mode::replace);
  if (!file) co_return fail(file.error());
  const std::string text(2 * limit_bytes, 'x');
  auto written = co_await file->write(text);
  position = file->position();
  co_await file->close();
  co_return written;
}

/// Ends this (child) process: with 0 when all went as it should.
[[noreturn]] void write_beyond_the_limit(BackendChoice backend) {
  constexpr rlimit limit{limit_bytes, limit_bytes};
  constexpr rlimit no_core{0, 0};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0 || ::setrlimit(RLIMIT_CORE, &no_core) != 0) {
    ::_exit(2);
  }
  bool right = false;
  {
    const os::TemporaryTree tree;
    OsHost host;
    const auto loop = Loop::make(host, {.backend = backend}).value();
    std::uint64_t position = 0;
    const auto written = run(*loop, write_too_much(tree.root() + "/f", position));
    right = error_of(written) == system_error(EFBIG) && position == limit_bytes;
  }
  ::_exit(right ? 0 : 1);
}

class FilesLimitDeathTest : public testing::TestWithParam<FilesKind> {};

TEST_P(FilesLimitDeathTest, AFileThatMayNotGrowIsAnErrorAndKillsNobody) {
  const BackendChoice backend = GetParam().backend;
  {
    OsHost host;
    if (!Loop::make(host, {.backend = backend})) GTEST_SKIP() << "not to be had here";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(write_beyond_the_limit(backend), testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(On, FilesLimitDeathTest, every_kernel_files_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir
