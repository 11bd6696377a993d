// The program that echoes datagrams, on every backend.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server.hpp"
#include "weir/os/datagram_socket.hpp"

namespace weir::tests {
namespace {

/// A peer of the server.
class Peer {
 public:
  explicit Peer(std::uint16_t port)
      : socket_(os::open_datagram_socket({.peer = os::Address::loopback(port)}).value()) {}

  void say(std::string_view text) const {
    ASSERT_EQ(::send(socket_.get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }
  /// The next datagram; a text that nobody sends when none comes.
  std::string hear() const {
    pollfd wanted{socket_.get(), POLLIN, 0};
    const int longest = static_cast<int>(std::chrono::milliseconds(patience).count());
    if (::poll(&wanted, 1, longest) != 1) return "(nothing)";
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
    peer.say(text);
    EXPECT_TRUE(peer.hear() == text) << text.size() << " bytes";
  }
  EXPECT_EQ(server.stop(), 0);
}

TEST_P(ExampleUdpEcho, SendsToEachPeerItsOwn) {
  Server server("udp_echo", GetParam());
  std::vector<Peer> peers;
  for (int i = 0; i < 20; ++i) peers.emplace_back(server.port());
  // Some of one size side by side, some not.
  for (std::size_t i = 0; i < peers.size(); ++i) {
    for (int round = 0; round < 5; ++round) {
      peers[i].say(std::to_string(i) + ":" + std::to_string(round));
    }
    peers[i].say(std::to_string(i) + " has more to say");
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    std::set<std::string> expected{std::to_string(i) + " has more to say"};
    for (int round = 0; round < 5; ++round) {
      expected.insert(std::to_string(i) + ":" + std::to_string(round));
    }
    std::set<std::string> heard;
    for (int message = 0; message < 6; ++message) heard.insert(peers[i].hear());
    EXPECT_EQ(heard, expected);
  }
  EXPECT_EQ(server.stop(), 0);
}

INSTANTIATE_TEST_SUITE_P(On, ExampleUdpEcho, testing::ValuesIn(every_backend), name_of);

}  // namespace
}  // namespace weir::tests
