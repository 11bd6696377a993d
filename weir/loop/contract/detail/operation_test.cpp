// Tests of the common part of all operations, and of their default values.
#include "weir/loop/contract/detail/operation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string_view>

#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::loop::operation_test {
namespace {

void run_nothing(Runnable&) {}

TEST(Operation, GoesFromIdleToPendingToFinished) {
  Socket socket;
  ReceiveOperation operation(&run_nothing);
  EXPECT_EQ(operation.state(), Operation::State::idle);
  EXPECT_EQ(operation.socket(), nullptr);
  EXPECT_FALSE(operation.error());
  operation.pending_on(socket);
  EXPECT_EQ(operation.state(), Operation::State::pending);
  EXPECT_EQ(operation.socket(), &socket);
  operation.finish(system_error(EPIPE));
  EXPECT_EQ(operation.state(), Operation::State::finished);
  EXPECT_EQ(operation.error(), system_error(EPIPE));
}

TEST(Operation, StartsAgainWithoutTheErrorOfTheLastTime) {
  Socket first;
  Socket second;
  SendOperation operation(&run_nothing);
  operation.pending_on(first);
  operation.finish(system_error(EPIPE));
  operation.pending_on(second);
  EXPECT_EQ(operation.socket(), &second);
  EXPECT_EQ(operation.state(), Operation::State::pending);
  EXPECT_FALSE(operation.error());
  operation.finish();
  EXPECT_FALSE(operation.error());
}

TEST(Operation, KnowsItsKind) {
  EXPECT_EQ(ReceiveOperation(&run_nothing).kind(), Operation::Kind::receive);
  EXPECT_EQ(SendOperation(&run_nothing).kind(), Operation::Kind::send);
  EXPECT_EQ(AcceptOperation(&run_nothing).kind(), Operation::Kind::accept);
  EXPECT_EQ(ConnectOperation(&run_nothing).kind(), Operation::Kind::connect);
  EXPECT_EQ(FileOperation(&run_nothing).kind(), Operation::Kind::file);
  EXPECT_EQ(ReceiveDatagramsOperation(&run_nothing).kind(), Operation::Kind::receive_datagrams);
  EXPECT_EQ(SendDatagramsOperation(&run_nothing).kind(), Operation::Kind::send_datagrams);
}

TEST(Operation, BeginsWithoutAResult) {
  EXPECT_EQ(ReceiveOperation(&run_nothing).count, 0U);
  EXPECT_EQ(SendOperation(&run_nothing).sent, 0U);
  EXPECT_FALSE(AcceptOperation(&run_nothing).accepted);
  const ReceiveDatagramsOperation receive(&run_nothing);
  EXPECT_EQ(receive.count, 0U);
  EXPECT_EQ(receive.bytes_max, Buffer::default_capacity);
  EXPECT_FALSE(receive.gro);
  EXPECT_EQ(SendDatagramsOperation(&run_nothing).sent, 0U);
  const FileOperation file(&run_nothing);
  EXPECT_EQ(file.action, FileOperation::Action::read);
  EXPECT_EQ(file.file, -1);
  EXPECT_EQ(file.offset, 0U);
  EXPECT_EQ(file.count, 0U);
  EXPECT_FALSE(file.cancelling);
}

TEST(Datagram, ForEachVisitsEachJoinedDatagramOnce) {
  for (const std::size_t size : {6U, 7U, 8U}) {
    Datagram datagram;
    EXPECT_EQ(datagram.truncated_bytes, 0U);
    EXPECT_EQ(datagram.segment_size, 0U);
    datagram.buffer = Buffer::with_capacity(16);
    for (std::size_t i = 0; i < size; ++i) datagram.buffer.room()[i] = std::byte(i);
    datagram.buffer.commit(size);
    datagram.segment_size = 3;
    std::size_t visited = 0;
    int visits = 0;
    datagram.for_each([&](Bytes each) {
      ++visits;
      EXPECT_EQ(each.size(), std::min<std::size_t>(3, size - visited));
      for (const std::byte byte : each) EXPECT_EQ(byte, std::byte(visited++));
    });
    EXPECT_EQ(visited, size);
    EXPECT_EQ(visits, size == 6 ? 2 : 3) << "no empty datagram follows the last full one";
  }
}

TEST(HangupObserver, CallsItsFunction) {
  struct Observer final : HangupObserver {
    Observer()
        : HangupObserver([](HangupObserver& self) { ++static_cast<Observer&>(self).calls; }) {}
    int calls = 0;
  } observer;
  observer.on_hangup();
  EXPECT_EQ(observer.calls, 1);
}

TEST(SocketOptions, DescribeAnUnsharedStreamByDefault) {
  EXPECT_EQ(Socket().descriptor, -1);
  const SocketOptions options;
  EXPECT_EQ(options.role, SocketRole::stream);
  EXPECT_FALSE(options.shared);
  EXPECT_EQ(options.unread_max, 65'536U);
}

/// A backend with only the functions that every backend must have.
class LeastBackend final : public Backend {
 public:
  std::string_view name() const noexcept override { return "least"; }
  Result<Socket*> adopt(Descriptor, SocketOptions) override { return fail(Errc::unsupported); }
  void close(Socket&) override {}
  bool receive(Socket&, ReceiveOperation&) override { return false; }
  bool send(Socket&, SendOperation&) override { return false; }
  bool accept(Socket&, AcceptOperation&) override { return false; }
  bool connect(Socket&, ConnectOperation&) override { return false; }
  void stop_accepting(Socket&) override {}
  void cancel(Operation&) override {}
  Result<> shut_down_sending(Socket&) override { return {}; }
  void observe_hangup(Socket&, HangupObserver*) override {}
  void wait(Instant) override {}
  void wake() noexcept override {}
};

TEST(Backend, MayLackDatagramsAndFiles) {
  LeastBackend backend;
  Socket socket;
  ReceiveDatagramsOperation receive(&run_nothing);
  EXPECT_TRUE(backend.receive_datagrams(socket, receive)) << "it fails immediately";
  EXPECT_EQ(receive.error(), Errc::unsupported);
  SendDatagramsOperation send(&run_nothing);
  EXPECT_TRUE(backend.send_datagrams(socket, send));
  EXPECT_EQ(send.error(), Errc::unsupported);
  EXPECT_FALSE(backend.does_files());
}

TEST(Platform, HasTheDocumentedDefaults) {
  const ListenOptions listening;
  EXPECT_EQ(listening.backlog, 4096);
  EXPECT_TRUE(listening.reuse_port);
  EXPECT_FALSE(listening.require_unused);
  EXPECT_TRUE(StreamOptions().no_delay);
  const DatagramOptions datagrams;
  EXPECT_FALSE(datagrams.reuse_port);
  EXPECT_FALSE(datagrams.require_unused);
  EXPECT_EQ(datagrams.multicast_interface, 0U);
  EXPECT_FALSE(datagrams.gro);
  const LoopSchedule schedule;
  EXPECT_EQ(schedule.fifo_priority, 0);
  EXPECT_FALSE(schedule.fifo_required);
  EXPECT_FALSE(schedule.busy_poll);
  EXPECT_EQ(schedule.busy_wait, Duration::zero());
}

TEST(Platform, GivesThreadsAndHandoversTheirDocumentedDefaults) {
  const PlatformThreadOptions thread;
  EXPECT_EQ(thread.priority, ThreadPriority::normal);
  EXPECT_EQ(thread.stack_bytes, std::size_t{1024} * 1024);
  const HandoverOptions handover;
  EXPECT_EQ(handover.ready_timeout, std::chrono::seconds(10));
  EXPECT_EQ(handover.service, "");
}

TEST(RunControl, AbandonsNoLoopByDefault) {
  struct Control final : RunControl {
    void on_signal(Signal) override {}
  } control;
  EXPECT_EQ(control.abandon_at(), never);
  control.on_abandon_change([] { ADD_FAILURE() << "the time never changes"; });
  control.on_abandon_change(nullptr);
}

TEST(Platform, MayLackOptionalServices) {
  MemoryPlatform memory;
  Platform& platform = memory;
  EXPECT_FALSE(platform.Platform::clock_is_free());
  EXPECT_EQ(platform.Platform::open_datagrams({}).error(), Errc::unsupported);
  EXPECT_EQ(platform.Platform::join_group(3, {}).error(), Errc::unsupported);
  EXPECT_EQ(platform.Platform::leave_group(3, {}).error(), Errc::unsupported);
  EXPECT_EQ(platform.Platform::inherit_listener(3).error(), Errc::unsupported);
  const HandoverStart handover = platform.Platform::begin_handover({});
  EXPECT_EQ(handover.handover, nullptr);
  EXPECT_EQ(handover.failure, "this platform does not support hot restart");
  const Supervised supervised = platform.Platform::supervise({});
  EXPECT_EQ(supervised.worker, nullptr);
  EXPECT_EQ(supervised.status, 0);
  EXPECT_EQ(supervised.failure, "this platform does not support worker processes");
}

}  // namespace
}  // namespace weir::loop::operation_test
