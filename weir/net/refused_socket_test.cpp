// Tests of sockets that the backend refuses to register or the platform to configure. The caller
// gets the error, and nothing stays open.

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "weir/loop/detail/listen/shared_listener.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/udp.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::refused_socket_test {
namespace {

/// A platform that opens sockets of the wrong kind if `wrong` is true. The backend refuses them
/// with EBADF.
class WrongSocketPlatform final : public MemoryPlatform {
 public:
  Result<loop::Descriptor> listen(const os::Address& address,
                                  const ListenOptions& options) override {
    return wrong ? any_datagrams() : MemoryPlatform::listen(address, options);
  }
  Result<loop::Descriptor> open_stream(const os::Address& peer) override {
    return wrong ? any_datagrams() : MemoryPlatform::open_stream(peer);
  }
  Result<loop::Descriptor> open_datagrams(const loop::DatagramOptions& options) override {
    if (wrong) return MemoryPlatform::open_stream(os::Address::loopback(1));
    return MemoryPlatform::open_datagrams(options);
  }
  Result<loop::Descriptor> share(int listener) override {
    return wrong && ++shared > right_ones ? any_datagrams() : MemoryPlatform::share(listener);
  }
  Result<> configure(int descriptor, const loop::StreamOptions& options) override {
    if (++configured > configured_max) return fail(system_error(ENOBUFS));
    return MemoryPlatform::configure(descriptor, options);
  }
  int configured = 0;
  int configured_max = 1000;  ///< number of calls of configure() that succeed
  bool wrong = false;
  int shared = 0;
  int right_ones = 0;  ///< number of calls of share() that succeed

 private:
  Result<loop::Descriptor> any_datagrams() {
    return MemoryPlatform::open_datagrams({.local = os::Address::loopback(0)});
  }
};

class RefusedSocketTest : public testing::Test {
 protected:
  void TearDown() override {
    loop_.reset();
    EXPECT_EQ(platform_.open_descriptors(), 0U);
  }
  template <class T>
  T run(Task<T> task) {
    return weir::run(*loop_, std::move(task));
  }
  WrongSocketPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
};

TEST_F(RefusedSocketTest, ConnectFails) {
  platform_.wrong = true;
  const auto connected = run(tcp::connect(Endpoint::loopback(1)));
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error(), system_error(EBADF));
  EXPECT_EQ(platform_.open_descriptors(), 0U);
}

TEST_F(RefusedSocketTest, StreamThatCannotBeConfiguredIsNotConnected) {
  const loop::Descriptor listener = platform_.listen(Endpoint::loopback(80), {}).value();
  platform_.configured_max = 0;
  const auto connected = run(tcp::connect(Endpoint::loopback(80)));
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error(), system_error(ENOBUFS));
  EXPECT_EQ(platform_.open_descriptors(), 1U) << "the listener";
}

TEST_F(RefusedSocketTest, UdpSocketsAreNotOpened) {
  platform_.wrong = true;
  const auto bound = run(udp::bind(Endpoint::loopback(0)));
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error(), system_error(EBADF));
  const auto connected = run(udp::connect(Endpoint::loopback(1)));
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error(), system_error(EBADF));
  EXPECT_EQ(platform_.open_descriptors(), 0U);
}

TEST_F(RefusedSocketTest, ListenFails) {
  platform_.wrong = true;
  const auto listener = run(tcp::listen(Endpoint::loopback(0)));
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error(), system_error(EBADF));
}

/// The cause that ends tcp::listen().
enum class Cause { refusal, configuration };

TEST_F(RefusedSocketTest, ListenFailsIfOneOfSeveralSocketsIsRefusedOrCannotBeConfigured) {
  for (int run_number = 0; run_number < 6; ++run_number) {
    const int right_ones = run_number / 2;
    const Cause cause = run_number % 2 == 0 ? Cause::refusal : Cause::configuration;
    loop_ = Loop::make(platform_, {}).value();
    std::vector<std::shared_ptr<loop::SharedListener>> sockets;
    Endpoint address = Endpoint::loopback(0);
    while (sockets.size() < 3) {
      loop::Descriptor socket = platform_.listen(address, {}).value();
      address = platform_.local_address(socket.value()).value();
      sockets.push_back(
          std::make_shared<loop::SharedListener>(platform_, std::move(socket), address));
    }
    loop_->group().listener_registry().inherit(std::move(sockets));
    platform_.shared = platform_.configured = 0;
    platform_.right_ones = right_ones;
    platform_.wrong = cause == Cause::refusal;
    platform_.configured_max = cause == Cause::configuration ? right_ones : 1000;
    {
      const auto listener = run(tcp::listen(address));
      ASSERT_FALSE(listener) << run_number;
      EXPECT_EQ(listener.error(), system_error(cause == Cause::refusal ? EBADF : ENOBUFS));
    }
    platform_.wrong = false;
    loop_.reset();
    EXPECT_EQ(platform_.open_descriptors(), 0U) << right_ones;
  }
}

}  // namespace
}  // namespace weir::refused_socket_test
