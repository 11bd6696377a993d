// Tests the example that echoes datagrams, on every backend.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server.hpp"
#include "weir/os/detail/io/datagram_socket.hpp"
#include "weir/os/detail/io/text_file.hpp"

namespace weir::tests::udp_example_test {
namespace {

/// A Peer is a client of the server.
class Peer {
 public:
  explicit Peer(std::uint16_t port) : Peer(os::Address::loopback(port)) {}
  explicit Peer(const os::Address& server)
      : socket_(os::open_datagram_socket({.peer = server}).value()) {}

  void send(std::string_view text) const {
    ASSERT_EQ(::send(socket_.get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }
  /// Returns the next datagram, or a text that no peer sends if none comes.
  std::string receive() const {
    pollfd wanted{socket_.get(), POLLIN, 0};
    const int timeout_ms = static_cast<int>(std::chrono::milliseconds(default_timeout).count());
    if (::poll(&wanted, 1, timeout_ms) != 1) return "(nothing)";
    std::array<char, 70'000> room;
    const ssize_t size = ::recv(socket_.get(), room.data(), room.size(), 0);
    return size < 0 ? "(an error)" : std::string(room.data(), static_cast<std::size_t>(size));
  }

 private:
  os::Fd socket_;
};

class ExampleUdpEcho : public EachBackend {};

TEST_P(ExampleUdpEcho, SendsBackWhatItReceives) {
  Server server("udp_echo", GetParam());
  const Peer peer(server.port());
  for (const std::string& text :
       {std::string("hello"), std::string(), std::string("\0\xff", 2), std::string(9000, 'x')}) {
    peer.send(text);
    EXPECT_TRUE(peer.receive() == text) << text.size() << " bytes";
  }
  EXPECT_EQ(server.stop(), 0);
}

TEST_P(ExampleUdpEcho, SendsToEachPeerItsOwnDatagrams) {
  Server server("udp_echo", GetParam());
  std::vector<Peer> peers;
  for (int i = 0; i < 20; ++i) peers.emplace_back(server.port());
  // Some adjacent datagrams have the same size, and some do not.
  for (std::size_t i = 0; i < peers.size(); ++i) {
    for (int round = 0; round < 5; ++round) {
      peers[i].send(std::to_string(i) + ":" + std::to_string(round));
    }
    peers[i].send(std::to_string(i) + " has more to say");
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    std::set<std::string> expected{std::to_string(i) + " has more to say"};
    for (int round = 0; round < 5; ++round) {
      expected.insert(std::to_string(i) + ":" + std::to_string(round));
    }
    std::set<std::string> heard;
    for (int message = 0; message < 6; ++message) heard.insert(peers[i].receive());
    EXPECT_EQ(heard, expected);
  }
  EXPECT_EQ(server.stop(), 0);
}

/// Returns the number of sockets in this network namespace that are bound to `address`.
std::size_t sockets_on(const os::Address& address) {
  const std::string text = os::read_text_file("/proc/net/udp").value();
  const std::vector<unsigned char> bytes(static_cast<const unsigned char*>(address.data()),
                                         static_cast<const unsigned char*>(address.data()) + 8);
  std::array<char, 16> wanted;  // the kernel prints the address as one number
  std::snprintf(wanted.data(), wanted.size(), "%02X%02X%02X%02X:%04X", bytes[7], bytes[6], bytes[5],
                bytes[4], address.port());
  std::size_t count = 0;
  for (auto at = text.find(wanted.data()); at != std::string::npos; ++count) {
    at = text.find(wanted.data(), at + 1);
  }
  return count;
}

TEST_P(ExampleUdpEcho, SeveralProcessesShareItsPort) {
  const os::Address address = free_address();
  const std::string text = address.to_string();
  Process supervisor = Process::example(
      "udp_echo",
      {"--processes", "2", "--cores", "2", "--backend", std::string(GetParam().option), "--address",
       text.substr(0, text.find(':')), "--port", std::to_string(address.port())});
  ASSERT_TRUE(eventually([&] { return sockets_on(address) == 2; })) << supervisor.errors();
  for (int i = 0; i < 20; ++i) {
    const Peer peer(address);
    peer.send("hello");
    EXPECT_EQ(peer.receive(), "hello");
  }
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait_for_exit(), 0) << supervisor.errors();
}

INSTANTIATE_TEST_SUITE_P(On, ExampleUdpEcho, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::udp_example_test
