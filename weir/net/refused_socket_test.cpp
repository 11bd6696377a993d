// Tests of sockets that the backend refuses to register. The caller gets the error, and nothing
// stays open.

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

namespace weir {
namespace {

/// A platform that opens sockets of the wrong kind if `wrong` is true. The backend refuses them
/// with EBADF.
class WrongSocketPlatform final : public MemoryPlatform {
 public:
  Result<Descriptor> listen(const os::Address& address, const ListenOptions& options) override {
    return wrong ? any_datagrams() : MemoryPlatform::listen(address, options);
  }
  Result<Descriptor> open_stream(const os::Address& peer) override {
    return wrong ? any_datagrams() : MemoryPlatform::open_stream(peer);
  }
  Result<Descriptor> open_datagrams(const DatagramOptions& options) override {
    if (wrong) return MemoryPlatform::open_stream(os::Address::loopback(1));
    return MemoryPlatform::open_datagrams(options);
  }
  Result<Descriptor> share(int listener) override {
    return wrong && ++shared > right_ones ? any_datagrams() : MemoryPlatform::share(listener);
  }
  bool wrong = false;
  int shared = 0;
  int right_ones = 0;  ///< number of calls of share() that succeed

 private:
  Result<Descriptor> any_datagrams() {
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

TEST_F(RefusedSocketTest, ListenFailsIfOneOfSeveralSocketsIsRefused) {
  for (int right_ones = 0; right_ones < 3; ++right_ones) {
    loop_ = Loop::make(platform_, {}).value();
    std::vector<std::shared_ptr<SharedListener>> sockets;
    Endpoint address = Endpoint::loopback(0);
    while (sockets.size() < 3) {
      Descriptor socket = platform_.listen(address, {}).value();
      address = platform_.local_address(socket.value()).value();
      sockets.push_back(std::make_shared<SharedListener>(platform_, std::move(socket), address));
    }
    loop_->group().inherit(std::move(sockets));
    platform_.shared = 0;
    platform_.right_ones = right_ones;
    platform_.wrong = true;
    {
      const auto listener = run(tcp::listen(address));
      ASSERT_FALSE(listener) << right_ones;
      EXPECT_EQ(listener.error(), system_error(EBADF));
    }
    platform_.wrong = false;
    loop_.reset();
    EXPECT_EQ(platform_.open_descriptors(), 0U) << right_ones;
  }
}

}  // namespace
}  // namespace weir
