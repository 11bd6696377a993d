// Tests of datagram sockets on loopback: delivery, shared ports and multicast groups.
#include "weir/os/detail/io/datagram_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/os/detail/io/socket.hpp"
#include "weir/os/test/denied_call.hpp"

namespace weir::os::datagram_socket_test {
namespace {

Fd open_socket(const DatagramSettings& settings) {
  auto socket = open_datagram_socket(settings);
  EXPECT_TRUE(socket) << socket.error().message();
  return socket ? std::move(*socket) : Fd();
}

ssize_t send_to(const Fd& socket, std::string_view text, const Address& peer) {
  return ::sendto(socket.get(), text.data(), text.size(), 0,
                  static_cast<const sockaddr*>(peer.data()), peer.size());
}

/// Returns the next datagram; nullopt if none arrives in time.
std::optional<std::string> receive(const Fd& socket, int milliseconds = 10'000) {
  pollfd wanted{socket.get(), POLLIN, 0};
  if (::poll(&wanted, 1, milliseconds) != 1) return std::nullopt;
  std::array<char, 100> room;
  const ssize_t size = ::recv(socket.get(), room.data(), room.size(), 0);
  if (size < 0) return std::nullopt;
  return std::string(room.data(), static_cast<std::size_t>(size));
}

Address address_of(const Fd& socket) {
  return local_address(socket.get()).value();
}

int option(const Fd& socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(socket.get(), level, name, &value, &size), 0) << name;
  return value;
}

unsigned loopback_interface() {
  return ::if_nametoindex("lo");
}

TEST(DatagramSocket, ExchangesDatagramsWithAnyPeer) {
  const Fd first = open_socket({.local = Address::loopback(0)});
  const Fd second = open_socket({.local = Address::loopback(0)});
  ASSERT_EQ(send_to(first, "hello", address_of(second)), 5);
  EXPECT_EQ(receive(second), "hello");
  ASSERT_EQ(send_to(second, "", address_of(first)), 0);
  EXPECT_EQ(receive(first), "");
}

TEST(DatagramSocket, ASocketOnEveryInterfaceReceivesIpv4) {
  const Fd server = open_socket({.local = Address::any(0)});
  const Fd client = open_socket({.local = Address::loopback(0)});
  ASSERT_EQ(send_to(client, "four", Address::loopback(address_of(server).port())), 4);
  EXPECT_EQ(receive(server), "four");
}

TEST(DatagramSocket, AConnectedSocketReceivesOnlyFromItsPeer) {
  const Fd server = open_socket({.local = Address::loopback(0)});
  const Fd client = open_socket({.peer = address_of(server)});
  const Fd stranger = open_socket({.local = Address::loopback(0)});
  EXPECT_EQ(peer_address(client.get()).value(), address_of(server));
  ASSERT_EQ(send_to(stranger, "psst", address_of(client)), 4);
  ASSERT_EQ(send_to(server, "answer", address_of(client)), 6);
  EXPECT_EQ(receive(client), "answer");
}

TEST(DatagramSocket, SharesAPortOnlyIfAllSocketsAllowIt) {
  const Fd alone = open_socket({.local = Address::loopback(0)});
  const Address taken = address_of(alone);
  EXPECT_EQ(open_datagram_socket({.local = taken}).error(), system_error(EADDRINUSE));
  EXPECT_EQ(open_datagram_socket({.local = taken, .reuse_port = true}).error(),
            system_error(EADDRINUSE));
  const Fd first =
      open_socket({.local = Address::loopback(0), .reuse_port = true, .require_unused = true});
  const Address shared = address_of(first);
  const Fd second = open_socket({.local = shared, .reuse_port = true});
  EXPECT_EQ(address_of(second), shared);
  EXPECT_EQ(
      open_datagram_socket({.local = shared, .reuse_port = true, .require_unused = true}).error(),
      system_error(EADDRINUSE));
}

TEST(DatagramSocket, AnUnusedPortIsSharedOnlyOnRequest) {
  const Fd alone = open_socket({.local = Address::loopback(0), .require_unused = true});
  EXPECT_EQ(option(alone, SOL_SOCKET, SO_REUSEPORT), 0);
  EXPECT_EQ(open_datagram_socket({.local = address_of(alone), .reuse_port = true}).error(),
            system_error(EADDRINUSE));
}

TEST(DatagramSocket, OptionsReachTheKernel) {
  const Address six = Address::any(0);
  const Fd plain = open_socket({.local = six});
  EXPECT_EQ(option(plain, IPPROTO_IPV6, IPV6_V6ONLY), 0);
  EXPECT_EQ(option(plain, IPPROTO_UDP, UDP_GRO), 0);
  EXPECT_EQ(option(plain, SOL_SOCKET, SO_REUSEPORT), 0);
  EXPECT_EQ(option(plain, IPPROTO_IPV6, IPV6_MULTICAST_IF), 0);
  EXPECT_EQ(option(plain, IPPROTO_IP, IP_MULTICAST_ALL), 0);
  constexpr int ipv6_multicast_all = 29;
  EXPECT_EQ(option(plain, IPPROTO_IPV6, ipv6_multicast_all), 0);
  const int interface = static_cast<int>(loopback_interface());
  const Fd other = open_socket({.local = six,
                                .reuse_port = true,
                                .v6_only = true,
                                .multicast_interface = loopback_interface(),
                                .gro = true});
  EXPECT_EQ(option(other, IPPROTO_IPV6, IPV6_V6ONLY), 1);
  EXPECT_EQ(option(other, IPPROTO_UDP, UDP_GRO), 1);
  EXPECT_EQ(option(other, SOL_SOCKET, SO_REUSEPORT), 1);
  EXPECT_EQ(option(other, IPPROTO_IPV6, IPV6_MULTICAST_IF), interface);
  const Fd four = open_socket({.local = Address::loopback(0)});
  EXPECT_EQ(option(four, IPPROTO_IP, IP_MULTICAST_ALL), 0);
  EXPECT_EQ(option(four, IPPROTO_UDP, UDP_GRO), 0);
}

TEST(DatagramSocket, IsNonBlockingAndCloseOnExec) {
  const Fd socket = open_socket({.local = Address::loopback(0)});
  EXPECT_NE(::fcntl(socket.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(socket.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(DatagramSocket, BindsToItsLocalAddressBeforeItConnects) {
  const Fd server = open_socket({.local = Address::loopback(0)});
  Fd client = open_socket({.local = Address::loopback(0), .peer = address_of(server)});
  const Address bound = address_of(client);
  EXPECT_EQ(peer_address(client.get()).value(), address_of(server));
  client.close();
  client = open_socket({.local = bound, .peer = address_of(server)});
  EXPECT_EQ(address_of(client), bound);
  EXPECT_EQ(open_datagram_socket({.local = Address::parse("192.0.2.1:0").value()}).error(),
            system_error(EADDRNOTAVAIL));
  EXPECT_FALSE(open_datagram_socket(
      {.local = Address::loopback(0), .peer = Address::parse("[::1]:1").value()}));
}

/// Ends this (child) process with 0 if opening ends as it should on a machine without IPv6.
[[noreturn]] void open_without_ipv6() {
  if (!deny({SYS_socket, 0, AF_INET6}, EAFNOSUPPORT)) ::_exit(2);
  const auto every = open_datagram_socket({.local = Address::any(0), .reuse_port = true});
  if (!every) ::_exit(3);
  const Address bound = local_address(every->get()).value();
  if (bound.family() != AddressFamily::ipv4 || !bound.is_any() || bound.port() == 0) ::_exit(4);
  const auto second =
      open_datagram_socket({.local = Address::any(bound.port()), .reuse_port = true});
  if (!second || local_address(second->get()).value() != bound) ::_exit(5);
  const auto alone = open_datagram_socket({.local = Address::any(bound.port())});
  if (alone || alone.error() != system_error(EADDRINUSE)) ::_exit(6);
  const auto only_six = open_datagram_socket({.local = Address::any(0), .v6_only = true});
  if (only_six || only_six.error() != system_error(EAFNOSUPPORT)) ::_exit(7);
  const auto loopback = open_datagram_socket({.local = Address::parse("[::1]:0").value()});
  if (loopback || loopback.error() != system_error(EAFNOSUPPORT)) ::_exit(8);
  ::_exit(0);
}

TEST(DatagramSocketDeathTest, EveryInterfaceMeansIpv4WithoutIpv6) {
  EXPECT_EXIT(open_without_ipv6(), testing::ExitedWithCode(0), "");
}

// The port is in use for IPv6 alone, so that 0.0.0.0 would be free.
TEST(DatagramSocket, EveryInterfaceDoesNotMeanIpv4IfThePortIsInUse) {
  const auto six = open_datagram_socket({.local = Address::parse("[::1]:0").value()});
  if (!six) GTEST_SKIP() << "no IPv6 here";
  const Address every = Address::any(address_of(*six).port());
  EXPECT_EQ(open_datagram_socket({.local = every}).error(), system_error(EADDRINUSE));
  EXPECT_TRUE(open_datagram_socket({.local = Address::ipv4({}, every.port())}));
}

/// Ends this (child) process with 0 if opening ignores ENOPROTOOPT and returns any other error.
[[noreturn]] void open_without_gro(int error) {
  if (!deny({SYS_setsockopt, 2, UDP_GRO}, error)) ::_exit(2);
  if (!open_datagram_socket({.local = Address::loopback(0)})) ::_exit(3);
  const auto merging = open_datagram_socket({.local = Address::loopback(0), .gro = true});
  if (error == ENOPROTOOPT && !merging) ::_exit(4);
  if (error != ENOPROTOOPT && (merging || merging.error() != system_error(error))) ::_exit(5);
  ::_exit(0);
}

TEST(DatagramSocketDeathTest, OpensOnAKernelWithoutGro) {
  EXPECT_EXIT(open_without_gro(ENOPROTOOPT), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(open_without_gro(EPERM), testing::ExitedWithCode(0), "");
}

/// Ends this (child) process with 0 if opening fails because the kernel rejects the option.
[[noreturn]] void open_without_option(int option, const DatagramSettings& settings) {
  if (!deny({SYS_setsockopt, 2, static_cast<std::uint32_t>(option)}, EPERM)) ::_exit(2);
  const auto socket = open_datagram_socket(settings);
  ::_exit(!socket && socket.error() == system_error(EPERM) ? 0 : 1);
}

TEST(DatagramSocketDeathTest, ARejectedOptionIsAnError) {
  const Address four = Address::loopback(0);
  const unsigned lo = loopback_interface();
  const auto passed = testing::ExitedWithCode(0);
  EXPECT_EXIT(open_without_option(IP_MULTICAST_ALL, {.local = four}), passed, "");
  EXPECT_EXIT(open_without_option(SO_REUSEPORT, {.local = four, .reuse_port = true}), passed, "");
  EXPECT_EXIT(open_without_option(SO_REUSEPORT,
                                  {.local = four, .reuse_port = true, .require_unused = true}),
              passed, "");
  if (lo != 0) {
    EXPECT_EXIT(open_without_option(IP_MULTICAST_IF, {.local = four, .multicast_interface = lo}),
                passed, "");
  }
  const Address six = Address::parse("[::1]:0").value();
  if (!open_datagram_socket({.local = six})) GTEST_SKIP() << "no IPv6 here";
  EXPECT_EXIT(open_without_option(IPV6_V6ONLY, {.local = six}), passed, "");
}

TEST(DatagramSocket, NeedsAnIpAddress) {
  EXPECT_EQ(open_datagram_socket({}).error(), system_error(EAFNOSUPPORT));
  EXPECT_EQ(open_datagram_socket({.local = Address::local("@weir").value()}).error(),
            system_error(EAFNOSUPPORT));
}

// A socket does not receive datagrams that were sent to a group before it joined or after it left.
// The last datagram of each part goes to the socket itself and shows that no other was delivered.
TEST(DatagramSocket, ReceivesFromAGroupOnlyWhileJoined) {
  if (loopback_interface() == 0) GTEST_SKIP() << "no interface called lo";
  const Address any = Address::ipv4({}, 0);
  const MulticastGroup group{Address::ipv4({239, 255, 77, 1}, 0), loopback_interface()};
  const Fd member = open_socket({.local = any});
  const Address to_group = group.address.with_port(address_of(member).port());
  const Address to_member = Address::loopback(to_group.port());
  const Fd other_member = open_socket({.local = any});
  const Fd sender = open_socket({.local = any, .multicast_interface = group.interface});
  // The machine is in the group, but this socket is not.
  ASSERT_TRUE(join_group(other_member.get(), group));
  ASSERT_EQ(send_to(sender, "early", to_group), 5);
  ASSERT_EQ(send_to(sender, "one", to_member), 3);
  EXPECT_EQ(receive(member), "one");

  const auto joined = join_group(member.get(), group);
  ASSERT_TRUE(joined) << joined.error().message();
  EXPECT_EQ(join_group(member.get(), group).error(), system_error(EADDRINUSE));
  ASSERT_EQ(send_to(sender, "in time", to_group), 7);
  EXPECT_EQ(receive(member), "in time");

  ASSERT_TRUE(leave_group(member.get(), group));
  EXPECT_EQ(leave_group(member.get(), group).error(), system_error(EADDRNOTAVAIL));
  ASSERT_EQ(send_to(sender, "late", to_group), 4);
  ASSERT_EQ(send_to(sender, "two", to_member), 3);
  EXPECT_EQ(receive(member), "two");
}

// This test sends nothing, because many machines have no route for IPv6 groups over loopback.
TEST(DatagramSocket, JoinsAndLeavesAnIpv6Group) {
  const Address loopback = Address::parse("[::1]:0").value();
  const bool has_ipv6 = open_datagram_socket({.local = loopback}).has_value();
  if (!has_ipv6 || loopback_interface() == 0) GTEST_SKIP() << "no IPv6, or nothing called lo";
  const Fd member = open_socket({.local = Address::any(0)});
  const MulticastGroup group{Address::parse("[ff01::77:1]:0").value(), loopback_interface()};
  const auto joined = join_group(member.get(), group);
  EXPECT_TRUE(joined) << joined.error().message();
  EXPECT_EQ(join_group(member.get(), group).error(), system_error(EADDRINUSE));
  // The interface may be named by the address instead.
  std::array<std::uint8_t, 16> bytes{0xff, 0x01};
  bytes[13] = 0x77;
  bytes[15] = 0x01;
  const MulticastGroup scoped{Address::ipv6(bytes, 0, loopback_interface()), 0};
  EXPECT_TRUE(leave_group(member.get(), scoped));
  EXPECT_EQ(leave_group(member.get(), group).error(), system_error(EADDRNOTAVAIL));
}

// Without the scope, the kernel would choose another interface than lo, or none.
TEST(DatagramSocket, JoinsAnIpv6GroupOnTheInterfaceOfItsScope) {
  const Address loopback = Address::parse("[::1]:0").value();
  const bool has_ipv6 = open_datagram_socket({.local = loopback}).has_value();
  const unsigned lo = loopback_interface();
  if (!has_ipv6 || lo == 0) GTEST_SKIP() << "no IPv6, or nothing called lo";
  const Fd member = open_socket({.local = Address::any(0)});
  std::array<std::uint8_t, 16> bytes{0xff, 0x02};
  bytes[13] = 0x77;
  bytes[15] = 0x02;
  const auto joined = join_group(member.get(), {Address::ipv6(bytes, 0, lo), 0});
  ASSERT_TRUE(joined) << joined.error().message();
  const Address unscoped = Address::ipv6(bytes, 0, 0);
  EXPECT_EQ(join_group(member.get(), {unscoped, lo}).error(), system_error(EADDRINUSE));
  EXPECT_TRUE(leave_group(member.get(), {unscoped, lo}));
  EXPECT_EQ(join_group(member.get(), {Address::ipv6(bytes, 0, 1U << 30), 0}).error(),
            system_error(ENODEV));
  // A given interface takes precedence.
  ASSERT_TRUE(join_group(member.get(), {Address::ipv6(bytes, 0, 1U << 30), lo}));
  EXPECT_TRUE(leave_group(member.get(), {unscoped, lo}));
}

TEST(DatagramSocket, RejectsAddressesThatAreNotGroups) {
  const Fd socket = open_socket({.local = Address::loopback(0)});
  EXPECT_EQ(join_group(socket.get(), {Address::loopback(0), 0}).error(), system_error(EINVAL));
  EXPECT_EQ(join_group(socket.get(), {Address(), 0}).error(), system_error(EINVAL));
}

}  // namespace
}  // namespace weir::os::datagram_socket_test
