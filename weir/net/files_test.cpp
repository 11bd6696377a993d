// Tests of open files on every backend, with transfers by the backend or by threads.
#include "weir/net/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "weir/net/test/files_fixture.hpp"
#include "weir/task/scope.hpp"

namespace weir::files_test {
namespace {

using files::File;
using files::Mode;

std::error_code sys(int code) {
  return system_error(code);
}

class Files : public FilesTest {
 protected:
  File open(std::string_view name, Mode mode = Mode::read) {
    return run(files::open(path(name), mode)).value();
  }
};

/// Tests of file types that the simulated platform does not have.
class KernelFiles : public Files {};
/// The tests of what a kernel decides by its user, umask or file system.
class SimulatedFiles : public Files {};

Task<Result<>> write_in_pieces(File& file, std::string text, std::size_t piece) {
  for (std::size_t at = 0; at < text.size(); at += piece) {
    auto written = co_await file.write(std::string_view(text).substr(at, piece));
    if (!written) co_return written;
  }
  co_return {};
}

TEST_P(Files, ReadsBackWrittenDataInPieces) {
  const std::string text = pattern(3'000'001, 7);
  {
    File file = open("f", Mode::create_new);
    ASSERT_TRUE(run(write_in_pieces(file, text, 100'000)));
    EXPECT_EQ(file.position(), text.size());
  }
  EXPECT_TRUE(contents("f") == text);
  for (const std::size_t most : {std::size_t{1} << 40, std::size_t{16'384}, std::size_t{99'991}}) {
    File file = open("f");
    EXPECT_TRUE(run(read_rest(file, most)).value() == text) << most;
    EXPECT_EQ(file.position(), text.size());
  }
}

TEST_P(Files, EndIsAnEmptyBufferUntilTheFileGrows) {
  put("f", "one");
  File reader = open("f");
  File writer = open("f", Mode::append);
  EXPECT_EQ(run(read_rest(reader, 100)).value(), "one");
  EXPECT_TRUE(run(reader.read()).value().empty());
  ASSERT_TRUE(run(writer.write("two")));
  EXPECT_EQ(run(reader.read()).value().text(), "two");
  EXPECT_TRUE(run(reader.read()).value().empty());
}

TEST_P(Files, EmptyFileEndsImmediatelyAndAnEmptyWriteSucceeds) {
  File file = open("f", Mode::truncate);
  ASSERT_TRUE(run(file.write("")));
  EXPECT_EQ(contents("f"), "");
  EXPECT_EQ(run(files::read_file(path("f"))).value(), "");
}

TEST_P(Files, SupportsOffsetsBeyondFourGigabytes) {
  constexpr std::uint64_t far = (std::uint64_t{5} << 30) + 3;
  File file = open("f", Mode::truncate);
  ASSERT_TRUE(run(file.write_at(far, to_bytes("far"))));
  ASSERT_TRUE(run(file.write_at(0, to_bytes("near"))));
  EXPECT_EQ(file.position(), 0U);
  EXPECT_EQ(run(file.status()).value().size, far + 3);
  file = open("f");
  EXPECT_EQ(run(file.read_at(far - 2)).value().text(), std::string_view("\0\0far", 5));
  EXPECT_EQ(run(file.read_at(0, 6)).value().text(), std::string_view("near\0\0", 6));
  EXPECT_TRUE(run(file.read_at(far + 3)).value().empty());
  file.seek(far + 1);
  EXPECT_EQ(run(file.read()).value().text(), "ar");
  EXPECT_EQ(file.position(), far + 3);
}

TEST_P(Files, RejectsOffsetsBeyondTheMaximum) {
  File file = open("f", Mode::truncate);
  for (const std::uint64_t offset : {os::file_offset_max + 1, UINT64_MAX}) {
    EXPECT_EQ(error_of(run(file.write_at(offset, to_bytes("x")))), sys(EINVAL));
    EXPECT_EQ(error_of(run(file.resize(offset))), sys(EINVAL));
  }
  file = open("f");
  for (const std::uint64_t offset : {os::file_offset_max + 1, UINT64_MAX}) {
    EXPECT_EQ(error_of(run(file.read_at(offset))), sys(EINVAL));
  }
  EXPECT_EQ(contents("f"), "");
}

TEST_P(Files, ModesWorkAsDocumented) {
  EXPECT_EQ(error_of(run(files::open(path("f")))), sys(ENOENT));
  EXPECT_EQ(error_of(run(files::open(path("f"), Mode::read_write))), sys(ENOENT));
  EXPECT_EQ(contents("f"), std::nullopt);
  {
    File file = open("f", Mode::create_new);
  }
  EXPECT_EQ(error_of(run(files::open(path("f"), Mode::create_new))), sys(EEXIST));
  put("f", "before");
  {
    File file = open("f", Mode::read_write);
    EXPECT_EQ(run(file.read(3)).value().text(), "bef");
    ASSERT_TRUE(run(file.write("XY")));
  }
  EXPECT_EQ(contents("f"), "befXYe");
  {
    File file = open("f", Mode::append);
  }
  EXPECT_EQ(contents("f"), "befXYe");
  {
    File file = open("f", Mode::truncate);
  }
  EXPECT_EQ(contents("f"), "");
  {
    File file = open("new", Mode::append);
    ASSERT_TRUE(run(file.write("made")));
  }
  EXPECT_EQ(contents("new"), "made");
}

TEST_P(Files, AppendWritesAtTheCurrentEnd) {
  File one = open("f", Mode::append);
  File two = open("f", Mode::append);
  ASSERT_TRUE(run(one.write("a")));
  ASSERT_TRUE(run(two.write("bb")));
  ASSERT_TRUE(run(one.write("c")));
  ASSERT_TRUE(run(two.write_at(0, to_bytes("d"))));
  EXPECT_EQ(contents("f"), "abbcd");
}

TEST_P(Files, FileAllowsOnlyTheOperationsOfItsMode) {
  put("f", "text");
  File reader = open("f");
  EXPECT_EQ(error_of(run(reader.write("x"))), sys(EBADF));
  EXPECT_EQ(error_of(run(reader.resize(0))), sys(EINVAL));
  EXPECT_EQ(reader.position(), 0U);
  File writer = open("f", Mode::append);
  EXPECT_EQ(error_of(run(writer.read())), sys(EBADF));
  EXPECT_EQ(contents("f"), "text");
}

TEST_P(Files, ResizeTruncatesAndFillsWithZeros) {
  put("f", std::string(10'000, 'x'));
  File file = open("f", Mode::read_write);
  ASSERT_TRUE(run(file.resize(5000)));
  EXPECT_EQ(contents("f"), std::string(5000, 'x'));
  ASSERT_TRUE(run(file.resize(9000)));
  EXPECT_EQ(contents("f"), std::string(5000, 'x') + std::string(4000, '\0'));
  EXPECT_TRUE(run(file.sync()));
}

TEST_P(Files, RemovedFileIsReadableToItsEnd) {
  const std::string text = pattern(200'000, 3);
  put("f", text);
  File file = open("f");
  EXPECT_EQ(run(file.read(1000)).value().text(), text.substr(0, 1000));
  ASSERT_TRUE(run(files::remove(path("f"))));
  EXPECT_EQ(run(read_rest(file, 70'000)).value(), text.substr(1000));
  EXPECT_EQ(error_of(run(files::open(path("f")))), sys(ENOENT));
}

TEST_P(Files, FileThatShrinksDuringAReadEnds) {
  put("f", pattern(200'000, 4));
  File file = open("f");
  ASSERT_EQ(run(file.read(150'000)).value().size(), 150'000U);
  put("f", "short");
  EXPECT_TRUE(run(file.read()).value().empty());
}

TEST_P(Files, MoveKeepsThePosition) {
  put("f", "abcdef");
  File file = open("f");
  EXPECT_EQ(run(file.read(2)).value().text(), "ab");
  File moved = std::move(file);
  EXPECT_EQ(moved.position(), 2U);
  EXPECT_EQ(file.position(), 0U);
  EXPECT_EQ(run(moved.read(2)).value().text(), "cd");
  File other = open("f");
  other = std::move(moved);
  EXPECT_EQ(moved.position(), 0U);
  EXPECT_EQ(run(other.read()).value().text(), "ef");
  run(other.close());
}

TEST_P(Files, StatusHasSizeKindTimeAndPermissions) {
  File file = run(files::open(path("f"), files::OpenOptions(Mode::create_new, 0600))).value();
  ASSERT_TRUE(run(file.write("12345")));
  const auto of_file = run(file.status()).value();
  const auto of_path = run(files::status(path("f"))).value();
  for (const auto& status : {of_file, of_path}) {
    EXPECT_EQ(status.kind, files::Kind::file);
    EXPECT_EQ(status.size, 5U);
    EXPECT_EQ(status.permissions, 0600U);
    // The kernel stamps files with the time of its last tick.
    EXPECT_LE(status.modified, platform_->wall_time());
    EXPECT_GT(status.modified + 1h, platform_->wall_time());
  }
}

TEST_P(Files, ReadFileHasALimit) {
  put("f", pattern(50'000, 1));
  EXPECT_TRUE(run(files::read_file(path("f"), 50'000)).value() == pattern(50'000, 1));
  EXPECT_EQ(error_of(run(files::read_file(path("f"), 49'999))), Errc::limit_reached);
  EXPECT_EQ(error_of(run(files::read_file(path("f"), 0))), Errc::limit_reached);
  put("empty", "");
  EXPECT_EQ(run(files::read_file(path("empty"), 0)).value(), "");
}

Task<Result<>> check_read(File& file, const std::string& text, std::size_t at) {
  WEIR_CO_TRY(auto bytes, co_await file.read_at(at, 5000));
  EXPECT_TRUE(bytes.text() == std::string_view(text).substr(at, bytes.size())) << at;
  EXPECT_GT(bytes.size(), 0U);
  co_return {};
}

TEST_P(Files, ManyReadsOfOneFileRunConcurrently) {
  const std::string text = pattern(1'000'000, 9);
  put("f", text);
  File file = open("f");
  const auto read_all_over = [&](Scope& scope) -> Task<Result<>> {
    for (std::size_t i = 0; i < 500; ++i) scope.spawn(check_read(file, text, i * 1999));
    co_return {};
  };
  const auto all = run(with_scope(OnFailure::cancel_siblings, read_all_over));
  EXPECT_TRUE(all) << all.error().message();
}

template <class T>
Task<Result<>> expect_success(Task<Result<T>> operation) {
  const auto result = co_await std::move(operation);
  EXPECT_TRUE(result) << result.error().message();
  co_return {};
}

TEST_P(Files, OtherOperationsMayBePendingBesideARead) {
  put("f", pattern(100'000, 3));
  File file = open("f", Mode::read_write);
  const auto together = [&](Scope& scope) -> Task<Result<>> {
    scope.spawn(expect_success(file.read(1000)));
    scope.spawn(expect_success(file.read_at(7, 1000)));
    scope.spawn(expect_success(file.write_at(50'000, to_bytes("one"))));
    scope.spawn(expect_success(file.write_at(60'000, to_bytes("two"))));
    scope.spawn(expect_success(file.sync()));
    scope.spawn(expect_success(file.sync()));
    scope.spawn(expect_success(file.resize(70'000)));
    scope.spawn(expect_success(file.resize(70'000)));
    scope.spawn(expect_success(file.status()));
    scope.spawn(expect_success(file.status()));
    co_return {};
  };
  EXPECT_TRUE(run(with_scope(OnFailure::isolate, together)));
  EXPECT_EQ(file.position(), 1000U);
  EXPECT_EQ(contents("f")->substr(60'000, 3), "two");
}

TEST_P(Files, RequestHasAMaximumSize) {
  put("f", pattern(files::transfer_max + 5000, 8));
  File file = open("f");
  EXPECT_LE(run(file.read(std::size_t{1} << 40)).value().size(), files::transfer_max);
  const auto descriptor = platform_->files().open(path("f"), {}).value();
  std::vector<std::byte> room(files::transfer_max + 5000);
  EXPECT_LE(run(files::read_some(descriptor.value(), room, 0)).value(), files::transfer_max);
}

TEST_P(SimulatedFiles, OffsetsUpToTheMaximumAreRead) {
  put("f", "text");
  File file = open("f");
  EXPECT_TRUE(run(file.read_at(os::file_offset_max)).value().empty());
}

TEST_P(SimulatedFiles, HasTheDocumentedDefaults) {
  {
    File file = open("f", Mode::create_new);
    EXPECT_EQ(run(file.status()).value().permissions, 0644U);
  }
  ASSERT_TRUE(run(files::make_directory(path("dir"))));
  EXPECT_EQ(run(files::status(path("dir"))).value().permissions, 0755U);
  ASSERT_TRUE(memory_->files().set_permissions(path("f"), 0400));
  EXPECT_TRUE(run(files::open(path("f")))) << "for reading only";
  ASSERT_TRUE(memory_->files().set_permissions(path("f"), 0600));
  constexpr std::uint64_t longest = 16 * 1024 * 1024;
  ASSERT_TRUE(run(open("f", Mode::read_write).resize(longest)));
  EXPECT_EQ(run(files::read_file(path("f"))).value().size(), longest);
  ASSERT_TRUE(run(open("f", Mode::read_write).resize(longest + 1)));
  EXPECT_EQ(error_of(run(files::read_file(path("f")))), Errc::limit_reached);
}

Task<Result<>> write_and_read(std::string path, std::string text) {
  if (auto written = co_await files::write_file(path, text); !written) co_return written;
  WEIR_CO_TRY(const auto read, co_await files::read_file(path));
  EXPECT_TRUE(read == text) << path;
  co_return {};
}

TEST_P(Files, ManyFilesAreReadConcurrently) {
  const auto fill = [&](Scope& scope) -> Task<Result<>> {
    for (unsigned i = 0; i < 60; ++i) {
      scope.spawn(write_and_read(path(std::to_string(i)), pattern(i * 997, i)));
    }
    co_return {};
  };
  const auto all = run(with_scope(OnFailure::cancel_siblings, fill));
  EXPECT_TRUE(all) << all.error().message();
  EXPECT_EQ(names().size(), 60U);
}

// --- errors of the file system -------------------------------------------------------------------

TEST_P(Files, FullDiskIsAnError) {
  if (simulated()) {
    put("f", "");
    memory_->files().set_pages_max(memory_->files().pages() + 3);
    File file = open("f", Mode::truncate);
    EXPECT_EQ(error_of(run(file.write(std::string(20'000, 'x')))), sys(ENOSPC));
    EXPECT_EQ(file.position(), 3 * MemoryFileBytes::page_bytes);
    EXPECT_EQ(contents("f"), std::string(file.position(), 'x'));
    return;
  }
  // A device that is always full (full(4)).
  File file = run(files::open("/dev/full", Mode::append)).value();
  EXPECT_EQ(error_of(run(file.write("x"))), sys(ENOSPC));
  EXPECT_EQ(file.position(), 0U);
}

TEST_P(Files, MissingPermissionsAreErrors) {
  if (simulated()) {
    put("f", "text");
    ASSERT_TRUE(memory_->files().set_permissions(path("f"), 0));
    EXPECT_EQ(error_of(run(files::open(path("f")))), sys(EACCES));
    EXPECT_EQ(error_of(run(files::open(path("f"), Mode::append))), sys(EACCES));
    ASSERT_TRUE(memory_->files().set_permissions(folder(), 0500));
    EXPECT_EQ(error_of(run(files::open(path("g"), Mode::truncate))), sys(EACCES));
    EXPECT_EQ(error_of(run(files::write_file(path("g"), "x"))), sys(EACCES));
    EXPECT_EQ(error_of(run(files::remove(path("f")))), sys(EACCES));
    EXPECT_EQ(error_of(run(files::make_directory(path("g")))), sys(EACCES));
    ASSERT_TRUE(memory_->files().set_permissions(folder(), 0200));
    EXPECT_EQ(error_of(run(files::list(folder()))), sys(EACCES));
    EXPECT_EQ(error_of(run(files::status(path("f")))), sys(EACCES));
    return;
  }
  // Even root may not write to this file, although root ignores permissions elsewhere.
  const auto error = error_of(run(files::open("/proc/sys/kernel/ostype", Mode::append)));
  EXPECT_TRUE(error == sys(EACCES) || error == sys(EROFS) || error == sys(EPERM))
      << error.message();
}

TEST_P(Files, OpenFailsWithoutDescriptorsAndWorksAgainLater) {
  put("f", "text");
  ASSERT_TRUE(run(files::status(path("f")))) << "starts a thread, which may need descriptors";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (simulated()) {
    memory_->set_descriptors_max(memory_->open_descriptors());
  } else {
    // All lower descriptors are open, regardless of what other threads open and close meanwhile.
    for (int standard = 0; standard < 3; ++standard) ASSERT_GE(::fcntl(standard, F_GETFD), 0);
    rlimit lowered = before;
    lowered.rlim_cur = 3;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &lowered), 0);
  }
  const auto reading = error_of(run(files::open(path("f"))));
  const auto making = error_of(run(files::open(path("g"), Mode::create_new)));
  const auto replacing = error_of(run(files::write_file(path("f"), "new")));
  if (simulated()) {
    memory_->set_descriptors_max(1000);
  } else {
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  }
  EXPECT_EQ(reading, sys(EMFILE));
  EXPECT_EQ(making, sys(EMFILE));
  EXPECT_EQ(replacing, sys(EMFILE));
  EXPECT_EQ(names(), std::vector<std::string>{"f"}) << "no file was created";
  EXPECT_EQ(run(files::read_file(path("f"))).value(), "text");
}

TEST_P(KernelFiles, PipesAndSocketsAreRejectedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const auto listener = platform_->listen(os::Address::local(path("socket")).value(), {});
  ASSERT_TRUE(listener) << listener.error().message();
  for (const Mode mode : {Mode::read, Mode::read_write, Mode::truncate, Mode::append}) {
    EXPECT_EQ(error_of(run(files::open(path("pipe"), mode))), Errc::unsupported);
    EXPECT_EQ(error_of(run(files::open(path("socket"), mode))), Errc::unsupported);
  }
  EXPECT_EQ(run(files::status(path("pipe"))).value().kind, files::Kind::other);
}

TEST_P(KernelFiles, ReadsFilesWithoutSizeAndDevicesToTheirEnd) {
  EXPECT_EQ(run(files::status("/proc/self/status")).value().size, 0U);
  const std::string text = run(files::read_file("/proc/self/status")).value();
  EXPECT_TRUE(text.starts_with("Name:")) << text;
  EXPECT_EQ(run(files::read_file("/dev/null")).value(), "");
  EXPECT_EQ(error_of(run(files::read_file("/dev/zero", 100'000))), Errc::limit_reached);
}

INSTANTIATE_TEST_SUITE_P(On, KernelFiles, every_kernel_files_kind(),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(On, Files, every_files_kind(),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(On, SimulatedFiles, simulated_files_kinds(),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir::files_test
