// Tests of sockets on loopback: listening, connecting, options, and draining without resets.
#include "weir/os/detail/io/socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "weir/os/test/denied_call.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::socket_test {
namespace {

bool ready(int socket, short events, int milliseconds = 5000) {
  pollfd wanted{socket, events, 0};
  return ::poll(&wanted, 1, milliseconds) == 1;
}

int option(int socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(socket, level, name, &value, &size), 0);
  return value;
}

Fd listen_at(const Address& address, const ListenSettings& settings = {}) {
  auto listener = open_listener(address, settings);
  EXPECT_TRUE(listener) << address.to_string() << ": " << listener.error().message();
  return listener ? std::move(*listener) : Fd();
}

/// Starts a connection and returns its socket without waiting.
Fd begin_connect(const Address& address) {
  Fd client = open_stream(address.family()).value();
  const auto state = start_connect(client.get(), address);
  EXPECT_TRUE(state) << state.error().message();
  return client;
}

Fd connect_to(const Address& address) {
  Fd client = begin_connect(address);
  EXPECT_TRUE(ready(client.get(), POLLOUT));
  EXPECT_TRUE(take_error(client.get()));
  return client;
}

Fd accept_from(const Fd& listener) {
  EXPECT_TRUE(ready(listener.get(), POLLIN));
  auto peer = accept_one(listener.get());
  EXPECT_TRUE(peer) << peer.error().message();
  return peer ? std::move(*peer) : Fd();
}

struct Connection {
  Fd client;
  Fd server;
};

Connection connected() {
  const Fd listener = listen_at(Address::loopback(0));
  Connection result{connect_to(local_address(listener.get()).value()), Fd()};
  result.server = accept_from(listener);
  return result;
}

bool has_ipv6() {
  return open_listener(Address::parse("[::1]:0").value()).has_value();
}

TEST(Listener, AcceptsAndReportsBothAddresses) {
  const Fd listener = listen_at(Address::loopback(0));
  const Address address = local_address(listener.get()).value();
  EXPECT_NE(address.port(), 0);
  Address peer;
  EXPECT_EQ(accept_one(listener.get(), &peer).error(), system_error(EAGAIN));
  const Fd client = connect_to(address);
  ASSERT_TRUE(ready(listener.get(), POLLIN));
  const Fd server = accept_one(listener.get(), &peer).value();
  EXPECT_EQ(peer, local_address(client.get()).value());
  EXPECT_EQ(peer, peer_address(server.get()).value());
  EXPECT_EQ(peer_address(client.get()).value(), address);
  for (const int each : {listener.get(), client.get(), server.get()}) {
    EXPECT_NE(::fcntl(each, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(each, F_GETFL) & O_NONBLOCK, 0);
  }
}

TEST(Listener, EveryInterfaceAcceptsIpv4AndIpv6) {
  const Fd listener = listen_at(Address::any(0));
  const std::uint16_t port = local_address(listener.get())->port();
  const Fd four = connect_to(Address::loopback(port));
  EXPECT_TRUE(accept_from(listener));
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  const Fd six = connect_to(Address::parse("[::1]:0")->with_port(port));
  EXPECT_TRUE(accept_from(listener));
}

TEST(Listener, Ipv6OnlyRefusesIpv4) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  const Fd listener = listen_at(Address::any(0), {.v6_only = true});
  const std::uint16_t port = local_address(listener.get())->port();
  const Fd client = open_stream(AddressFamily::ipv4).value();
  const auto state = start_connect(client.get(), Address::loopback(port));
  if (state) {
    ASSERT_TRUE(ready(client.get(), POLLOUT));
    EXPECT_EQ(take_error(client.get()).error(), system_error(ECONNREFUSED));
  } else {
    EXPECT_EQ(state.error(), system_error(ECONNREFUSED));
  }
}

TEST(Listener, APortInUseIsAnErrorUnlessShared) {
  const Fd alone = listen_at(Address::loopback(0));
  const Address taken = local_address(alone.get()).value();
  EXPECT_EQ(open_listener(taken).error(), system_error(EADDRINUSE));
  EXPECT_EQ(open_listener(taken, {.reuse_port = true}).error(), system_error(EADDRINUSE));

  const Fd first = listen_at(Address::loopback(0), {.reuse_port = true});
  const Fd second = listen_at(local_address(first.get()).value(), {.reuse_port = true});
  EXPECT_EQ(local_address(first.get()).value(), local_address(second.get()).value());
}

TEST(Listener, AFirstListenerSharesItsPortOnlyWithLaterOnes) {
  const Fd theirs = listen_at(Address::loopback(0), {.reuse_port = true});
  const Address taken = local_address(theirs.get()).value();
  EXPECT_EQ(open_listener(taken, {.reuse_port = true, .require_unused = true}).error(),
            system_error(EADDRINUSE));

  const Fd first = listen_at(Address::loopback(0), {.reuse_port = true, .require_unused = true});
  const Address ours = local_address(first.get()).value();
  Fd second = listen_at(ours, {.reuse_port = true});
  // The kernel distributes connections among both.
  std::vector<Fd> clients;
  bool accepted[2] = {false, false};
  for (int i = 0; i < 200 && !(accepted[0] && accepted[1]); ++i) {
    clients.push_back(open_stream(AddressFamily::ipv4).value());
    ASSERT_TRUE(start_connect(clients.back().get(), ours));
    accepted[0] = accepted[0] || accept_one(first.get()).has_value();
    accepted[1] = accepted[1] || accept_one(second.get()).has_value();
  }
  EXPECT_TRUE(accepted[0] && accepted[1]);
}

TEST(Listener, PortOptionsReachTheKernel) {
  struct {
    ListenSettings settings;
    int reuse_address;
    int reuse_port;
  } const cases[] = {
      {{}, 1, 0},
      {{.reuse_address = false}, 0, 0},
      {{.require_unused = true}, 1, 0},
      {{.reuse_port = true}, 1, 1},
      {{.reuse_port = true, .require_unused = true}, 1, 1},
  };
  for (const auto& each : cases) {
    const Fd listener = listen_at(Address::loopback(0), each.settings);
    EXPECT_EQ(option(listener.get(), SOL_SOCKET, SO_REUSEADDR), each.reuse_address);
    EXPECT_EQ(option(listener.get(), SOL_SOCKET, SO_REUSEPORT), each.reuse_port);
    const auto second = open_listener(local_address(listener.get()).value(), {.reuse_port = true});
    EXPECT_EQ(second.has_value(), each.reuse_port == 1);
  }
}

TEST(Listener, PortOptionsDoNotAffectUnixSockets) {
  const TemporaryTree tree;
  const Address address = Address::local(tree.path("a.sock")).value();
  const Fd listener =
      listen_at(address, {.reuse_port = true, .require_unused = true, .v6_only = true});
  EXPECT_EQ(option(listener.get(), SOL_SOCKET, SO_REUSEADDR), 0);
  EXPECT_EQ(option(listener.get(), SOL_SOCKET, SO_REUSEPORT), 0);
}

/// Ends this (child) process with 0 if listening ends as it should on a machine without IPv6.
[[noreturn]] void listen_without_ipv6() {
  if (!deny({SYS_socket, 0, AF_INET6}, EAFNOSUPPORT)) ::_exit(2);
  const auto every = open_listener(Address::any(0), {.reuse_port = true});
  if (!every) ::_exit(3);
  const Address bound = local_address(every->get()).value();
  if (bound.family() != AddressFamily::ipv4 || !bound.is_any() || bound.port() == 0) ::_exit(4);
  const auto second = open_listener(Address::any(bound.port()), {.reuse_port = true});
  if (!second || local_address(second->get()).value() != bound) ::_exit(5);
  const auto alone = open_listener(Address::any(bound.port()));
  if (alone || alone.error() != system_error(EADDRINUSE)) ::_exit(6);
  const auto only_six = open_listener(Address::any(0), {.v6_only = true});
  if (only_six || only_six.error() != system_error(EAFNOSUPPORT)) ::_exit(7);
  const auto loopback = open_listener(Address::parse("[::1]:0").value());
  if (loopback || loopback.error() != system_error(EAFNOSUPPORT)) ::_exit(8);
  ::_exit(0);
}

TEST(ListenerDeathTest, EveryInterfaceMeansIpv4WithoutIpv6) {
  EXPECT_EXIT(listen_without_ipv6(), testing::ExitedWithCode(0), "");
}

// The port is in use for IPv6 alone, so that 0.0.0.0 would be free. Another process may hold the
// port for IPv4, so the test tries several ports.
TEST(Listener, EveryInterfaceDoesNotMeanIpv4IfThePortIsInUse) {
  for (int tries = 0; tries < 20; ++tries) {
    const auto six = open_listener(Address::parse("[::1]:0").value());
    if (!six) GTEST_SKIP() << "no IPv6 here";
    const Address every = Address::any(local_address(six->get())->port());
    EXPECT_EQ(open_listener(every).error(), system_error(EADDRINUSE));
    if (open_listener(Address::ipv4({}, every.port()))) return;
  }
  FAIL() << "no port was free for IPv4";
}

/// Ends this (child) process with 0 if listening fails because the kernel rejects the option.
[[noreturn]] void listen_without_option(int option, const Address& address,
                                        const ListenSettings& settings) {
  if (!deny({SYS_setsockopt, 2, static_cast<std::uint32_t>(option)}, EPERM)) ::_exit(2);
  const auto listener = open_listener(address, settings);
  ::_exit(!listener && listener.error() == system_error(EPERM) ? 0 : 1);
}

TEST(ListenerDeathTest, ARejectedOptionIsAnError) {
  const Address four = Address::loopback(0);
  const auto passed = testing::ExitedWithCode(0);
  EXPECT_EXIT(listen_without_option(SO_REUSEADDR, four, {}), passed, "");
  EXPECT_EXIT(listen_without_option(SO_REUSEPORT, four, {.reuse_port = true}), passed, "");
  EXPECT_EXIT(
      listen_without_option(SO_REUSEPORT, four, {.reuse_port = true, .require_unused = true}),
      passed, "");
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  const Address six = Address::parse("[::1]:0").value();
  EXPECT_EXIT(listen_without_option(IPV6_V6ONLY, six, {}), passed, "");
}

TEST(Listener, TheBacklogReachesTheKernel) {
  EXPECT_EQ(ListenSettings().backlog, 4096);
  const Fd listener = listen_at(Address::loopback(0), {.backlog = 7});
  tcp_info info{};
  socklen_t size = sizeof info;
  ASSERT_EQ(::getsockopt(listener.get(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  EXPECT_EQ(info.tcpi_sacked, 7u);  // the backlog of a listener
}

TEST(Listener, AForeignAddressIsAnError) {
  EXPECT_EQ(open_listener(Address::parse("192.0.2.1:0").value()).error(),
            system_error(EADDRNOTAVAIL));
  EXPECT_FALSE(open_listener(Address()));
}

TEST(Connect, ReportsARefusedConnection) {
  Fd listener = listen_at(Address::loopback(0));
  const Address address = local_address(listener.get()).value();
  listener.close();
  const Fd client = open_stream(AddressFamily::ipv4).value();
  const auto state = start_connect(client.get(), address);
  if (state) {
    ASSERT_EQ(*state, ConnectState::in_progress);
    ASSERT_TRUE(ready(client.get(), POLLOUT));
    EXPECT_EQ(take_error(client.get()).error(), system_error(ECONNREFUSED));
    EXPECT_TRUE(take_error(client.get())) << "the error is reported once";
  } else {
    EXPECT_EQ(state.error(), system_error(ECONNREFUSED));
  }
}

TEST(Connect, AUnixConnectionIsEstablishedImmediately) {
  const TemporaryTree tree;
  const Address address = Address::local(tree.path("a.sock")).value();
  const Fd listener = listen_at(address, {.backlog = 0});
  const Fd client = open_stream(AddressFamily::local).value();
  EXPECT_EQ(start_connect(client.get(), address).value(), ConnectState::established);
  const Fd late = open_stream(AddressFamily::local).value();
  EXPECT_EQ(start_connect(late.get(), address).error(), system_error(EAGAIN)) << "a full queue";
}

TEST(Connect, ReportsABadDescriptor) {
  EXPECT_EQ(start_connect(-1, Address::loopback(1)).error(), system_error(EBADF));
  EXPECT_EQ(take_error(-1).error(), system_error(EBADF));
  EXPECT_EQ(local_address(-1).error(), system_error(EBADF));
}

TEST(Unix, ConnectsByPathAndByAbstractName) {
  const TemporaryTree tree;
  const std::string abstract = "unix:@weir-os-test-" + std::to_string(::getpid());
  for (const std::string& text : {"unix:" + (tree.path("a.sock")), abstract}) {
    const Address address = Address::parse(text).value();
    const Fd listener = listen_at(address);
    EXPECT_EQ(local_address(listener.get())->to_string(), text);
    const Fd client = connect_to(address);
    const Fd server = accept_from(listener);
    EXPECT_EQ(::send(client.get(), "hi", 2, MSG_NOSIGNAL), 2);
    char bytes[3] = {};
    EXPECT_EQ(::recv(server.get(), bytes, sizeof bytes, 0), 2);
    EXPECT_STREQ(bytes, "hi");
  }
}

TEST(Unix, TakesOverAStalePathButNotALiveOne) {
  const TemporaryTree tree;
  const Address address = Address::local(tree.path("a.sock")).value();
  Fd listener = listen_at(address);
  EXPECT_EQ(open_listener(address).error(), system_error(EADDRINUSE));
  EXPECT_TRUE(connect_to(address)) << "the live one still listens";
  listener.close();
  ASSERT_TRUE(std::filesystem::exists(address.path()));
  const Fd successor = listen_at(address);
  EXPECT_TRUE(connect_to(address));
}

TEST(Unix, AServerWithAFullQueueKeepsItsPath) {
  const TemporaryTree tree;
  const Address address = Address::local(tree.path("a.sock")).value();
  const Fd listener = listen_at(address, {.backlog = 0});
  const Fd waiting = connect_to(address);
  EXPECT_EQ(open_listener(address).error(), system_error(EADDRINUSE));
  EXPECT_TRUE(accept_from(listener));
}

TEST(Unix, KeepsAFileThatIsNotASocket) {
  const TemporaryTree tree;
  const std::string path = tree.path("precious");
  const Fd file(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_TRUE(file);
  const std::string link = tree.path("link");
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  for (const std::string& name : {path, link}) {
    EXPECT_EQ(open_listener(Address::local(name).value()).error(), system_error(EADDRINUSE));
    EXPECT_TRUE(std::filesystem::exists(name));
  }
}

TEST(Unix, KeepsALinkToAStaleSocket) {
  const TemporaryTree tree;
  const Address stale = Address::local(tree.path("a.sock")).value();
  listen_at(stale).close();
  const std::string link = tree.path("link");
  ASSERT_EQ(::symlink(stale.path().data(), link.c_str()), 0);
  EXPECT_FALSE(socket_file(Address::local(link).value()));
  EXPECT_EQ(open_listener(Address::local(link).value()).error(), system_error(EADDRINUSE));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::exists(link));
}

TEST(Unix, RemovesThePath) {
  const TemporaryTree tree;
  const Address address = Address::local(tree.path("a.sock")).value();
  const Fd listener = listen_at(address);
  const auto file = socket_file(address);
  ASSERT_TRUE(file);
  remove_local_path(address, *file);
  EXPECT_FALSE(std::filesystem::exists(address.path()));
  remove_local_path(address, *file);
  EXPECT_FALSE(socket_file(Address::loopback(1)));
  EXPECT_FALSE(socket_file(Address::local("@abstract").value()));
}

TEST(Unix, KeepsAPathThatAnotherListenerTookOver) {
  const TemporaryTree tree;
  const Address address = Address::local(tree.path("a.sock")).value();
  const Fd first = listen_at(address);
  const auto file = socket_file(address);
  ASSERT_TRUE(file);
  ASSERT_EQ(::unlink(address.path().data()), 0);
  const Fd second = listen_at(address);
  EXPECT_NE(socket_file(address), file);
  remove_local_path(address, *file);
  EXPECT_TRUE(std::filesystem::exists(address.path()));
  EXPECT_TRUE(connect_to(address));
}

TEST(ShutDown, SendingEndsWhileReceivingContinues) {
  const Connection both = connected();
  ASSERT_TRUE(shut_down_sending(both.client.get()));
  ASSERT_TRUE(ready(both.server.get(), POLLIN));
  char byte = 0;
  EXPECT_EQ(::recv(both.server.get(), &byte, 1, 0), 0);
  ASSERT_EQ(::send(both.server.get(), "x", 1, MSG_NOSIGNAL), 1);
  ASSERT_TRUE(ready(both.client.get(), POLLIN));
  EXPECT_EQ(::recv(both.client.get(), &byte, 1, 0), 1);
  ASSERT_TRUE(shut_down(both.server.get()));
  EXPECT_EQ(::send(both.server.get(), "x", 1, MSG_NOSIGNAL), -1);
  EXPECT_EQ(shut_down(-1).error(), system_error(EBADF));
  EXPECT_EQ(shut_down_sending(-1).error(), system_error(EBADF));
}

TEST(SocketPair, IsConnected) {
  const SocketPair pair = open_socket_pair().value();
  ASSERT_EQ(::send(pair.first.get(), "x", 1, MSG_NOSIGNAL), 1);
  char byte = 0;
  EXPECT_EQ(::recv(pair.second.get(), &byte, 1, 0), 1);
  EXPECT_EQ(::recv(pair.second.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(SocketPair, IsNonBlockingAndCloseOnExec) {
  const SocketPair pair = open_socket_pair().value();
  for (const int each : {pair.first.get(), pair.second.get()}) {
    EXPECT_NE(::fcntl(each, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(each, F_GETFL) & O_NONBLOCK, 0);
  }
}

TEST(UnackedBytes, CountsBytesThatThePeersKernelHasNotAcknowledged) {
  const Connection both = connected();
  EXPECT_EQ(unacked_bytes(both.client.get()).value(), 0u);
  const std::string block(64 * 1024, 'x');
  while (::send(both.client.get(), block.data(), block.size(), MSG_NOSIGNAL) > 0) {
  }
  ASSERT_EQ(errno, EAGAIN);
  const std::size_t full = unacked_bytes(both.client.get()).value();
  EXPECT_GT(full, 0u);
  std::string taken(full, ' ');
  while (::recv(both.server.get(), taken.data(), taken.size(), 0) > 0) {
  }
  EXPECT_LT(unacked_bytes(both.client.get()).value(), full);
  EXPECT_EQ(unacked_bytes(-1).error(), system_error(EBADF));
}

TEST(Options, OptionsReachTheKernel) {
  const Connection both = connected();
  const int socket = both.client.get();
  ASSERT_TRUE(set_no_delay(socket, true));
  EXPECT_EQ(option(socket, IPPROTO_TCP, TCP_NODELAY), 1);
  ASSERT_TRUE(set_no_delay(socket, false));
  EXPECT_EQ(option(socket, IPPROTO_TCP, TCP_NODELAY), 0);
}

TEST(Options, SetsHowLongCloseMayLinger) {
  const Connection both = connected();
  const auto set = [&](std::optional<std::chrono::seconds> longest) {
    EXPECT_TRUE(set_linger(both.client.get(), longest));
    linger now{-1, -1};
    socklen_t size = sizeof now;
    EXPECT_EQ(::getsockopt(both.client.get(), SOL_SOCKET, SO_LINGER, &now, &size), 0);
    return std::pair(now.l_onoff, now.l_linger);
  };
  EXPECT_EQ(set(std::chrono::seconds(5)), std::pair(1, 5));
  EXPECT_EQ(set(std::chrono::seconds(1)), std::pair(1, 1));
  EXPECT_EQ(set(std::chrono::seconds(0)), std::pair(1, 0));
  EXPECT_EQ(set(std::nullopt).first, 0);
}

TEST(Options, ALingerOfZeroResets) {
  Connection both = connected();
  ASSERT_TRUE(set_linger(both.client.get(), std::chrono::seconds(0)));
  both.client.close();
  ASSERT_TRUE(ready(both.server.get(), POLLIN));
  char byte = 0;
  EXPECT_EQ(::recv(both.server.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST(Options, FailuresAreValues) {
  const Fd event = open_event().value();
  EXPECT_EQ(set_no_delay(event.get(), true).error(), system_error(ENOTSOCK));
  EXPECT_EQ(refuse_new_handshakes(event.get()).error(), system_error(ENOTSOCK));
  EXPECT_EQ(clear_inherited_refusal(event.get()).error(), system_error(ENOTSOCK));
}

/// Returns the number of received segments that the kernel has dropped for this socket.
std::uint32_t drops(const Fd& socket) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
  socklen_t size = sizeof info;
  EXPECT_EQ(::getsockopt(socket.get(), SOL_SOCKET, SO_MEMINFO, info.data(), &size), 0);
  return info[SK_MEMINFO_DROPS];
}

/// Returns true if the SYN of `client` reached `listener` and was dropped. The kernel counts drops.
bool syn_was_dropped(const Fd& listener, const Fd& client) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (drops(listener) == 0) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ready(client.get(), POLLOUT, 1);
  }
  return !ready(client.get(), POLLOUT, 0) && !peer_address(client.get());
}

/// Makes a socket drop all received packets, or accept them again.
void drop_received(const Fd& socket, const Address& address, bool dropping) {
  const int hops = dropping ? 255 : 0;
  const bool six = address.family() == AddressFamily::ipv6;
  ASSERT_EQ(::setsockopt(socket.get(), six ? IPPROTO_IPV6 : IPPROTO_IP,
                         six ? IPV6_MINHOPCOUNT : IP_MINTTL, &hops, sizeof hops),
            0);
}

struct DrainCase {
  const char* name;
  const char* listen;
  const char* connect;
  RefuseMethod how;

  friend void PrintTo(const DrainCase& self, std::ostream* out) { *out << self.name; }
};

/// A listener and its address. The test is skipped if this machine has no such address.
class Drain : public testing::TestWithParam<DrainCase> {
 protected:
  void SetUp() override {
    auto opened = open_listener(Address::parse(GetParam().listen).value(), {.reuse_port = true});
    if (!opened) GTEST_SKIP() << "no IPv6 here: " << opened.error().message();
    listener_ = std::move(*opened);
    address_ =
        Address::parse(GetParam().connect)->with_port(local_address(listener_.get())->port());
  }

  /// Makes the listener refuse handshakes. Returns false if this process may not use the method.
  bool refuse() {
    const auto refused = refuse_new_handshakes(listener_.get(), GetParam().how);
    if (refused) return true;
    EXPECT_EQ(refused.error(), system_error(EPERM));
    EXPECT_EQ(GetParam().how, RefuseMethod::filter);
    return false;
  }

  Fd listener_;
  Address address_;
};

TEST_P(Drain, NewConnectionsWaitAndQueuedOnesAreAccepted) {
  std::vector<Fd> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(connect_to(address_));

  if (!refuse()) GTEST_SKIP() << "a filter is not permitted";
  const Fd newcomer = begin_connect(address_);
  EXPECT_TRUE(syn_was_dropped(listener_, newcomer)) << "established or refused";

  // The queue is intact, and its connections carry data both ways after the listener has gone.
  std::vector<Fd> servers;
  for (const Fd& client : clients) {
    servers.push_back(accept_from(listener_));
    ASSERT_TRUE(clear_inherited_refusal(servers.back().get()));
    ASSERT_EQ(::send(client.get(), "a", 1, MSG_NOSIGNAL), 1);
  }
  EXPECT_EQ(accept_one(listener_.get()).error(), system_error(EAGAIN));
  listener_.close();
  char byte = 0;
  for (const Fd& server : servers) {
    ASSERT_TRUE(ready(server.get(), POLLIN));
    ASSERT_EQ(::recv(server.get(), &byte, 1, 0), 1);
    ASSERT_EQ(::send(server.get(), "b", 1, MSG_NOSIGNAL), 1);
  }
  servers.clear();
  for (const Fd& client : clients) {
    ASSERT_TRUE(ready(client.get(), POLLIN));
    ASSERT_EQ(::recv(client.get(), &byte, 1, 0), 1);
    ASSERT_TRUE(ready(client.get(), POLLIN));
    EXPECT_EQ(::recv(client.get(), &byte, 1, 0), 0) << "an orderly end and not a reset";
  }
}

TEST_P(Drain, AnAcceptedConnectionLosesTheInheritedLimit) {
  const Fd client = connect_to(address_);
  if (!refuse()) GTEST_SKIP() << "a filter is not permitted";
  const Fd server = accept_from(listener_);
  ASSERT_TRUE(clear_inherited_refusal(server.get()));
  EXPECT_EQ(option(server.get(), IPPROTO_IP, IP_MINTTL), 0);
  if (address_.family() == AddressFamily::ipv6) {
    EXPECT_EQ(option(server.get(), IPPROTO_IPV6, IPV6_MINHOPCOUNT), 0);
  }
}

TEST_P(Drain, HandshakesInProgressFinish) {
  // The server has answered this client's SYN, but the client drops the answer.
  const Fd client = open_stream(address_.family()).value();
  drop_received(client, address_, true);
  ASSERT_EQ(start_connect(client.get(), address_).value(), ConnectState::in_progress);
  while (drops(client) == 0) ASSERT_FALSE(ready(client.get(), POLLOUT, 1));

  if (!refuse()) GTEST_SKIP() << "a filter is not permitted";
  drop_received(client, address_, false);
  const Fd server = accept_from(listener_);  // after the kernel's one-second retransmission
  ASSERT_TRUE(server);
  // Data from before clear_inherited_refusal() may be dropped at first, but it is not lost.
  ASSERT_TRUE(ready(client.get(), POLLOUT));
  ASSERT_EQ(::send(client.get(), "x", 1, MSG_NOSIGNAL), 1);
  ASSERT_TRUE(clear_inherited_refusal(server.get()));
  ASSERT_TRUE(ready(server.get(), POLLIN));
}

TEST_P(Drain, ClosingWithoutDrainingResetsTheQueue) {
  const Fd client = connect_to(address_);
  listener_.close();
  ASSERT_TRUE(ready(client.get(), POLLIN));
  char byte = 0;
  EXPECT_EQ(::recv(client.get(), &byte, 1, 0), -1) << "draining prevents this reset";
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_P(Drain, ASuccessorOnTheSamePortIsNotAffected) {
  const Address bound = local_address(listener_.get()).value();
  if (!refuse()) GTEST_SKIP() << "a filter is not permitted";
  listener_.close();
  const Fd successor = listen_at(bound, {.reuse_port = true});
  const Fd client = connect_to(address_);
  EXPECT_TRUE(accept_from(successor));
}

INSTANTIATE_TEST_SUITE_P(
    Loopback, Drain,
    testing::Values(DrainCase{"IPv4Best", "127.0.0.1:0", "127.0.0.1:0", RefuseMethod::best},
                    DrainCase{"IPv6Best", "[::1]:0", "[::1]:0", RefuseMethod::best},
                    DrainCase{"IPv4Filter", "127.0.0.1:0", "127.0.0.1:0", RefuseMethod::filter},
                    DrainCase{"IPv6Filter", "[::1]:0", "[::1]:0", RefuseMethod::filter},
                    DrainCase{"IPv4Distance", "127.0.0.1:0", "127.0.0.1:0", RefuseMethod::ttl},
                    DrainCase{"IPv6Distance", "[::1]:0", "[::1]:0", RefuseMethod::ttl},
                    DrainCase{"IPv4OnIPv6Filter", "[::]:0", "127.0.0.1:0", RefuseMethod::filter},
                    DrainCase{"IPv4OnIPv6Distance", "[::]:0", "127.0.0.1:0", RefuseMethod::ttl}),
    [](const auto& each) { return each.param.name; });

/// Returns true if this process may attach a filter to a listener.
bool may_filter() {
  const Fd listener = listen_at(Address::loopback(0));
  return refuse_new_handshakes(listener.get(), RefuseMethod::filter).has_value();
}

TEST(Refuse, TheBestMethodIsTheFilterIfItIsPermitted) {
  if (!may_filter()) GTEST_SKIP() << "a filter is not permitted";
  const Fd listener = listen_at(Address::loopback(0));
  ASSERT_TRUE(refuse_new_handshakes(listener.get()));
  EXPECT_EQ(option(listener.get(), IPPROTO_IP, IP_MINTTL), 0);
}

/// Ends this (child) process with 0 if the TTL replaces a filter that is not permitted.
[[noreturn]] void refuse_without_filter() {
  if (!deny({SYS_setsockopt, 2, SO_ATTACH_FILTER}, EPERM)) ::_exit(2);
  const Fd listener = listen_at(Address::loopback(0));
  const auto filtered = refuse_new_handshakes(listener.get(), RefuseMethod::filter);
  if (filtered || filtered.error() != system_error(EPERM)) ::_exit(3);
  if (option(listener.get(), IPPROTO_IP, IP_MINTTL) != 0) ::_exit(4);
  if (!refuse_new_handshakes(listener.get())) ::_exit(5);
  ::_exit(option(listener.get(), IPPROTO_IP, IP_MINTTL) == 255 ? 0 : 6);
}

TEST(RefuseDeathTest, TheBestMethodIsTheTtlIfAFilterIsNotPermitted) {
  EXPECT_EXIT(refuse_without_filter(), testing::ExitedWithCode(0), "");
}

TEST(CheckListening, DistinguishesListeners) {
  const Fd listener = listen_at(Address::loopback(0));
  EXPECT_TRUE(check_listening(listener.get()));
  EXPECT_EQ(check_listening(open_stream(AddressFamily::ipv4)->get()).error(), system_error(EINVAL));
  EXPECT_EQ(check_listening(open_event()->get()).error(), system_error(ENOTSOCK));
  const Fd datagrams(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(check_listening(datagrams.get()).error(), system_error(EPROTOTYPE));
  EXPECT_EQ(check_listening(-1).error(), system_error(EBADF));
}

TEST(DrainUnix, NewConnectionsAreRefusedAndQueuedOnesAreAccepted) {
  const TemporaryTree tree;
  const Address address = Address::local(tree.path("a.sock")).value();
  const Fd listener = listen_at(address);
  const Fd early = connect_to(address);
  ASSERT_TRUE(refuse_new_handshakes(listener.get()));
  const Fd late = open_stream(AddressFamily::local).value();
  EXPECT_EQ(start_connect(late.get(), address).error(), system_error(ECONNREFUSED));
  const Fd server = accept_from(listener);
  ASSERT_EQ(::send(server.get(), "x", 1, MSG_NOSIGNAL), 1);
  char byte = 0;
  EXPECT_EQ(::recv(early.get(), &byte, 1, 0), 1);
  EXPECT_TRUE(clear_inherited_refusal(server.get()));
}

}  // namespace
}  // namespace weir::os::socket_test
