#include "weir/loop/detail/loop_group.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>
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

TEST(LoopGroup, LoopsShareAUnixSocketWhoseFileIsGone) {
  const os::TemporaryTree tree;
  const os::Address path = os::Address::local(tree.path("a.sock")).value();
  OsPlatform platform;
  LoopGroup group;
  const auto first = group.listen(platform, path, {});
  std::filesystem::remove(path.path());
  const auto second = group.listen(platform, path, {});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->shared, second->shared);
  EXPECT_FALSE(std::filesystem::exists(path.path()));
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

// An inherited socket may have been opened without port sharing.
TEST(LoopGroup, LoopsShareAnInheritedSocketOfAPortThatIsNotShared) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    auto only = platform->listen(os::Address::loopback(0), {.reuse_port = false});
    ASSERT_TRUE(only);
    const os::Address bound = platform->local_address(only->value()).value();
    const auto inherited = std::make_shared<SharedListener>(*platform, std::move(*only), bound);
    LoopGroup group;
    group.inherit({inherited});
    const auto first = group.listen(*platform, bound, {});
    const auto second = group.listen(*platform, bound, {});
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->shared, inherited);
    EXPECT_EQ(second->shared, inherited);
    EXPECT_TRUE(second->descriptor);
    const auto alone = group.listen(*platform, bound, {.reuse_port = false});
    EXPECT_EQ(alone.error(), std::errc::address_in_use);
  }
}

/// A platform in memory that may refuse to listen and to share.
class RefusingPlatform final : public MemoryPlatform {
 public:
  Result<Descriptor> listen(const os::Address& address, const ListenOptions& options) override {
    if (listen_error) return fail(listen_error);
    return MemoryPlatform::listen(address, options);
  }
  Result<Descriptor> share(int listener) override {
    if (share_error) return fail(share_error);
    return MemoryPlatform::share(listener);
  }
  std::error_code listen_error;
  std::error_code share_error;
};

TEST(LoopGroup, SharesASocketOnlyIfItsPortIsTakenAndOtherwiseReportsTheError) {
  const std::error_code taken = system_error(EADDRINUSE);
  const std::error_code denied = system_error(EACCES);
  const std::error_code exhausted = system_error(EMFILE);
  struct {
    bool tracked;  // the group has a socket to share
    std::error_code listen_error;
    std::error_code share_error;
    std::error_code expected;
  } const cases[] = {
      {true, taken, {}, {}},
      {true, denied, {}, denied},
      {true, exhausted, {}, exhausted},
      {true, taken, exhausted, exhausted},
      {false, taken, {}, taken},
      {false, denied, {}, denied},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.listen_error.message() + ", " + each.share_error.message());
    RefusingPlatform platform;
    LoopGroup group;
    if (each.tracked) group.track_listeners();
    const auto first = group.listen(platform, os::Address::loopback(80), {});
    ASSERT_TRUE(first);
    const std::size_t open = platform.open_descriptors();
    platform.listen_error = each.listen_error;
    platform.share_error = each.share_error;
    const auto second = group.listen(platform, os::Address::loopback(80), {});
    EXPECT_EQ(second ? std::error_code() : second.error(), each.expected);
    EXPECT_EQ(platform.open_descriptors(), second ? open + 1 : open);
    if (second) {
      EXPECT_EQ(second->shared, first->shared);
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

/// A platform in memory that notes whether the last datagram port had to be unused.
class PlatformOfPorts final : public MemoryPlatform {
 public:
  Result<Descriptor> open_datagrams(const DatagramOptions& options) override {
    required_unused = options.require_unused;
    return MemoryPlatform::open_datagrams(options);
  }
  bool required_unused = false;
};

TEST(LoopGroup, RequiresThatNoOtherProcessUsesAChosenDatagramPort) {
  PlatformOfPorts platform;
  LoopGroup group;
  group.share_ports();
  const DatagramOptions any_port{.local = os::Address::loopback(0), .reuse_port = true};
  const auto first = group.open_datagrams(platform, any_port);
  ASSERT_TRUE(first);
  EXPECT_TRUE(platform.required_unused);
  const auto second = group.open_datagrams(platform, any_port);
  ASSERT_TRUE(second);
  EXPECT_FALSE(platform.required_unused) << "the port of the first loop";
  EXPECT_EQ(platform.local_address(second->value()).value(),
            platform.local_address(first->value()).value());
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

TEST(LoopGroup, SharesUnconnectedDatagramSocketsOnlyOnRequest) {
  MemoryPlatform platform;
  LoopGroup group;
  std::vector<os::Address> reported;
  group.on_listening = [&](const os::Address& bound) { reported.push_back(bound); };
  const os::Address any_port = os::Address::loopback(0);
  const auto bound_of = [&](const Result<Descriptor>& socket) {
    return platform.local_address(socket->value()).value();
  };
  const auto alone = group.open_datagrams(platform, {.local = any_port});
  const auto another = group.open_datagrams(platform, {.local = any_port});
  ASSERT_TRUE(alone && another);
  EXPECT_NE(bound_of(alone), bound_of(another));
  EXPECT_TRUE(reported.empty());
  const auto first = group.open_datagrams(platform, {.local = any_port, .reuse_port = true});
  const auto second = group.open_datagrams(platform, {.local = any_port, .reuse_port = true});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(bound_of(first), bound_of(second));
  EXPECT_EQ(reported, std::vector<os::Address>{bound_of(first)}) << "once for the port";
  EXPECT_TRUE(group.open_datagrams(platform, {.local = bound_of(first), .reuse_port = true}))
      << "requested by its number";
  EXPECT_EQ(reported.size(), 1U);
  EXPECT_EQ(group.open_datagrams(platform, {.local = bound_of(alone), .reuse_port = true}).error(),
            std::errc::address_in_use);
}

TEST(LoopGroup, ListsTheListenersThatAreOpenIfItTracksThem) {
  MemoryPlatform platform;
  LoopGroup untracked;
  const auto single = untracked.listen(platform, os::Address::loopback(0), {});
  ASSERT_TRUE(single);
  EXPECT_EQ(single->shared, nullptr);
  EXPECT_TRUE(untracked.listeners().empty());

  LoopGroup group;
  int stopped = 0;
  group.on_stopped = [&] { ++stopped; };
  group.track_listeners();
  auto first = group.listen(platform, os::Address::loopback(0), {});
  auto second = group.listen(platform, os::Address::loopback(0), {});
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(first->shared && second->shared);
  EXPECT_EQ(group.listeners(), (std::vector{first->shared, second->shared}));
  EXPECT_EQ(first->shared->bound(), platform.local_address(first->descriptor.value()).value());
  for (const auto* each : {&*first, &*second}) {
    each->shared->begin_accepting();
    each->shared->end_accepting();
  }
  EXPECT_EQ(stopped, 2);
  *first = {};
  EXPECT_EQ(group.listeners(), std::vector{second->shared});
  const auto third = group.listen(platform, os::Address::loopback(0), {});
  ASSERT_TRUE(third);
  EXPECT_EQ(group.listeners(), (std::vector{second->shared, third->shared}));
}

TEST(LoopGroup, ListensOnAUnixPathAgainAfterAllLoopsHaveClosedIt) {
  MemoryPlatform platform;
  const os::Address name = os::Address::local("name").value();
  LoopGroup group;
  int reported = 0;
  group.on_listening = [&](const os::Address& bound) {
    EXPECT_EQ(bound, name);
    ++reported;
  };
  auto first = group.listen(platform, name, {});
  ASSERT_TRUE(first);
  EXPECT_EQ(group.listen(platform, name, {.reuse_port = false}).error(), std::errc::address_in_use);
  auto second = group.listen(platform, name, {});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->shared, first->shared) << "one socket";
  EXPECT_EQ(reported, 1);
  *first = {};
  EXPECT_EQ(group.listen(platform, name, {})->shared, second->shared) << "it is still open";
  *second = {};
  EXPECT_TRUE(group.listen(platform, name, {}));
  EXPECT_EQ(reported, 2) << "a new socket";
}

/// A group of loops on a platform in memory, and sockets that it inherits.
class InheritingGroup : public testing::Test {
 protected:
  using Sockets = std::vector<std::shared_ptr<SharedListener>>;

  /// Makes sockets that claim to listen on `bound`.
  Sockets sockets(std::size_t count, const os::Address& bound = os::Address::loopback(80)) {
    Sockets made;
    while (made.size() < count) {
      auto listener = platform_.listen(os::Address::loopback(0), {}).value();
      made.push_back(std::make_shared<SharedListener>(platform_, std::move(listener), bound));
    }
    return made;
  }
  void make_loops(unsigned count) {
    std::vector<Loop*> all;
    for (unsigned core = 0; core < count; ++core) {
      loops_.push_back(Loop::make(platform_, {.core = core, .group = &group_}).value());
      all.push_back(loops_.back().get());
    }
    group_.set_loops(std::move(all));
  }
  /// Lets one more loop listen. Returns all sockets that it got.
  Sockets given(const os::Address& address = os::Address::loopback(80)) {
    auto listener = group_.listen(platform_, address, {});
    EXPECT_TRUE(listener) << listener.error().message();
    if (!listener) return {};
    EXPECT_TRUE(listener->descriptor);
    Sockets got{listener->shared};
    got.insert(got.end(), listener->additional.begin(), listener->additional.end());
    held_.push_back(std::move(*listener));
    return got;
  }
  /// Returns true if a request for `asked` gets the inherited socket of `bound`.
  bool matches(const os::Address& asked, const os::Address& bound) {
    LoopGroup group;
    const Sockets inherited = sockets(1, bound);
    group.inherit(inherited);
    const auto listener = group.listen(platform_, asked, {});
    return listener && listener->shared == inherited.front();
  }
  static Sockets part(const Sockets& all, std::size_t begin, std::size_t count) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    return {first, first + static_cast<std::ptrdiff_t>(count)};
  }

  MemoryPlatform platform_;
  LoopGroup group_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<LoopGroup::Listener> held_;
};

TEST_F(InheritingGroup, EachLoopGetsItsEvenShareOfTheSockets) {
  for (const std::size_t count : {6U, 7U, 8U}) {
    const Sockets all = sockets(count, os::Address::loopback(static_cast<std::uint16_t>(count)));
    if (loops_.empty()) make_loops(3);
    group_.inherit(all);
    const os::Address address = all.front()->bound();
    const std::size_t first = (count + 2) / 3;
    EXPECT_EQ(given(address), part(all, 0, first)) << count;
    const std::size_t second = (count - first + 1) / 2;
    EXPECT_EQ(given(address), part(all, first, second)) << count;
    EXPECT_EQ(given(address), part(all, first + second, count - first - second)) << count;
  }
}

TEST_F(InheritingGroup, MoreLoopsThanSocketsShareTheSocketsInTurn) {
  make_loops(2);
  Sockets all = sockets(2);
  for (const auto& each : all) each->set_externally_owned();
  group_.inherit(all);
  EXPECT_EQ(given(), part(all, 0, 1));
  EXPECT_EQ(given(), part(all, 1, 1));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(given(), part(all, 0, 1));
    EXPECT_EQ(given(), part(all, 1, 1));
  }
  std::erase_if(held_, [&](const auto& each) { return each.shared == all[0]; });
  all.erase(all.begin());
  EXPECT_EQ(given(), all) << "the other socket is closed";
  EXPECT_EQ(given(), all);
}

TEST_F(InheritingGroup, ReportsAnInheritedAddressOnce) {
  make_loops(2);
  std::vector<os::Address> reported;
  group_.on_listening = [&](const os::Address& bound) { reported.push_back(bound); };
  group_.inherit(sockets(2));
  EXPECT_TRUE(reported.empty());
  given(os::Address::loopback(0));
  given(os::Address::loopback(0));
  EXPECT_EQ(reported, std::vector<os::Address>{os::Address::loopback(80)});
}

TEST_F(InheritingGroup, KeepsTheSocketsOfOtherAddresses) {
  make_loops(1);
  const Sockets http = sockets(1, os::Address::loopback(80));
  const Sockets https = sockets(2, os::Address::loopback(443));
  group_.inherit(http);
  group_.inherit(https);
  EXPECT_EQ(given(os::Address::loopback(443)), https);
  EXPECT_EQ(given(os::Address::loopback(80)), http);
}

TEST_F(InheritingGroup, UsesASocketOnlyForItsAddress) {
  const os::Address any4 = os::Address::ipv4({}, 80);
  const os::Address any6 = os::Address::any(80);
  const os::Address loopback = os::Address::loopback(80);
  EXPECT_TRUE(matches(loopback, loopback));
  EXPECT_TRUE(matches(loopback.with_port(0), loopback));
  EXPECT_FALSE(matches(loopback.with_port(81), loopback));
  EXPECT_FALSE(matches(loopback.with_port(0), any4));
  EXPECT_TRUE(matches(any6, any4)) << "the socket of a machine without IPv6";
  EXPECT_TRUE(matches(any6.with_port(0), any4));
  EXPECT_FALSE(matches(any6.with_port(81), any4));
  EXPECT_FALSE(matches(any4, any6));
  EXPECT_FALSE(matches(any6, loopback));
  EXPECT_FALSE(matches(os::Address::parse("[::1]:80").value(), any4));
  EXPECT_TRUE(matches(any6, any6));
}

TEST_F(InheritingGroup, ListsInheritedSocketsAndReportsWhenTheyStop) {
  int stopped = 0;
  group_.on_stopped = [&] { ++stopped; };
  Sockets all = sockets(2);
  group_.inherit(all);
  EXPECT_EQ(group_.listeners(), all);
  for (const auto& each : all) {
    each->begin_accepting();
    each->end_accepting();
  }
  EXPECT_EQ(stopped, 2);
}

TEST_F(InheritingGroup, NamesTheAddressesThatAnOlderProcessWaitsFor) {
  EXPECT_EQ(group_.unaccepted_addresses(), "");
  make_loops(2);
  const Sockets http = sockets(2, os::Address::loopback(80));
  const Sockets https = sockets(2, os::Address::loopback(443));
  const Sockets managed = sockets(1, os::Address::loopback(22));
  for (const Sockets* each : {&http, &https}) {
    for (const auto& socket : *each) socket->set_peer_waits_for_accept();
    group_.inherit(*each);
  }
  group_.inherit(managed);
  EXPECT_EQ(group_.unaccepted_addresses(), "127.0.0.1:443, 127.0.0.1:80");
  given(os::Address::loopback(443));
  EXPECT_EQ(group_.unaccepted_addresses(), "127.0.0.1:443, 127.0.0.1:80") << "one of two";
  given(os::Address::loopback(443));
  EXPECT_EQ(group_.unaccepted_addresses(), "127.0.0.1:80");
}

TEST_F(InheritingGroup, ReportsAcceptingWhenNoOlderProcessWaitsAnyMore) {
  int accepting = 0;
  group_.on_accept_requested(1);  // no callback yet
  group_.on_accepting = [&] { ++accepting; };
  group_.on_accept_requested(0);
  EXPECT_EQ(accepting, 1) << "no inherited socket";
  Sockets all = sockets(4);
  for (std::size_t i = 0; i < 3; ++i) all[i]->set_peer_waits_for_accept();
  group_.inherit(all);
  group_.on_accept_requested(0);
  group_.on_accept_requested(1);
  group_.on_accept_requested(1);
  EXPECT_EQ(accepting, 1) << "one of three is left";
  group_.on_accept_requested(1);
  EXPECT_EQ(accepting, 2);
  group_.on_accept_requested(1);
  EXPECT_EQ(accepting, 3) << "each further listener reports too";
}

TEST_F(InheritingGroup, AnErrorOfThePlatformLosesNoSocket) {
  make_loops(2);
  const Sockets all = sockets(2);
  for (const auto& each : all) each->set_externally_owned();
  group_.inherit(all);
  platform_.set_descriptors_max(platform_.open_descriptors());
  EXPECT_EQ(group_.listen(platform_, os::Address::loopback(80), {}).error(),
            std::errc::too_many_files_open);
  platform_.set_descriptors_max(100);
  EXPECT_EQ(given().size(), 2U) << "the failed loop counts as one";
  EXPECT_EQ(given().size(), 1U);
  platform_.set_descriptors_max(platform_.open_descriptors());
  EXPECT_EQ(group_.listen(platform_, os::Address::loopback(80), {}).error(),
            std::errc::too_many_files_open);
}

TEST_F(InheritingGroup, AFailedListenLeavesNoDescriptorAndMayBeRepeated) {
  group_.track_listeners();
  int reported = 0;
  group_.on_listening = [&](const os::Address&) { ++reported; };
  for (const std::size_t room : {0U, 1U}) {
    platform_.set_descriptors_max(room);
    EXPECT_EQ(group_.listen(platform_, os::Address::loopback(80), {}).error(),
              std::errc::too_many_files_open);
    EXPECT_EQ(platform_.open_descriptors(), 0U);
  }
  EXPECT_EQ(reported, 0);
  EXPECT_TRUE(group_.listeners().empty());
  platform_.set_descriptors_max(2);
  given();
  EXPECT_EQ(reported, 1);
  platform_.set_descriptors_max(3);
  EXPECT_EQ(group_.listen(platform_, os::Address::loopback(80), {}).error(),
            std::errc::too_many_files_open);
  EXPECT_EQ(platform_.open_descriptors(), 2U);
  EXPECT_EQ(group_.listeners().size(), 1U);
}

TEST_F(InheritingGroup, EachListenerKnowsItsAddress) {
  make_loops(2);
  const auto bound = [&](const os::Address& address) {
    given(address);
    return held_.back().bound;
  };
  group_.inherit(sockets(1, os::Address::loopback(81)));
  const os::Address name = os::Address::local("name").value();
  for (const os::Address& each : {os::Address::loopback(80), os::Address::loopback(81), name}) {
    EXPECT_EQ(bound(each), each);
    EXPECT_EQ(bound(each), each) << "of another loop";
  }
  const os::Address chosen = bound(os::Address::loopback(0));
  EXPECT_NE(chosen.port(), 0);
  EXPECT_EQ(bound(os::Address::loopback(0)), chosen);
}

}  // namespace
}  // namespace weir
