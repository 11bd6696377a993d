// Tests of seqpacket sockets: rendezvous at a path, messages and descriptors.
#include "weir/os/detail/io/seqpacket_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::seqpacket_socket_test {
namespace {

struct Ends {
  Fd one;
  Fd other;
};

Ends connected() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()),
            0);
  return {Fd(ends[0]), Fd(ends[1])};
}

std::string text_of(const Message& packet, const std::array<std::byte, 64>& room) {
  return std::string(to_text(Bytes(room).first(packet.size)));
}

class ConnectOrListen : public testing::Test {
 protected:
  TemporaryTree tree_;
  const Address place_ = Address::local(tree_.path("meet")).value();
};

TEST_F(ConnectOrListen, TheFirstListensAndOthersAreConnectedToIt) {
  auto first = connect_or_listen(place_);
  ASSERT_TRUE(first && first->listener && !first->connection);
  const auto second = connect_or_listen(place_);
  ASSERT_TRUE(second && second->connection && !second->listener);
  const auto accepted = accept_one(first->listener.get());
  ASSERT_TRUE(accepted);
  ASSERT_TRUE(send_message(second->connection.get(), to_bytes("hello")));
  std::array<std::byte, 64> room{};
  const auto packet = receive_message(accepted->get(), room);
  ASSERT_TRUE(packet);
  EXPECT_EQ(text_of(*packet, room), "hello");
  EXPECT_EQ(peer_user_id(accepted->get()), effective_user_id());
}

TEST_F(ConnectOrListen, SocketsAreNonBlockingAndCloseOnExec) {
  const auto first = connect_or_listen(place_);
  ASSERT_TRUE(first && first->listener);
  const auto second = connect_or_listen(place_);
  ASSERT_TRUE(second && second->connection);
  for (const int each : {first->listener.get(), second->connection.get()}) {
    EXPECT_NE(::fcntl(each, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(each, F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST_F(ConnectOrListen, OnlyThisUserMayConnect) {
  const auto first = connect_or_listen(place_);
  ASSERT_TRUE(first);
  struct stat file{};
  ASSERT_EQ(::stat(tree_.path("meet").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600U);
}

TEST_F(ConnectOrListen, TheFileOfADeadListenerIsReplaced) {
  {
    const auto dead = connect_or_listen(place_);
  }
  ASSERT_TRUE(std::filesystem::exists(tree_.path("meet")));
  const auto next = connect_or_listen(place_);
  ASSERT_TRUE(next);
  EXPECT_TRUE(next->listener);
  remove_local_path(place_, next->file.value());
  EXPECT_FALSE(std::filesystem::exists(tree_.path("meet")));
}

TEST_F(ConnectOrListen, RejectsOtherFilesAndKeepsThem) {
  tree_.write("meet", "precious");
  EXPECT_EQ(connect_or_listen(place_).error(), system_error(ENOTSOCK));
  EXPECT_TRUE(std::filesystem::is_regular_file(tree_.path("meet")));
  std::filesystem::remove(tree_.path("meet"));
  const auto other = open_listener(place_);
  ASSERT_TRUE(other);
  EXPECT_EQ(connect_or_listen(place_).error(), system_error(EPROTOTYPE));
  EXPECT_EQ(connect_or_listen(Address::local(tree_.path("no/folder")).value()).error(),
            system_error(ENOENT));
  EXPECT_EQ(connect_or_listen(Address::local("@abstract").value()).error(), Errc::bad_input);
  EXPECT_EQ(connect_or_listen(Address::loopback(1)).error(), Errc::bad_input);
}

TEST_F(ConnectOrListen, ExactlyOneOfManyConcurrentCallersListens) {
  for (int round = 0; round < 20; ++round) {
    if (round % 2 == 1)
      static_cast<void>(connect_or_listen(place_));  // leaves the file of a dead listener
    constexpr std::size_t count = 8;
    std::array<Result<Rendezvous>, count> met;
    std::vector<std::thread> threads;
    for (auto& each : met) {
      threads.emplace_back([&each, this] { each = connect_or_listen(place_); });
    }
    for (std::thread& each : threads) each.join();
    int listeners = 0;
    for (const auto& each : met) {
      ASSERT_TRUE(each) << each.error().message();
      listeners += each->listener ? 1 : 0;
    }
    EXPECT_EQ(listeners, 1);
    std::filesystem::remove(tree_.path("meet"));
  }
}

TEST_F(ConnectOrListen, ALockOfTheFolderBlocksNoCaller) {
  const Fd folder(::open(tree_.path("").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(folder.get(), LOCK_EX), 0);
  EXPECT_TRUE(connect_or_listen(place_));
}

TEST_F(ConnectOrListen, LeavesNoLockBehind) {
  const auto first = connect_or_listen(place_);
  ASSERT_TRUE(first && connect_or_listen(place_));
  EXPECT_FALSE(std::filesystem::exists(tree_.path("meet.lock")));
}

TEST_F(ConnectOrListen, TakesTheLockOfAKilledProcess) {
  Fd(::open(tree_.path("meet.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_TRUE(connect_or_listen(place_));
  EXPECT_FALSE(std::filesystem::exists(tree_.path("meet.lock")));
}

TEST_F(ConnectOrListen, RejectsALockThatOtherUsersMayOpen) {
  const std::string lock = tree_.path("meet.lock");
  tree_.write("meet.lock", "precious");
  std::filesystem::permissions(lock, std::filesystem::perms(0644));
  EXPECT_EQ(connect_or_listen(place_).error(), system_error(EACCES));
  EXPECT_TRUE(std::filesystem::exists(lock)) << "the file of another process";
  std::filesystem::remove(lock);
  tree_.write("other", "");
  std::filesystem::create_symlink(tree_.path("other"), lock);
  EXPECT_EQ(connect_or_listen(place_).error(), system_error(EACCES));
}

TEST_F(ConnectOrListen, RejectsEachPermissionOfOtherUsersForTheLock) {
  const std::string lock = tree_.path("meet.lock");
  tree_.write("meet.lock", "");
  for (unsigned permission = 1; permission <= 0040; permission *= 2) {
    std::filesystem::permissions(lock, std::filesystem::perms(0600 | permission));
    EXPECT_EQ(connect_or_listen(place_).error(), system_error(EACCES)) << permission;
    EXPECT_FALSE(std::filesystem::exists(tree_.path("meet"))) << permission;
  }
  std::filesystem::permissions(lock, std::filesystem::perms(0700));
  EXPECT_TRUE(connect_or_listen(place_));
}

TEST_F(ConnectOrListen, RejectsALockOfAnotherUser) {
  const std::string lock = tree_.path("meet.lock");
  const Fd file(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (::chown(lock.c_str(), 65534, 65534) != 0) {
    GTEST_SKIP() << "only root can give a file to another user of its user namespace";
  }
  EXPECT_EQ(connect_or_listen(place_).error(), system_error(EACCES));
  EXPECT_TRUE(std::filesystem::exists(lock));
  EXPECT_FALSE(std::filesystem::exists(tree_.path("meet")));
  ASSERT_EQ(::chown(lock.c_str(), 0, 0), 0);
  EXPECT_TRUE(connect_or_listen(place_));
}

TEST_F(ConnectOrListen, RejectsALockThatIsNotAPlainFile) {
  const std::string lock = tree_.path("meet.lock");
  ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
  EXPECT_EQ(connect_or_listen(place_).error(), system_error(EACCES));
  EXPECT_TRUE(std::filesystem::exists(lock));
}

TEST_F(ConnectOrListen, WaitsWhileAnotherProcessHoldsTheLock) {
  const std::string path = tree_.path("meet.lock");
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  const Fd opened(::inotify_init1(IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(opened.get(), path.c_str(), IN_OPEN), 0);
  Result<Rendezvous> met = fail(Errc::not_found);
  std::jthread waiting([&] { met = connect_or_listen(place_); });
  std::array<char, 4096> events{};
  for (int tries = 0; tries < 3; ++tries) {
    ASSERT_GT(::read(opened.get(), events.data(), events.size()), 0);
  }
  EXPECT_FALSE(std::filesystem::exists(tree_.path("meet")));
  // The process that releases the lock removes its file first.
  ASSERT_EQ(::unlink(path.c_str()), 0);
  lock.close();
  waiting.join();
  ASSERT_TRUE(met) << met.error().message();
  EXPECT_TRUE(met->listener);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ConnectOrListen, BothSidesReportTheListenersFile) {
  const auto first = connect_or_listen(place_);
  const auto second = connect_or_listen(place_);
  ASSERT_TRUE(first && second && first->file);
  EXPECT_EQ(second->file, first->file);
}

TEST(SeqpacketSocket, MessagesCarryDescriptorsOfTheSameFiles) {
  const Ends ends = connected();
  const Pipe pipe = open_pipe().value();
  ASSERT_TRUE(send_message(ends.one.get(), to_bytes("two"),
                           std::array{pipe.write_end.get(), pipe.read_end.get()}));
  std::array<std::byte, 64> room{};
  const auto packet = receive_message(ends.other.get(), room);
  ASSERT_TRUE(packet);
  EXPECT_EQ(text_of(*packet, room), "two");
  ASSERT_EQ(packet->descriptors.size(), 2U);
  EXPECT_NE(::fcntl(packet->descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(::write(packet->descriptors[0].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(pipe.read_end.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST(SeqpacketSocket, MessagesKeepTheirBoundaries) {
  const Ends ends = connected();
  ASSERT_TRUE(send_message(ends.one.get(), to_bytes("one")));
  ASSERT_TRUE(send_message(ends.one.get(), to_bytes("two")));
  std::array<std::byte, 64> room{};
  EXPECT_EQ(text_of(receive_message(ends.other.get(), room).value(), room), "one");
  EXPECT_EQ(text_of(receive_message(ends.other.get(), room).value(), room), "two");
  EXPECT_EQ(receive_message(ends.other.get(), room).error(), system_error(EAGAIN));
}

TEST(SeqpacketSocket, AFullQueueIsAnErrorUntilThereIsRoom) {
  const Ends ends = connected();
  std::array<std::byte, 64> room{};
  std::size_t sent = 0;
  Result<> result;
  while (sent < 100'000 && (result = send_message(ends.one.get(), room))) ++sent;
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(), system_error(EAGAIN));
  std::size_t received = 0;
  while (receive_message(ends.other.get(), room)) ++received;
  EXPECT_EQ(received, sent);
  EXPECT_TRUE(send_message(ends.one.get(), room));
}

TEST(SeqpacketSocket, LimitsTheNumberOfDescriptors) {
  const Ends ends = connected();
  const std::vector<int> most(message_descriptors_max, ends.one.get());
  ASSERT_TRUE(send_message(ends.one.get(), to_bytes("many"), most));
  std::array<std::byte, 64> room{};
  EXPECT_EQ(receive_message(ends.other.get(), room)->descriptors.size(), most.size());
  const std::vector<int> beyond(message_descriptors_max + 1, ends.one.get());
  EXPECT_EQ(send_message(ends.one.get(), to_bytes("more"), beyond).error(), Errc::limit_reached);
}

TEST(SeqpacketSocket, ATruncatedMessageIsAnErrorAndItsDescriptorsAreClosed) {
  const Ends ends = connected();
  Pipe pipe = open_pipe().value();
  const std::string large(65, 'x');
  ASSERT_TRUE(send_message(ends.one.get(), to_bytes(large), std::array{pipe.write_end.get()}));
  std::array<std::byte, 64> room{};
  EXPECT_EQ(receive_message(ends.other.get(), room).error(), system_error(EMSGSIZE));
  pipe.write_end.close();
  char byte = 0;
  EXPECT_EQ(::read(pipe.read_end.get(), &byte, 1), 0) << "the last writing end is closed";
}

TEST(SeqpacketSocket, AClosedPeerIsAnEmptyMessageAndABrokenPipe) {
  Ends ends = connected();
  ASSERT_TRUE(send_message(ends.one.get(), to_bytes("last")));
  ends.one.close();
  std::array<std::byte, 64> room{};
  EXPECT_EQ(receive_message(ends.other.get(), room)->size, 4U);
  EXPECT_EQ(receive_message(ends.other.get(), room)->size, 0U);
  EXPECT_EQ(send_message(ends.other.get(), to_bytes("late")).error(), system_error(EPIPE));
}

TEST(SeqpacketSocket, AnEarlierInterruptedCallDoesNotHideAClosedPeer) {
  Ends ends = connected();
  ends.one.close();
  std::array<std::byte, 64> room{};
  errno = EINTR;
  EXPECT_EQ(receive_message(ends.other.get(), room)->size, 0U);
}

TEST(SeqpacketSocket, IgnoresControlDataThatIsNotADescriptor) {
  const Ends ends = connected();
  const int on = 1;
  ASSERT_EQ(::setsockopt(ends.other.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  ASSERT_TRUE(send_message(ends.one.get(), to_bytes("x"), std::array{ends.one.get()}));
  std::array<std::byte, 64> room{};
  const auto message = receive_message(ends.other.get(), room);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->descriptors.size(), 1U);
  ASSERT_TRUE(send_message(ends.one.get(), to_bytes("y")));
  EXPECT_TRUE(receive_message(ends.other.get(), room)->descriptors.empty());
}

TEST(SeqpacketSocket, FailuresAreTheKernels) {
  std::array<std::byte, 64> room{};
  EXPECT_EQ(send_message(-1, to_bytes("x")).error(), system_error(EBADF));
  EXPECT_EQ(receive_message(-1, room).error(), system_error(EBADF));
  EXPECT_EQ(shut_down_receiving(-1).error(), system_error(EBADF));
  EXPECT_EQ(peer_user_id(-1).error(), system_error(EBADF));
}

TEST(SeqpacketSocket, QueuedMessagesAreReceivedAfterReceivingIsShutDown) {
  const Ends ends = connected();
  ASSERT_TRUE(send_message(ends.one.get(), to_bytes("in time")));
  ASSERT_TRUE(shut_down_receiving(ends.other.get()));
  EXPECT_EQ(send_message(ends.one.get(), to_bytes("late")).error(), system_error(EPIPE));
  std::array<std::byte, 64> room{};
  EXPECT_EQ(text_of(receive_message(ends.other.get(), room).value(), room), "in time");
  EXPECT_EQ(receive_message(ends.other.get(), room)->size, 0U);
}

}  // namespace
}  // namespace weir::os::seqpacket_socket_test
