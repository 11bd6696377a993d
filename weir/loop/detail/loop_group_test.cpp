#include "weir/loop/loop_group.hpp"

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

TEST(LoopGroup, OnePortForAllWhereTheHostChooses) {
  MemoryHost memory;
  OsHost os;
  for (Host* const host : {static_cast<Host*>(&memory), static_cast<Host*>(&os)}) {
    LoopGroup group;
    std::vector<os::Address> told;
    group.on_listening = [&](const os::Address& bound) { told.push_back(bound); };
    const os::Address any_port = os::Address::loopback(0);
    auto first = group.listen(*host, any_port, {});
    auto second = group.listen(*host, any_port, {});
    ASSERT_TRUE(first && second);
    const os::Address bound = host->local_address(first->descriptor.value()).value();
    EXPECT_NE(bound.port(), 0);
    EXPECT_EQ(host->local_address(second->descriptor.value()).value(), bound);
    EXPECT_EQ(told, std::vector<os::Address>{bound});
    EXPECT_EQ(group.failure(), "");
    EXPECT_TRUE(group.listen(*host, bound, {})) << "asked for by its number";

    LoopGroup another;
    auto third = another.listen(*host, any_port, {});
    ASSERT_TRUE(third);
    EXPECT_NE(host->local_address(third->descriptor.value()).value(), bound);
  }
}

TEST(LoopGroup, SharesItsPortWithNoOtherGroup) {
  MemoryHost memory;
  OsHost os;
  for (Host* const host : {static_cast<Host*>(&memory), static_cast<Host*>(&os)}) {
    LoopGroup ours, theirs;
    auto first = ours.listen(*host, os::Address::loopback(0), {});
    ASSERT_TRUE(first);
    const os::Address bound = host->local_address(first->descriptor.value()).value();
    EXPECT_EQ(theirs.listen(*host, bound, {}).error(), std::errc::address_in_use);
    EXPECT_TRUE(ours.listen(*host, os::Address::loopback(0), {}));
  }
}

TEST(LoopGroup, LoopsShareAUnixSocketUntilTheLastClosesIt) {
  const os::TemporaryTree tree;
  const os::Address path = os::Address::local(tree.path("a.sock")).value();
  OsHost host;
  LoopGroup ours, theirs;
  auto first = ours.listen(host, path, {});
  auto second = ours.listen(host, path, {});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(host.local_address(second->descriptor.value()).value(), path);
  EXPECT_EQ(theirs.listen(host, path, {}).error(), std::errc::address_in_use);

  *first = {};
  EXPECT_TRUE(std::filesystem::exists(path.path()));
  auto third = ours.listen(host, path, {});
  ASSERT_TRUE(third);
  *second = {};
  *third = {};
  EXPECT_FALSE(std::filesystem::exists(path.path())) << "the last takes the file with it";
  EXPECT_TRUE(ours.listen(host, path, {})) << "and listening begins anew";
}

TEST(LoopGroup, LeavesAUnixPathThatIsAnothersByNow) {
  const os::TemporaryTree tree;
  const os::Address path = os::Address::local(tree.path("a.sock")).value();
  OsHost host, another;
  LoopGroup group;
  auto listener = group.listen(host, path, {});
  ASSERT_TRUE(listener);
  ASSERT_TRUE(host.refuse_new_connections(listener->descriptor.value()));
  const auto successor = another.listen(path, {});
  ASSERT_TRUE(successor) << "takes over what refuses connections";
  *listener = {};
  EXPECT_TRUE(std::filesystem::exists(path.path()));
}

TEST(LoopGroup, SharesAUnixNameInMemory) {
  MemoryHost host;
  const os::Address name = os::Address::local("name").value();
  LoopGroup ours, theirs;
  auto first = ours.listen(host, name, {});
  auto second = ours.listen(host, name, {});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(theirs.listen(host, name, {}).error(), std::errc::address_in_use);
  *first = {};
  *second = {};
  EXPECT_EQ(host.open_descriptors(), 0U);
  EXPECT_TRUE(theirs.listen(host, name, {}));
}

// Before this process goes on for sure, nobody would serve who comes to a socket of its own.
TEST(LoopGroup, MoreLoopsThanSocketsOfAnOlderProcessShareThese) {
  MemoryHost memory;
  OsHost os;
  for (Host* const host : {static_cast<Host*>(&memory), static_cast<Host*>(&os)}) {
    const ListenOptions joining;
    std::vector<std::shared_ptr<SharedListener>> older;
    os::Address bound = os::Address::loopback(0);
    while (older.size() < 2) {
      auto socket = host->listen(bound, joining);
      ASSERT_TRUE(socket);
      bound = host->local_address(socket->value()).value();
      older.push_back(std::make_shared<SharedListener>(*host, std::move(*socket), bound));
      older.back()->set_awaited();
    }
    LoopGroup group;
    group.inherit(older);
    std::vector<std::unique_ptr<Loop>> loops;
    std::vector<Loop*> all;
    for (unsigned core = 0; core < 6; ++core) {
      loops.push_back(Loop::make(*host, {.core = core, .group = &group}).value());
      all.push_back(loops.back().get());
    }
    group.set_loops(std::move(all));
    std::vector<Result<LoopGroup::Listener>> given;
    for (unsigned core = 0; core < 6; ++core) given.push_back(group.listen(*host, bound, joining));
    for (const auto& socket : older) {
      const auto has_it = [&](const auto& each) { return each && each->shared == socket; };
      EXPECT_EQ(std::ranges::count_if(given, has_it), 3);
    }
  }
}

// Where the first loop has drained before the second one listens.
TEST(LoopGroup, WhatWasInheritedAndClosedHereIsClosedThoughWhoGaveItGoesOn) {
  MemoryHost memory;
  OsHost os;
  for (Host* const host : {static_cast<Host*>(&memory), static_cast<Host*>(&os)}) {
    const auto managers = host->listen(os::Address::loopback(0), {.reuse_port = false});
    ASSERT_TRUE(managers);
    const os::Address bound = host->local_address(managers->value()).value();
    LoopGroup group;
    {
      auto own = host->share(managers->value());
      ASSERT_TRUE(own);
      group.inherit({std::make_shared<SharedListener>(*host, std::move(*own), bound)});
    }
    EXPECT_TRUE(group.listen(*host, bound, {}));
    EXPECT_EQ(group.listen(*host, bound, {}).error(), Errc::closed);
  }
}

TEST(LoopGroup, SharesItsDatagramPortsWithAnOlderProcessOnly) {
  MemoryHost memory;
  OsHost os;
  for (Host* const host : {static_cast<Host*>(&memory), static_cast<Host*>(&os)}) {
    LoopGroup older, stranger, newer;
    const os::Address any_port = os::Address::loopback(0);
    const auto first = older.open_datagrams(*host, {.local = any_port, .reuse_port = true});
    ASSERT_TRUE(first);
    const os::Address bound = host->local_address(first->value()).value();
    const DatagramOptions same{.local = bound, .reuse_port = true};
    EXPECT_EQ(stranger.open_datagrams(*host, same).error(), std::errc::address_in_use);
    auto listener = host->listen(any_port, {}).value();
    const os::Address listening = host->local_address(listener.value()).value();
    auto given = std::make_shared<SharedListener>(*host, std::move(listener), listening);
    given->set_awaited();
    newer.inherit({given});
    const auto one = newer.open_datagrams(*host, same);
    const auto another = newer.open_datagrams(*host, same);
    EXPECT_TRUE(one && another);
  }
}

TEST(LoopGroup, OrWithTheOtherProcessesOfItsService) {
  MemoryHost memory;
  OsHost os;
  for (Host* const host : {static_cast<Host*>(&memory), static_cast<Host*>(&os)}) {
    LoopGroup one, other, stranger;
    one.share_ports();
    other.share_ports();
    const os::Address any_port = os::Address::loopback(0);
    const auto first = one.open_datagrams(*host, {.local = any_port, .reuse_port = true});
    ASSERT_TRUE(first);
    const os::Address bound = host->local_address(first->value()).value();
    const DatagramOptions same{.local = bound, .reuse_port = true};
    EXPECT_TRUE(other.open_datagrams(*host, same));
    EXPECT_EQ(stranger.open_datagrams(*host, same).error(), std::errc::address_in_use);
    const auto elsewhere = other.open_datagrams(*host, {.local = any_port, .reuse_port = true});
    ASSERT_TRUE(elsewhere);
    EXPECT_NE(host->local_address(elsewhere->value()).value(), bound);
  }
}

TEST(LoopGroup, SaysWhatFailed) {
  MemoryHost host;
  LoopGroup one, two;
  auto taken = one.listen(host, os::Address::loopback(80), {.reuse_port = false});
  ASSERT_TRUE(taken);
  const auto refused = two.listen(host, os::Address::loopback(80), {});
  EXPECT_EQ(refused.error(), std::errc::address_in_use);
  EXPECT_EQ(two.failure(), "") << "who has asked may ask again";
  two.note_failure("listen on", os::Address::loopback(80), refused.error());
  EXPECT_EQ(two.failure(), "cannot listen on 127.0.0.1:80: Address already in use");
  EXPECT_EQ(one.failure(), "");
  one.note_failure("listen on", os::Address::loopback(80), make_error_code(Errc::closed));
  EXPECT_EQ(one.failure(),
            "cannot listen on 127.0.0.1:80: it was closed here, and who gave it to this process "
            "has it still");
}

}  // namespace
}  // namespace weir
