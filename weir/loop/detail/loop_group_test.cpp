#include "weir/loop/detail/loop_group.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/test/temporary_tree.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {
namespace {

TEST(LoopGroup, LoopsGetThePortThatThePlatformChose) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    LoopGroup group;
    std::vector<os::Address> reported;
    group.on_listening = [&](const os::Address& bound) { reported.push_back(bound); };
    const os::Address any_port = os::Address::loopback(0);
    auto first = group.listen(*platform, any_port, {});
    auto second = group.listen(*platform, any_port, {});
    ASSERT_TRUE(first && second);
    const os::Address bound = platform->local_address(first->descriptor.value()).value();
    EXPECT_NE(bound.port(), 0);
    EXPECT_EQ(platform->local_address(second->descriptor.value()).value(), bound);
    EXPECT_EQ(reported, std::vector<os::Address>{bound});
    EXPECT_EQ(group.failure(), "");
    EXPECT_TRUE(group.listen(*platform, bound, {})) << "requested by its number";

    LoopGroup another;
    auto third = another.listen(*platform, any_port, {});
    ASSERT_TRUE(third);
    EXPECT_NE(platform->local_address(third->descriptor.value()).value(), bound);
  }
}

TEST(LoopGroup, SharesItsPortWithNoOtherGroup) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    LoopGroup ours, theirs;
    auto first = ours.listen(*platform, os::Address::loopback(0), {});
    ASSERT_TRUE(first);
    const os::Address bound = platform->local_address(first->descriptor.value()).value();
    EXPECT_EQ(theirs.listen(*platform, bound, {}).error(), std::errc::address_in_use);
    EXPECT_TRUE(ours.listen(*platform, os::Address::loopback(0), {}));
  }
}

TEST(LoopGroup, LoopsShareAUnixSocketUntilTheLastClosesIt) {
  const os::TemporaryTree tree;
  const os::Address path = os::Address::local(tree.path("a.sock")).value();
  OsPlatform platform;
  LoopGroup ours, theirs;
  auto first = ours.listen(platform, path, {});
  auto second = ours.listen(platform, path, {});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(platform.local_address(second->descriptor.value()).value(), path);
  EXPECT_EQ(theirs.listen(platform, path, {}).error(), std::errc::address_in_use);

  *first = {};
  EXPECT_TRUE(std::filesystem::exists(path.path()));
  auto third = ours.listen(platform, path, {});
  ASSERT_TRUE(third);
  *second = {};
  *third = {};
  EXPECT_FALSE(std::filesystem::exists(path.path())) << "the last loop removes the file";
  EXPECT_TRUE(ours.listen(platform, path, {})) << "listening on the path works again";
}

TEST(LoopGroup, KeepsAUnixPathOfAnotherSocket) {
  const os::TemporaryTree tree;
  const os::Address path = os::Address::local(tree.path("a.sock")).value();
  OsPlatform platform, another;
  LoopGroup group;
  auto listener = group.listen(platform, path, {});
  ASSERT_TRUE(listener);
  ASSERT_TRUE(platform.refuse_new_connections(listener->descriptor.value()));
  const auto successor = another.listen(path, {});
  ASSERT_TRUE(successor) << "takes over a path that refuses connections";
  *listener = {};
  EXPECT_TRUE(std::filesystem::exists(path.path()));
}

TEST(LoopGroup, SharesAUnixNameInMemory) {
  MemoryPlatform platform;
  const os::Address name = os::Address::local("name").value();
  LoopGroup ours, theirs;
  auto first = ours.listen(platform, name, {});
  auto second = ours.listen(platform, name, {});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(theirs.listen(platform, name, {}).error(), std::errc::address_in_use);
  *first = {};
  *second = {};
  EXPECT_EQ(platform.open_descriptors(), 0U);
  EXPECT_TRUE(theirs.listen(platform, name, {}));
}

// A socket of this process alone would have no server if the takeover failed.
TEST(LoopGroup, LoopsShareTheFewerSocketsOfAnOlderProcess) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    const ListenOptions joining;
    std::vector<std::shared_ptr<SharedListener>> older;
    os::Address bound = os::Address::loopback(0);
    while (older.size() < 2) {
      auto socket = platform->listen(bound, joining);
      ASSERT_TRUE(socket);
      bound = platform->local_address(socket->value()).value();
      older.push_back(std::make_shared<SharedListener>(*platform, std::move(*socket), bound));
      older.back()->set_peer_waits_for_accept();
    }
    LoopGroup group;
    group.inherit(older);
    std::vector<std::unique_ptr<Loop>> loops;
    std::vector<Loop*> all;
    for (unsigned core = 0; core < 6; ++core) {
      loops.push_back(Loop::make(*platform, {.core = core, .group = &group}).value());
      all.push_back(loops.back().get());
    }
    group.set_loops(std::move(all));
    std::vector<Result<LoopGroup::Listener>> given;
    for (unsigned core = 0; core < 6; ++core)
      given.push_back(group.listen(*platform, bound, joining));
    for (const auto& socket : older) {
      const auto has_it = [&](const auto& each) { return each && each->shared == socket; };
      EXPECT_EQ(std::ranges::count_if(given, has_it), 3);
    }
  }
}

// The first loop has drained before the second one listens.
TEST(LoopGroup, AnInheritedSocketThatWasClosedHereStaysClosed) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    const auto managers = platform->listen(os::Address::loopback(0), {.reuse_port = false});
    ASSERT_TRUE(managers);
    const os::Address bound = platform->local_address(managers->value()).value();
    LoopGroup group;
    {
      auto own = platform->share(managers->value());
      ASSERT_TRUE(own);
      group.inherit({std::make_shared<SharedListener>(*platform, std::move(*own), bound)});
    }
    EXPECT_TRUE(group.listen(*platform, bound, {}));
    EXPECT_EQ(group.listen(*platform, bound, {}).error(), Errc::closed);
  }
}

TEST(LoopGroup, SharesDatagramPortsOnlyWithAnOlderProcess) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    LoopGroup older, stranger, newer;
    const os::Address any_port = os::Address::loopback(0);
    const auto first = older.open_datagrams(*platform, {.local = any_port, .reuse_port = true});
    ASSERT_TRUE(first);
    const os::Address bound = platform->local_address(first->value()).value();
    const DatagramOptions same{.local = bound, .reuse_port = true};
    EXPECT_EQ(stranger.open_datagrams(*platform, same).error(), std::errc::address_in_use);
    auto listener = platform->listen(any_port, {}).value();
    const os::Address listening = platform->local_address(listener.value()).value();
    auto given = std::make_shared<SharedListener>(*platform, std::move(listener), listening);
    given->set_peer_waits_for_accept();
    newer.inherit({given});
    const auto one = newer.open_datagrams(*platform, same);
    const auto another = newer.open_datagrams(*platform, same);
    EXPECT_TRUE(one && another);
  }
}

TEST(LoopGroup, SharesDatagramPortsWithProcessesOfItsService) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    LoopGroup one, other, stranger;
    one.share_ports();
    other.share_ports();
    const os::Address any_port = os::Address::loopback(0);
    const auto first = one.open_datagrams(*platform, {.local = any_port, .reuse_port = true});
    ASSERT_TRUE(first);
    const os::Address bound = platform->local_address(first->value()).value();
    const DatagramOptions same{.local = bound, .reuse_port = true};
    EXPECT_TRUE(other.open_datagrams(*platform, same));
    EXPECT_EQ(stranger.open_datagrams(*platform, same).error(), std::errc::address_in_use);
    const auto elsewhere = other.open_datagrams(*platform, {.local = any_port, .reuse_port = true});
    ASSERT_TRUE(elsewhere);
    EXPECT_NE(platform->local_address(elsewhere->value()).value(), bound);
  }
}

TEST(LoopGroup, ReportsTheLastFailure) {
  MemoryPlatform platform;
  LoopGroup one, two;
  auto taken = one.listen(platform, os::Address::loopback(80), {.reuse_port = false});
  ASSERT_TRUE(taken);
  const auto refused = two.listen(platform, os::Address::loopback(80), {});
  EXPECT_EQ(refused.error(), std::errc::address_in_use);
  EXPECT_EQ(two.failure(), "") << "the caller may retry";
  two.record_failure("listen on", os::Address::loopback(80), refused.error());
  EXPECT_EQ(two.failure(), "cannot listen on 127.0.0.1:80: Address already in use");
  EXPECT_EQ(one.failure(), "");
  one.record_failure("listen on", os::Address::loopback(80), make_error_code(Errc::closed));
  EXPECT_EQ(one.failure(),
            "cannot listen on 127.0.0.1:80: this process closed the socket, and the process that "
            "provided it still has it open");
}

}  // namespace
}  // namespace weir
