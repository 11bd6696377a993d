// Tests of file operations on io_uring.
#include "weir/loop/detail/uring/requests.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/test/readiness_fixture.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir {
namespace {

using Action = FileOperation::Action;
using File = Recorded<FileOperation>;

class UringFileTest : public testing::Test {
 protected:
  void SetUp() override {
    OsPlatform platform;
    RunQueue ready;
    if (!platform.make_backend(BackendChoice::uring, ready)) {
      GTEST_SKIP() << "this machine refuses io_uring";
    }
    fixture_ = std::make_unique<ReadinessFixture>(BackendChoice::uring);
    tree_.write("file", "0123456789");
    file_ = os::Fd(::open(tree_.path("file").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(file_);
  }
  Backend& backend() { return fixture_->backend(); }

  void prepare(File& operation, Action action, std::uint64_t offset) const {
    operation.action = action;
    operation.file = file_.get();
    operation.offset = offset;
  }
  void finish(File& operation) {
    backend().start_file(operation);
    EXPECT_EQ(operation.state(), Operation::State::pending);
    EXPECT_EQ(operation.runs, 0) << "a started file operation is always pending";
    fixture_->finish(operation);
  }
  /// Returns up to `size` bytes of the file at `offset`.
  std::string read(std::uint64_t offset, std::size_t size) {
    std::string text(size, '-');
    File operation;
    prepare(operation, Action::read, offset);
    operation.target = {reinterpret_cast<std::byte*>(text.data()), text.size()};
    finish(operation);
    EXPECT_FALSE(operation.error()) << operation.error().message();
    EXPECT_EQ(text.substr(operation.count), std::string(size - operation.count, '-'));
    return text.substr(0, operation.count);
  }

  os::TemporaryTree tree_;
  os::Fd file_;
  std::unique_ptr<ReadinessFixture> fixture_;
};

TEST_F(UringFileTest, ReadsAtAnOffset) {
  EXPECT_TRUE(backend().does_files());
  EXPECT_EQ(read(0, 4), "0123");
  EXPECT_EQ(read(4, 4), "4567");
  EXPECT_EQ(read(8, 4), "89");
  EXPECT_EQ(read(10, 4), "") << "the end of the file";
  EXPECT_EQ(read(1000, 4), "");
}

TEST_F(UringFileTest, WritesAtAnOffset) {
  const std::vector<std::pair<std::uint64_t, std::string>> writes = {{3, "abc"}, {12, "x"}};
  for (const auto& [offset, text] : writes) {
    File operation;
    prepare(operation, Action::write, offset);
    operation.source = to_bytes(text);
    finish(operation);
    EXPECT_FALSE(operation.error());
    EXPECT_EQ(operation.count, text.size());
  }
  EXPECT_EQ(read(0, 20), std::string("012abc6789\0\0x", 13));
}

TEST_F(UringFileTest, SyncsAnOpenFile) {
  File operation;
  prepare(operation, Action::sync, 0);
  finish(operation);
  EXPECT_FALSE(operation.error());
  EXPECT_EQ(operation.runs, 1);
}

TEST_F(UringFileTest, ReportsTheErrorOfTheKernel) {
  const os::Fd readable(::open(tree_.path("file").c_str(), O_RDONLY | O_CLOEXEC));
  for (int round = 0; round < 2; ++round) {
    File operation;
    prepare(operation, Action::write, 0);
    operation.file = readable.get();
    operation.source = to_bytes("x");
    finish(operation);
    EXPECT_EQ(operation.error(), system_error(EBADF));
    EXPECT_EQ(operation.count, 0U);
  }
  File closed;
  prepare(closed, Action::sync, 0);
  closed.file = -1;
  finish(closed);
  EXPECT_EQ(closed.error(), system_error(EBADF));
}

TEST_F(UringFileTest, AnOperationMayBeUsedAgain) {
  File operation;
  std::array<std::byte, 4> room;
  prepare(operation, Action::read, 0);
  operation.target = room;
  finish(operation);
  EXPECT_EQ(operation.count, 4U);
  operation.file = -1;
  operation.cancelling = true;  // of an earlier use
  operation.runs = 0;
  finish(operation);
  EXPECT_EQ(operation.error(), system_error(EBADF));
  EXPECT_EQ(operation.count, 0U);
  EXPECT_FALSE(operation.cancelling);
}

TEST_F(UringFileTest, ManyOperationsMayBePendingOnOneFile) {
  constexpr std::size_t count = 200;
  std::vector<std::unique_ptr<File>> operations;
  std::array<std::byte, count> bytes{};
  for (std::size_t i = 0; i < count; ++i) {
    operations.push_back(std::make_unique<File>());
    prepare(*operations.back(), Action::read, i % 10);
    operations.back()->target = {&bytes[i], 1};
    backend().start_file(*operations.back());
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (operations[i]->runs == 0) fixture_->finish(*operations[i]);
    EXPECT_EQ(operations[i]->count, 1U);
    EXPECT_EQ(bytes[i], std::byte('0' + i % 10));
  }
}

// A pipe without a writer's bytes keeps its read pending.
TEST_F(UringFileTest, ACancelledReadFinishesAndReadsNothing) {
  auto pipe = os::open_pipe();
  ASSERT_TRUE(pipe);
  os::Fd blocking(::open(("/proc/self/fd/" + std::to_string(pipe->read_end.get())).c_str(),
                         O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(blocking);
  std::array<std::byte, 4> room{};
  File operation;
  prepare(operation, Action::read, 0);
  operation.file = blocking.get();
  operation.target = room;
  backend().start_file(operation);
  fixture_->turn(Duration(0));
  EXPECT_EQ(operation.runs, 0);
  backend().cancel(operation);
  EXPECT_TRUE(operation.cancelling);
  backend().cancel(operation);  // does nothing
  fixture_->finish(operation);
  EXPECT_EQ(operation.error(), Errc::cancelled);
  EXPECT_EQ(operation.runs, 1);
  backend().cancel(operation);
  EXPECT_EQ(operation.error(), Errc::cancelled);
  fixture_->turn(Duration(0));
  ASSERT_EQ(::write(pipe->write_end.get(), "late", 4), 4);
  prepare(operation, Action::read, 0);
  operation.file = blocking.get();
  operation.runs = 0;
  finish(operation);
  EXPECT_FALSE(operation.error());
  EXPECT_EQ(operation.count, 4U);
}

TEST_F(UringFileTest, ACompletedOperationKeepsItsResultWhenItIsCancelled) {
  std::array<std::byte, 4> room{};
  File operation;
  prepare(operation, Action::read, 2);
  operation.target = room;
  backend().start_file(operation);
  backend().wait(after(fixture_->platform().now(), std::chrono::seconds(10)));
  ASSERT_EQ(operation.state(), Operation::State::finished);
  backend().cancel(operation);
  fixture_->finish(operation);
  EXPECT_FALSE(operation.error());
  EXPECT_EQ(operation.count, 4U);
  EXPECT_EQ(room[0], std::byte('2'));
}

}  // namespace
}  // namespace weir
