// Tests that calls report a lack of descriptors, and that 0 is a descriptor like any other.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>

#include "weir/os/detail/io/datagram_socket.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/file.hpp"
#include "weir/os/detail/io/seqpacket_socket.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/detail/io/text_file.hpp"
#include "weir/os/test/scarce_descriptors.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::scarce_descriptors_test {
namespace {

const std::error_code too_many = system_error(EMFILE);

template <class T>
std::error_code error_of(const Result<T>& result) {
  return result ? std::error_code() : result.error();
}

TEST(ScarceDescriptors, EveryOpeningCallReportsTheirLack) {
  const TemporaryTree tree;
  tree.write("f", "text");
  const Address path = Address::local(tree.path("a.sock")).value();
  const DescriptorLimit none(0);
  EXPECT_EQ(error_of(duplicate(STDERR_FILENO)), too_many);
  EXPECT_EQ(error_of(open_pipe()), too_many);
  EXPECT_EQ(error_of(open_event()), too_many);
  EXPECT_EQ(error_of(open_stream(AddressFamily::ipv4)), too_many);
  EXPECT_EQ(error_of(open_socket_pair()), too_many);
  EXPECT_EQ(error_of(open_listener(Address::loopback(0))), too_many);
  EXPECT_EQ(error_of(open_listener(path)), too_many);
  EXPECT_EQ(error_of(open_datagram_socket({.local = Address::loopback(0)})), too_many);
  EXPECT_EQ(error_of(open_datagram_socket({.local = Address::any(0)})), too_many);
  EXPECT_EQ(error_of(open_file(tree.path("f"), {})), too_many);
  EXPECT_EQ(error_of(read_text_file(tree.path("f"))), too_many);
  EXPECT_EQ(error_of(list_directory(tree.root(), 10)), too_many);
  EXPECT_EQ(error_of(sync_directory(tree.root())), too_many);
  EXPECT_EQ(error_of(connect_or_listen(path)), too_many);
}

TEST(ScarceDescriptors, AConnectionWaitsUntilOneIsFree) {
  const TemporaryTree tree;
  const Address address = Address::local(tree.path("a.sock")).value();
  const Fd listener = open_listener(address).value();
  const Fd client = open_stream(AddressFamily::local).value();
  ASSERT_TRUE(start_connect(client.get(), address));
  {
    const DescriptorLimit none(0);
    EXPECT_EQ(error_of(accept_one(listener.get())), too_many);
  }
  EXPECT_TRUE(accept_one(listener.get()));
}

TEST(ScarceDescriptors, AListenerKeepsAPathThatItCannotProbe) {
  const TemporaryTree tree;
  const Address address = Address::local(tree.path("a.sock")).value();
  const Fd live = open_listener(address).value();
  const auto file = socket_file(address);
  {
    const DescriptorLimit one(1);
    EXPECT_EQ(error_of(open_listener(address)), system_error(EADDRINUSE));
  }
  EXPECT_EQ(socket_file(address), file);
}

TEST(ScarceDescriptors, ARendezvousThatLacksThemLeavesNothingBehind) {
  const TemporaryTree tree;
  const Address address = Address::local(tree.path("meet")).value();
  for (const std::size_t count : {1U, 2U}) {  // the lock; the lock and a connection
    const int before = lowest_free_descriptor();
    {
      const DescriptorLimit few(count);
      EXPECT_EQ(error_of(connect_or_listen(address)), too_many) << count;
    }
    EXPECT_EQ(lowest_free_descriptor(), before);
    EXPECT_TRUE(std::filesystem::is_empty(tree.root()));
  }
  const DescriptorLimit enough(3);
  EXPECT_TRUE(connect_or_listen(address));
}

TEST(ScarceDescriptors, AMessageThatLosesDescriptorsIsAnErrorAndTheOthersAreClosed) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()),
            0);
  const Fd sender(ends[0]);
  const Fd receiver(ends[1]);
  ASSERT_TRUE(
      send_message(sender.get(), to_bytes("two"), std::array{sender.get(), receiver.get()}));
  const int before = lowest_free_descriptor();
  std::array<std::byte, 16> room{};
  {
    const DescriptorLimit one(1);
    EXPECT_EQ(error_of(receive_message(receiver.get(), room)), system_error(EMSGSIZE));
  }
  EXPECT_EQ(lowest_free_descriptor(), before);
}

/// Checks that the call returned descriptor 0, and that its owner closes it.
template <class Open>
void expect_zero(const char* name, Open open) {
  SCOPED_TRACE(name);
  {
    const FreeDescriptorZero free;
    {
      const Result<Fd> opened = open();
      ASSERT_TRUE(opened) << opened.error().message();
      EXPECT_TRUE(*opened);
      EXPECT_EQ(opened->get(), 0);
      EXPECT_GE(::fcntl(0, F_GETFD), 0);
    }
    EXPECT_EQ(::fcntl(0, F_GETFD), -1) << "it is closed";
  }
}

Result<Fd> first_of(Result<Pipe> pipe) {
  if (!pipe) return fail(pipe.error());
  return std::move(pipe->read_end);
}

Result<Fd> first_of(Result<SocketPair> pair) {
  if (!pair) return fail(pair.error());
  return std::move(pair->first);
}

TEST(DescriptorZero, IsADescriptorLikeAnyOther) {
  const TemporaryTree tree;
  const Address address = Address::local(tree.path("a.sock")).value();
  const Fd listener = open_listener(address).value();
  const Fd client = open_stream(AddressFamily::local).value();
  ASSERT_TRUE(start_connect(client.get(), address));
  expect_zero("accept_one", [&] { return accept_one(listener.get()); });
  expect_zero("duplicate", [] { return duplicate(STDERR_FILENO); });
  expect_zero("open_event", [] { return open_event(); });
  expect_zero("open_pipe", [] { return first_of(open_pipe()); });
  expect_zero("open_stream", [] { return open_stream(AddressFamily::ipv4); });
  expect_zero("open_socket_pair", [] { return first_of(open_socket_pair()); });
  expect_zero("open_listener", [] { return open_listener(Address::loopback(0)); });
  expect_zero("open_datagram_socket",
              [] { return open_datagram_socket({.local = Address::loopback(0)}); });
  expect_zero("open_file", [] { return open_file("/dev/null", {}); });
}

TEST(DescriptorZero, IsReceivedInAMessage) {
  const SocketPair pair = open_socket_pair().value();
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()),
            0);
  const Fd sender(ends[0]);
  const Fd receiver(ends[1]);
  ASSERT_TRUE(send_message(sender.get(), to_bytes("x"), std::array{pair.first.get()}));
  const FreeDescriptorZero free;
  std::array<std::byte, 16> room{};
  const auto message = receive_message(receiver.get(), room);
  ASSERT_TRUE(message);
  ASSERT_EQ(message->descriptors.size(), 1U);
  EXPECT_EQ(message->descriptors[0].get(), 0);
}

TEST(DescriptorZero, ReadsTextAndListsDirectories) {
  const TemporaryTree tree;
  tree.write("f", "text");
  const FreeDescriptorZero free;
  EXPECT_EQ(read_text_file(tree.path("f")).value(), "text");
  EXPECT_EQ(list_directory(tree.root(), 1).value().size(), 1U);
  EXPECT_TRUE(sync_directory(tree.root()));
  EXPECT_TRUE(connect_or_listen(Address::local(tree.path("meet")).value()));
  EXPECT_EQ(::fcntl(0, F_GETFD), -1) << "each call closes its descriptor";
}

}  // namespace
}  // namespace weir::os::scarce_descriptors_test
