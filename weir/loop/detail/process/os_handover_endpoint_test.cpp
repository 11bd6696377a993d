// Tests of the endpoint at which the processes of a hot restart meet.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/loop/detail/process/os_handover.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/io/seqpacket_socket.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::loop::os_handover_endpoint_test {
namespace {

using Kind = HandoverMessage::Kind;
using ReceiveResult = HandoverConnection::ReceiveResult;

/// A platform whose clock adds a shift to the real time.
class ShiftedPlatform final : public OsPlatform {
 public:
  Instant now() noexcept override { return after(OsPlatform::now(), shift); }
  void write_line(std::string_view line) noexcept override { logged += line; }
  Duration shift{};
  std::string logged;
};

/// Returns true if the other end has closed the connection.
bool is_closed(const os::Fd& connection) {
  std::array<std::byte, 1> room{};
  const auto packet = os::receive_message(connection.get(), room);
  return packet ? packet->size == 0 : packet.error() != system_error(EAGAIN);
}

class OsHandoverEndpointTest : public testing::Test {
 protected:
  os::TemporaryTree tree_;
  const std::string path_ = tree_.path("meet");
  const os::Address endpoint_ = os::Address::local(path_).value();
  ShiftedPlatform platform_;
};

TEST_F(OsHandoverEndpointTest, WaitsForItsNotification) {
  OsHandoverEndpoint endpoint(platform_, endpoint_, os::open_event().value());
  EXPECT_EQ(endpoint.name(), "unix:" + path_);
  EXPECT_FALSE(endpoint.wait(platform_.now()));
  endpoint.notify();
  EXPECT_TRUE(endpoint.wait(never));
  EXPECT_FALSE(endpoint.wait(platform_.now())) << "it is consumed";
  ASSERT_EQ(endpoint.connect_or_listen().value(), nullptr);
  EXPECT_TRUE(endpoint.socket());
  endpoint.notify();
  EXPECT_EQ(endpoint.accept_newer(), nullptr);
  OsHandoverEndpoint newer(platform_, endpoint_, os::open_event().value());
  const auto connected = newer.connect_or_listen();
  ASSERT_TRUE(connected && *connected);
  EXPECT_FALSE(newer.socket());
  EXPECT_TRUE((*connected)->send({.kind = Kind::ready}));
  const auto accepted = endpoint.accept_newer();
  ASSERT_NE(accepted, nullptr);
  EXPECT_EQ(accepted->receive(never), ReceiveResult::message);
  newer.close();
  EXPECT_TRUE(std::filesystem::exists(path_)) << "the older process owns it";
  endpoint.drop_ownership();
  endpoint.close();
  EXPECT_FALSE(endpoint.socket());
  EXPECT_TRUE(std::filesystem::exists(path_)) << "it was left to the newer process";
  newer.take_ownership();
  newer.close();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(OsHandoverEndpointTest, KeepsSixteenSilentConnections) {
  OsHandoverEndpoint endpoint(platform_, endpoint_, os::open_event().value());
  ASSERT_EQ(endpoint.connect_or_listen().value(), nullptr);
  std::vector<os::Fd> silent;
  for (int each = 0; each < 20; ++each) {
    silent.push_back(std::move(os::connect_or_listen(endpoint_).value().connection));
  }
  auto talking = std::move(os::connect_or_listen(endpoint_).value().connection);
  EXPECT_TRUE(os::send_message(talking.get(), encode({.kind = Kind::request})));
  const auto first = endpoint.accept_newer();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->receive(platform_.now()), ReceiveResult::message);
  for (std::size_t each = 0; each < silent.size(); ++each) {
    EXPECT_EQ(is_closed(silent[each]), each < 5) << each;
  }
  EXPECT_TRUE(os::send_message(silent[9].get(), encode({.kind = Kind::ready})));
  EXPECT_TRUE(os::send_message(silent[7].get(), encode({.kind = Kind::request})));
  const auto second = endpoint.accept_newer();
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(second->is_message(second->receive(platform_.now()), Kind::request));
  const auto third = endpoint.accept_newer();
  ASSERT_NE(third, nullptr);
  EXPECT_TRUE(third->is_message(third->receive(platform_.now()), Kind::ready));
  endpoint.close();
  EXPECT_TRUE(is_closed(silent[19]));
}

TEST_F(OsHandoverEndpointTest, ClosesAConnectionThatIsSilentForFiveSeconds) {
  OsHandoverEndpoint endpoint(platform_, endpoint_, os::open_event().value());
  ASSERT_EQ(endpoint.connect_or_listen().value(), nullptr);
  const auto pass = [&](Duration time) {
    platform_.shift += time;
    const auto talking = std::move(os::connect_or_listen(endpoint_).value().connection);
    EXPECT_TRUE(os::send_message(talking.get(), encode({.kind = Kind::request})));
    EXPECT_NE(endpoint.accept_newer(), nullptr);
  };
  const auto silent = std::move(os::connect_or_listen(endpoint_).value().connection);
  pass(Duration(0));
  pass(std::chrono::milliseconds(3000));
  EXPECT_FALSE(is_closed(silent));
  EXPECT_EQ(platform_.logged, "");
  pass(std::chrono::milliseconds(2000));
  EXPECT_TRUE(is_closed(silent));
  EXPECT_EQ(platform_.logged, "weir: hot restart rejected at unix:" + path_ +
                                  ": a process connected and sent nothing");
  // A late message counts if it came before the endpoint looked.
  const auto late = std::move(os::connect_or_listen(endpoint_).value().connection);
  pass(Duration(0));
  EXPECT_TRUE(os::send_message(late.get(), encode({.kind = Kind::ready})));
  platform_.shift += std::chrono::seconds(60);
  const auto heard = endpoint.accept_newer();
  ASSERT_NE(heard, nullptr);
  EXPECT_TRUE(heard->is_message(heard->receive(platform_.now()), Kind::ready));
}

}  // namespace
}  // namespace weir::loop::os_handover_endpoint_test
