#include "weir/net/detail/socket_block.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "weir/testing/memory/memory_platform.hpp"

namespace weir::socket_block_test {
namespace {

/// An owner of a socket, whose constructor throws if it is told so.
struct SocketOwner {
  SocketOwner(Loop& its_loop, loop::Socket& its_socket, bool throws)
      : loop(its_loop), socket(its_socket) {
    if (throws) throw std::runtime_error("no memory");
  }
  ~SocketOwner() { loop.backend().close(socket); }
  Loop& loop;
  loop::Socket& socket;
};

class SocketBlockTest : public testing::Test {
 protected:
  loop::Socket& open() {
    auto descriptor = platform_.open_datagrams({.local = Endpoint::loopback(0)});
    auto& backend = loop_->backend();
    return *backend.adopt(std::move(descriptor.value()), {.role = loop::SocketRole::datagrams})
                .value();
  }

  MemoryPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
};

TEST_F(SocketBlockTest, OwnerClosesTheSocket) {
  {
    const auto owner = make_socket_block<SocketOwner>(*loop_, open(), false);
    EXPECT_EQ(platform_.open_descriptors(), 1U);
  }
  platform_.run_until_idle(*loop_);
  EXPECT_EQ(platform_.open_descriptors(), 0U);
}

TEST_F(SocketBlockTest, FailedConstructionClosesTheSocketAndThrows) {
  loop::Socket& socket = open();
  EXPECT_EQ(platform_.open_descriptors(), 1U);
  EXPECT_THROW(static_cast<void>(make_socket_block<SocketOwner>(*loop_, socket, true)),
               std::runtime_error);
  platform_.run_until_idle(*loop_);
  EXPECT_EQ(platform_.open_descriptors(), 0U);
}

}  // namespace
}  // namespace weir::socket_block_test
