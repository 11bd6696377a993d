// Tests of writes beyond the file size limit of the process. They return an error and do not kill
// the process, in every backend.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "weir/net/files.hpp"
#include "weir/net/test/files_fixture.hpp"

namespace weir::files_limit_test {
namespace {

constexpr std::size_t limit_bytes = 64 * 1024;

alignas(4096) constexpr std::array<std::byte, 2 * limit_bytes> too_much{};

Task<Result<>> write_too_much(std::string path, std::uint64_t& position) {
  WEIR_CO_TRY(auto file, co_await files::open(std::move(path), files::Mode::truncate));
  auto written = co_await file.write(too_much);
  position = file.position();
  co_await file.close();
  co_return written;
}

/// Writes past the page cache, if the file system supports that. The kernel may make such writes
/// during the submission, even if it hands other writes to its own threads.
Task<Result<>> write_directly(loop::Platform& platform, std::string path, std::uint64_t& position) {
  constexpr int how = O_WRONLY | O_CREAT | O_CLOEXEC;
  int descriptor = ::open(path.c_str(), how | O_DIRECT, 0600);
  if (descriptor < 0) descriptor = ::open(path.c_str(), how, 0600);
  files::File file(loop::Descriptor(platform, descriptor));
  auto written = co_await file.write(too_much);
  position = file.position();
  co_await file.close();
  co_return written;
}

/// Writes beyond the limit and ends this child process, with status 0 on success.
[[noreturn]] void write_beyond_the_limit(BackendChoice backend) {
  constexpr rlimit limit{limit_bytes, limit_bytes};
  constexpr rlimit no_core{0, 0};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0 || ::setrlimit(RLIMIT_CORE, &no_core) != 0) {
    ::_exit(2);
  }
  bool right = false;
  {
    const os::TemporaryTree tree;
    OsPlatform platform;
    const auto loop = Loop::make(platform, {.backend = backend}).value();
    const auto stopped_there = [](const Result<>& written, std::uint64_t position) {
      return error_of(written) == system_error(EFBIG) && position == limit_bytes;
    };
    std::uint64_t position = 0;
    const auto written = run(*loop, write_too_much(tree.path("f"), position));
    right = stopped_there(written, position);
    const auto directly = run(*loop, write_directly(platform, tree.path("g"), position));
    right = right && stopped_there(directly, position);
  }
  ::_exit(right ? 0 : 1);
}

class FilesLimitDeathTest : public testing::TestWithParam<FilesKind> {};

TEST_P(FilesLimitDeathTest, FileSizeLimitIsAnErrorAndDoesNotKillTheProcess) {
  const BackendChoice backend = GetParam().backend;
  {
    OsPlatform platform;
    if (!Loop::make(platform, {.backend = backend})) GTEST_SKIP() << "backend not available";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(write_beyond_the_limit(backend), testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(On, FilesLimitDeathTest, every_kernel_files_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir::files_limit_test
