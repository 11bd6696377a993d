// Tests of file operations on io_uring.
#include "weir/loop/detail/uring/requests.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/loop/test/readiness_fixture.hpp"
#include "weir/loop/test/uring_context.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::loop::file_test {
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

/// A file operation whose requests the test completes.
class UringFileRequestsTest : public uring::UringContextTest {
 protected:
  io_uring_sqe start(Action action) {
    operation_.action = action;
    operation_.file = 7;
    operation_.runs = 0;
    uring::start_file(context_, operation_);
    return only_request();
  }
  /// Returns the only request that was recorded since the last call.
  io_uring_sqe only_request() {
    const auto requests = recorded();
    EXPECT_EQ(requests.size(), 1U);
    return requests.size() == 1 ? requests[0] : io_uring_sqe{};
  }
  void complete(int result) {
    uring::file_completed(context_, {&operation_, uring::Tag::file, result, 0});
  }
  void expect_finished(std::error_code error, std::size_t count) {
    EXPECT_EQ(run_ready(), 1);
    EXPECT_EQ(operation_.runs, 1);
    EXPECT_EQ(operation_.error(), error);
    EXPECT_EQ(operation_.count, count);
    EXPECT_TRUE(recorded().empty());
  }

  File operation_;
  std::array<std::byte, 10> memory_{};
};

TEST_F(UringFileRequestsTest, MakesAnInterruptedRequestAgain) {
  operation_.target = memory_;
  operation_.source = memory_;
  operation_.offset = 5;
  const std::pair<Action, int> actions[] = {{Action::read, IORING_OP_READ},
                                            {Action::write, IORING_OP_WRITE},
                                            {Action::sync, IORING_OP_FSYNC}};
  for (const auto& [action, opcode] : actions) {
    const io_uring_sqe first = start(action);
    EXPECT_EQ(first.opcode, opcode);
    for (const int error : {EINTR, ECANCELED}) {
      complete(-error);
      const io_uring_sqe again = only_request();
      EXPECT_EQ(again.opcode, opcode);
      EXPECT_EQ(again.fd, 7);
      EXPECT_EQ(again.off, first.off);
      EXPECT_EQ(again.user_data, first.user_data);
      EXPECT_EQ(operation_.state(), Operation::State::pending);
    }
    complete(3);
    expect_finished({}, 3);
  }
}

TEST_F(UringFileRequestsTest, IsCancelledOnceAndThenEndsWithAnInterruption) {
  operation_.target = memory_;
  for (const int error : {EINTR, ECANCELED}) {
    const io_uring_sqe request = start(Action::read);
    for (int times = 0; times < 2; ++times) uring::cancel_file(context_, operation_);
    const io_uring_sqe cancellation = only_request();
    EXPECT_EQ(cancellation.opcode, IORING_OP_ASYNC_CANCEL);
    EXPECT_EQ(cancellation.addr, request.user_data);
    complete(-error);
    expect_finished(Errc::cancelled, 0);
  }
  start(Action::read);
  complete(-EINTR);
  EXPECT_EQ(only_request().opcode, IORING_OP_READ) << "the earlier cancellation is over";
  complete(4);
  expect_finished({}, 4);
}

TEST_F(UringFileRequestsTest, AResultOrAnErrorBeatsACancellation) {
  operation_.target = memory_;
  start(Action::read);
  uring::cancel_file(context_, operation_);
  only_request();
  complete(0);
  expect_finished({}, 0);
  start(Action::read);
  uring::cancel_file(context_, operation_);
  only_request();
  complete(-EIO);
  expect_finished(system_error(EIO), 0);
}

TEST_F(UringFileRequestsTest, MovesAtMostAGibibyteInOneRequest) {
  constexpr std::size_t gibibyte = std::size_t{1} << 30;
  for (const std::size_t size : {gibibyte - 1, gibibyte, gibibyte + 1, 4 * gibibyte}) {
    operation_.target = {memory_.data(), size};  // the kernel is not asked
    operation_.source = operation_.target;
    for (const Action action : {Action::read, Action::write}) {
      EXPECT_EQ(start(action).len, std::min(size, gibibyte));
      complete(1);
      expect_finished({}, 1);
    }
  }
}

}  // namespace
}  // namespace weir::loop::file_test
