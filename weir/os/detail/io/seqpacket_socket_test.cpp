// Packets between processes: who meets whom at a path, and what arrives with them.
#include "weir/os/local_packets.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
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

namespace weir::os {
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

std::string text_of(const Packet& packet, const std::array<std::byte, 64>& room) {
  return std::string(to_text(Bytes(room).first(packet.size)));
}

class MeetAt : public testing::Test {
 protected:
  TemporaryTree tree_;
  const Address place_ = Address::local(tree_.path("meet")).value();
};

TEST_F(MeetAt, TheFirstListensAndOthersAreConnectedToIt) {
  auto first = meet_at(place_);
  ASSERT_TRUE(first && first->listener && !first->connection);
  const auto second = meet_at(place_);
  ASSERT_TRUE(second && second->connection && !second->listener);
  const auto accepted = accept_one(first->listener.get());
  ASSERT_TRUE(accepted);
  ASSERT_TRUE(send_packet(second->connection.get(), to_bytes("hello")));
  std::array<std::byte, 64> room{};
  const auto packet = receive_packet(accepted->get(), room);
  ASSERT_TRUE(packet);
  EXPECT_EQ(text_of(*packet, room), "hello");
  EXPECT_EQ(peer_user(accepted->get()), own_user());
}

TEST_F(MeetAt, NobodyElseMayConnect) {
  const auto first = meet_at(place_);
  ASSERT_TRUE(first);
  struct stat file{};
  ASSERT_EQ(::stat(tree_.path("meet").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600U);
}

TEST_F(MeetAt, TheFileOfADeadListenerIsReplaced) {
  {
    const auto dead = meet_at(place_);
  }
  ASSERT_TRUE(std::filesystem::exists(tree_.path("meet")));
  const auto next = meet_at(place_);
  ASSERT_TRUE(next);
  EXPECT_TRUE(next->listener);
  remove_local_path(place_, next->file.value());
  EXPECT_FALSE(std::filesystem::exists(tree_.path("meet")));
}

TEST_F(MeetAt, WhatIsNoMeetingPlaceIsLeftAlone) {
  tree_.write("meet", "precious");
  EXPECT_EQ(meet_at(place_).error(), system_error(ENOTSOCK));
  EXPECT_TRUE(std::filesystem::is_regular_file(tree_.path("meet")));
  std::filesystem::remove(tree_.path("meet"));
  const auto other = open_listener(place_);
  ASSERT_TRUE(other);
  EXPECT_EQ(meet_at(place_).error(), system_error(EPROTOTYPE));
  EXPECT_EQ(meet_at(Address::local(tree_.path("no/folder")).value()).error(), system_error(ENOENT));
  EXPECT_EQ(meet_at(Address::local("@abstract").value()).error(), Errc::bad_input);
  EXPECT_EQ(meet_at(Address::loopback(1)).error(), Errc::bad_input);
}

TEST_F(MeetAt, OfManyAtOnceExactlyOneListens) {
  for (int round = 0; round < 20; ++round) {
    if (round % 2 == 1) static_cast<void>(meet_at(place_));  // leaves a dead listener's file
    constexpr std::size_t count = 8;
    std::array<Result<Meeting>, count> met;
    std::vector<std::thread> threads;
    for (auto& each : met) {
      threads.emplace_back([&each, this] { each = meet_at(place_); });
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

TEST_F(MeetAt, WhoeverLocksTheFolderHoldsUpNobody) {
  const Fd folder(::open(tree_.path("").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(folder.get(), LOCK_EX), 0);
  EXPECT_TRUE(meet_at(place_));
}

TEST_F(MeetAt, LeavesNoLockBehind) {
  const auto first = meet_at(place_);
  ASSERT_TRUE(first && meet_at(place_));
  EXPECT_FALSE(std::filesystem::exists(tree_.path("meet.lock")));
}

TEST_F(MeetAt, TheLockOfOneThatWasKilledIsTaken) {
  Fd(::open(tree_.path("meet.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_TRUE(meet_at(place_));
  EXPECT_FALSE(std::filesystem::exists(tree_.path("meet.lock")));
}

TEST_F(MeetAt, ALockThatOthersCouldHoldIsRefused) {
  const std::string lock = tree_.path("meet.lock");
  tree_.write("meet.lock", "precious");
  std::filesystem::permissions(lock, std::filesystem::perms(0644));
  EXPECT_EQ(meet_at(place_).error(), system_error(EACCES));
  EXPECT_TRUE(std::filesystem::exists(lock)) << "it is not ours to remove";
  std::filesystem::remove(lock);
  tree_.write("other", "");
  std::filesystem::create_symlink(tree_.path("other"), lock);
  EXPECT_EQ(meet_at(place_).error(), system_error(EACCES));
}

TEST_F(MeetAt, TellsWhoseFileItIs) {
  const auto first = meet_at(place_);
  const auto second = meet_at(place_);
  ASSERT_TRUE(first && second && first->file);
  EXPECT_EQ(second->file, first->file);
}

TEST(Packets, CarryDescriptorsOfTheSameFiles) {
  const Ends ends = connected();
  const Pipe pipe = open_pipe().value();
  ASSERT_TRUE(send_packet(ends.one.get(), to_bytes("two"),
                          std::array{pipe.write_end.get(), pipe.read_end.get()}));
  std::array<std::byte, 64> room{};
  const auto packet = receive_packet(ends.other.get(), room);
  ASSERT_TRUE(packet);
  EXPECT_EQ(text_of(*packet, room), "two");
  ASSERT_EQ(packet->descriptors.size(), 2U);
  EXPECT_NE(::fcntl(packet->descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(::write(packet->descriptors[0].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(pipe.read_end.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST(Packets, KeepTheirBounds) {
  const Ends ends = connected();
  ASSERT_TRUE(send_packet(ends.one.get(), to_bytes("one")));
  ASSERT_TRUE(send_packet(ends.one.get(), to_bytes("two")));
  std::array<std::byte, 64> room{};
  EXPECT_EQ(text_of(receive_packet(ends.other.get(), room).value(), room), "one");
  EXPECT_EQ(text_of(receive_packet(ends.other.get(), room).value(), room), "two");
  EXPECT_EQ(receive_packet(ends.other.get(), room).error(), system_error(EAGAIN));
}

TEST(Packets, AsManyDescriptorsAsAllowedAndNoMore) {
  const Ends ends = connected();
  const std::vector<int> most(packet_descriptors_max, ends.one.get());
  ASSERT_TRUE(send_packet(ends.one.get(), to_bytes("many"), most));
  std::array<std::byte, 64> room{};
  EXPECT_EQ(receive_packet(ends.other.get(), room)->descriptors.size(), most.size());
  const std::vector<int> beyond(packet_descriptors_max + 1, ends.one.get());
  EXPECT_EQ(send_packet(ends.one.get(), to_bytes("more"), beyond).error(), Errc::limit_reached);
}

TEST(Packets, WhatIsCutOffIsAnErrorAndClosed) {
  const Ends ends = connected();
  Pipe pipe = open_pipe().value();
  const std::string large(65, 'x');
  ASSERT_TRUE(send_packet(ends.one.get(), to_bytes(large), std::array{pipe.write_end.get()}));
  std::array<std::byte, 64> room{};
  EXPECT_EQ(receive_packet(ends.other.get(), room).error(), system_error(EMSGSIZE));
  pipe.write_end.close();
  char byte = 0;
  EXPECT_EQ(::read(pipe.read_end.get(), &byte, 1), 0) << "nobody else has the writing end";
}

TEST(Packets, ThePeersEndIsAnEmptyPacketAndABrokenPipe) {
  Ends ends = connected();
  ASSERT_TRUE(send_packet(ends.one.get(), to_bytes("last")));
  ends.one.close();
  std::array<std::byte, 64> room{};
  EXPECT_EQ(receive_packet(ends.other.get(), room)->size, 4U);
  EXPECT_EQ(receive_packet(ends.other.get(), room)->size, 0U);
  EXPECT_EQ(send_packet(ends.other.get(), to_bytes("late")).error(), system_error(EPIPE));
}

TEST(Packets, WhatArrivedBeforeReceivingWasShutDownCanBeReceived) {
  const Ends ends = connected();
  ASSERT_TRUE(send_packet(ends.one.get(), to_bytes("in time")));
  ASSERT_TRUE(shut_down_receiving(ends.other.get()));
  EXPECT_EQ(send_packet(ends.one.get(), to_bytes("late")).error(), system_error(EPIPE));
  std::array<std::byte, 64> room{};
  EXPECT_EQ(text_of(receive_packet(ends.other.get(), room).value(), room), "in time");
  EXPECT_EQ(receive_packet(ends.other.get(), room)->size, 0U);
}

}  // namespace
}  // namespace weir::os
