#include "weir/loop/detail/listen/listener_registry.hpp"

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

#include "weir/loop/os/os_platform.hpp"
#include "weir/os/test/temporary_tree.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::loop::listener_registry_test {
namespace {

TEST(ListenerRegistry, LoopsGetThePortThatThePlatformChose) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    ListenerRegistry registry;
    std::vector<os::Address> reported;
    registry.on_listening = [&](const os::Address& bound) { reported.push_back(bound); };
    const os::Address any_port = os::Address::loopback(0);
    auto first = registry.listen(*platform, any_port, {});
    auto second = registry.listen(*platform, any_port, {});
    ASSERT_TRUE(first && second);
    const os::Address bound = platform->local_address(first->descriptor.value()).value();
    EXPECT_NE(bound.port(), 0);
    EXPECT_EQ(platform->local_address(second->descriptor.value()).value(), bound);
    EXPECT_EQ(reported, std::vector<os::Address>{bound});
    EXPECT_EQ(registry.failure(), "");
    EXPECT_TRUE(registry.listen(*platform, bound, {})) << "requested by its number";

    ListenerRegistry another;
    auto third = another.listen(*platform, any_port, {});
    ASSERT_TRUE(third);
    EXPECT_NE(platform->local_address(third->descriptor.value()).value(), bound);
  }
}

TEST(ListenerRegistry, EachListenerOfALoopOnPort0HasAPortOfItsOwn) {
  MemoryPlatform memory;
  OsPlatform os;
  const int loops[2] = {};
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    ListenerRegistry registry;
    int reported = 0;
    registry.on_listening = [&](const os::Address&) { ++reported; };
    const os::Address any_port = os::Address::loopback(0);
    std::vector<ListenerRegistry::Listener> listeners;
    std::vector<HeldAddresses::Hold> holds;
    const auto port_of_next = [&](const int& loop) {
      listeners.push_back(registry.listen(*platform, any_port, {}, &loop).value());
      holds.push_back(registry.held_by_listeners().hold(listeners.back().bound, &loop));
      return listeners.back().bound;
    };
    const os::Address api = port_of_next(loops[0]);
    const os::Address admin = port_of_next(loops[0]);
    EXPECT_NE(api, admin);
    EXPECT_EQ(port_of_next(loops[1]), api) << "in the order of the first loop";
    EXPECT_EQ(port_of_next(loops[1]), admin);
    EXPECT_EQ(reported, 2);
    holds.erase(holds.begin());
    listeners.erase(listeners.begin());
    EXPECT_EQ(port_of_next(loops[0]), api) << "a loop that has closed its listener gets it back";
  }
}

// A service that replaces another one listens while the other still does.
TEST(ListenerRegistry, AListenerOfALoopSharesAPortThatIsAskedForByNumber) {
  MemoryPlatform platform;
  ListenerRegistry registry;
  const int loop = 0;
  const auto first = registry.listen(platform, os::Address::loopback(0), {}, &loop);
  ASSERT_TRUE(first);
  const auto hold = registry.held_by_listeners().hold(first->bound, &loop);
  const auto next = registry.listen(platform, first->bound, {}, &loop);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->bound, first->bound);
}

TEST(ListenerRegistry, EachReceiverOfALoopOnPort0HasAPortOfItsOwn) {
  MemoryPlatform platform;
  ListenerRegistry registry;
  const int loops[2] = {};
  const DatagramOptions any_port{.local = os::Address::loopback(0), .reuse_port = true};
  std::vector<Descriptor> sockets;
  std::vector<HeldAddresses::Hold> holds;
  const auto port_of_next = [&](const int& loop) {
    sockets.push_back(registry.open_datagrams(platform, any_port, &loop).value());
    const os::Address bound = platform.local_address(sockets.back().value()).value();
    holds.push_back(registry.held_by_datagrams().hold(bound, &loop));
    return bound;
  };
  const os::Address first = port_of_next(loops[0]);
  const os::Address second = port_of_next(loops[0]);
  EXPECT_NE(first, second);
  EXPECT_EQ(port_of_next(loops[1]), first);
  EXPECT_EQ(port_of_next(loops[1]), second);
}

TEST(ListenerRegistry, SharesItsPortWithNoOtherGroup) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    ListenerRegistry ours, theirs;
    auto first = ours.listen(*platform, os::Address::loopback(0), {});
    ASSERT_TRUE(first);
    const os::Address bound = platform->local_address(first->descriptor.value()).value();
    EXPECT_EQ(theirs.listen(*platform, bound, {}).error(), std::errc::address_in_use);
    EXPECT_TRUE(ours.listen(*platform, os::Address::loopback(0), {}));
  }
}

TEST(ListenerRegistry, LoopsShareAUnixSocketUntilTheLastClosesIt) {
  const os::TemporaryTree tree;
  const os::Address path = os::Address::local(tree.path("a.sock")).value();
  OsPlatform platform;
  ListenerRegistry ours, theirs;
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

TEST(ListenerRegistry, LoopsShareAUnixSocketWhoseFileIsGone) {
  const os::TemporaryTree tree;
  const os::Address path = os::Address::local(tree.path("a.sock")).value();
  OsPlatform platform;
  ListenerRegistry registry;
  const auto first = registry.listen(platform, path, {});
  std::filesystem::remove(path.path());
  const auto second = registry.listen(platform, path, {});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->shared, second->shared);
  EXPECT_FALSE(std::filesystem::exists(path.path()));
}

TEST(ListenerRegistry, KeepsAUnixPathOfAnotherSocket) {
  const os::TemporaryTree tree;
  const os::Address path = os::Address::local(tree.path("a.sock")).value();
  OsPlatform platform, another;
  ListenerRegistry registry;
  auto listener = registry.listen(platform, path, {});
  ASSERT_TRUE(listener);
  ASSERT_TRUE(platform.refuse_new_connections(listener->descriptor.value()));
  const auto successor = another.listen(path, {});
  ASSERT_TRUE(successor) << "takes over a path that refuses connections";
  *listener = {};
  EXPECT_TRUE(std::filesystem::exists(path.path()));
}

TEST(ListenerRegistry, SharesAUnixNameInMemory) {
  MemoryPlatform platform;
  const os::Address name = os::Address::local("name").value();
  ListenerRegistry ours, theirs;
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
TEST(ListenerRegistry, LoopsShareTheFewerSocketsOfAnOlderProcess) {
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
    ListenerRegistry registry;
    registry.inherit(older);
    registry.set_loop_count(6);
    std::vector<Result<ListenerRegistry::Listener>> given;
    for (unsigned core = 0; core < 6; ++core)
      given.push_back(registry.listen(*platform, bound, joining));
    for (const auto& socket : older) {
      const auto has_it = [&](const auto& each) { return each && each->shared == socket; };
      EXPECT_EQ(std::ranges::count_if(given, has_it), 3);
    }
  }
}

// An inherited socket may have been opened without port sharing.
TEST(ListenerRegistry, LoopsShareAnInheritedSocketOfAPortThatIsNotShared) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    auto only = platform->listen(os::Address::loopback(0), {.reuse_port = false});
    ASSERT_TRUE(only);
    const os::Address bound = platform->local_address(only->value()).value();
    const auto inherited = std::make_shared<SharedListener>(*platform, std::move(*only), bound);
    ListenerRegistry registry;
    registry.inherit({inherited});
    const auto first = registry.listen(*platform, bound, {});
    const auto second = registry.listen(*platform, bound, {});
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->shared, inherited);
    EXPECT_EQ(second->shared, inherited);
    EXPECT_TRUE(second->descriptor);
    const auto alone = registry.listen(*platform, bound, {.reuse_port = false});
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

TEST(ListenerRegistry, SharesASocketOnlyIfItsPortIsTakenAndOtherwiseReportsTheError) {
  const std::error_code taken = system_error(EADDRINUSE);
  const std::error_code denied = system_error(EACCES);
  const std::error_code exhausted = system_error(EMFILE);
  struct {
    bool tracked;  // the registry has a socket to share
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
    ListenerRegistry registry;
    if (each.tracked) registry.track_listeners();
    const auto first = registry.listen(platform, os::Address::loopback(80), {});
    ASSERT_TRUE(first);
    const std::size_t open = platform.open_descriptors();
    platform.listen_error = each.listen_error;
    platform.share_error = each.share_error;
    const auto second = registry.listen(platform, os::Address::loopback(80), {});
    EXPECT_EQ(second ? std::error_code() : second.error(), each.expected);
    EXPECT_EQ(platform.open_descriptors(), second ? open + 1 : open);
    if (second) {
      EXPECT_EQ(second->shared, first->shared);
    }
  }
}

// The first loop has drained before the second one listens.
TEST(ListenerRegistry, AnInheritedSocketThatWasClosedHereStaysClosed) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    const auto managers = platform->listen(os::Address::loopback(0), {.reuse_port = false});
    ASSERT_TRUE(managers);
    const os::Address bound = platform->local_address(managers->value()).value();
    ListenerRegistry registry;
    {
      auto own = platform->share(managers->value());
      ASSERT_TRUE(own);
      registry.inherit({std::make_shared<SharedListener>(*platform, std::move(*own), bound)});
    }
    EXPECT_TRUE(registry.listen(*platform, bound, {}));
    EXPECT_EQ(registry.listen(*platform, bound, {}).error(), Errc::closed);
  }
}

TEST(ListenerRegistry, SharesDatagramPortsOnlyWithAnOlderProcess) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    ListenerRegistry older, stranger, newer;
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

TEST(ListenerRegistry, SharesDatagramPortsWithProcessesOfItsService) {
  MemoryPlatform memory;
  OsPlatform os;
  for (Platform* const platform : {static_cast<Platform*>(&memory), static_cast<Platform*>(&os)}) {
    ListenerRegistry one, other, stranger;
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

TEST(ListenerRegistry, RequiresThatNoOtherProcessUsesAChosenDatagramPort) {
  PlatformOfPorts platform;
  ListenerRegistry registry;
  registry.share_ports();
  const DatagramOptions any_port{.local = os::Address::loopback(0), .reuse_port = true};
  const auto first = registry.open_datagrams(platform, any_port);
  ASSERT_TRUE(first);
  EXPECT_TRUE(platform.required_unused);
  const auto second = registry.open_datagrams(platform, any_port);
  ASSERT_TRUE(second);
  EXPECT_FALSE(platform.required_unused) << "the port of the first loop";
  EXPECT_EQ(platform.local_address(second->value()).value(),
            platform.local_address(first->value()).value());
}

TEST(ListenerRegistry, ReportsTheLastFailure) {
  MemoryPlatform platform;
  ListenerRegistry one, two;
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

TEST(ListenerRegistry, SharesUnconnectedDatagramSocketsOnlyOnRequest) {
  MemoryPlatform platform;
  ListenerRegistry registry;
  std::vector<os::Address> reported;
  registry.on_receiving = [&](const os::Address& bound) { reported.push_back(bound); };
  const os::Address any_port = os::Address::loopback(0);
  const auto bound_of = [&](const Result<Descriptor>& socket) {
    return platform.local_address(socket->value()).value();
  };
  const auto alone = registry.open_datagrams(platform, {.local = any_port});
  const auto another = registry.open_datagrams(platform, {.local = any_port});
  ASSERT_TRUE(alone && another);
  EXPECT_NE(bound_of(alone), bound_of(another));
  EXPECT_TRUE(reported.empty());
  const auto first = registry.open_datagrams(platform, {.local = any_port, .reuse_port = true});
  const auto second = registry.open_datagrams(platform, {.local = any_port, .reuse_port = true});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(bound_of(first), bound_of(second));
  EXPECT_EQ(reported, std::vector<os::Address>{bound_of(first)}) << "once for the port";
  EXPECT_TRUE(registry.open_datagrams(platform, {.local = bound_of(first), .reuse_port = true}))
      << "requested by its number";
  EXPECT_EQ(reported.size(), 1U);
  EXPECT_EQ(
      registry.open_datagrams(platform, {.local = bound_of(alone), .reuse_port = true}).error(),
      std::errc::address_in_use);
}

TEST(ListenerRegistry, ListsTheListenersThatAreOpenIfItTracksThem) {
  MemoryPlatform platform;
  ListenerRegistry untracked;
  const auto single = untracked.listen(platform, os::Address::loopback(0), {});
  ASSERT_TRUE(single);
  EXPECT_EQ(single->shared, nullptr);
  EXPECT_TRUE(untracked.listeners().empty());

  ListenerRegistry registry;
  int stopped = 0;
  registry.on_stopped = [&] { ++stopped; };
  registry.track_listeners();
  auto first = registry.listen(platform, os::Address::loopback(0), {});
  auto second = registry.listen(platform, os::Address::loopback(0), {});
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(first->shared && second->shared);
  EXPECT_EQ(registry.listeners(), (std::vector{first->shared, second->shared}));
  EXPECT_EQ(first->shared->bound(), platform.local_address(first->descriptor.value()).value());
  for (const auto* each : {&*first, &*second}) {
    each->shared->begin_accepting();
    each->shared->end_accepting();
  }
  EXPECT_EQ(stopped, 2);
  *first = {};
  EXPECT_EQ(registry.listeners(), std::vector{second->shared});
  const auto third = registry.listen(platform, os::Address::loopback(0), {});
  ASSERT_TRUE(third);
  EXPECT_EQ(registry.listeners(), (std::vector{second->shared, third->shared}));
}

TEST(ListenerRegistry, ListensOnAUnixPathAgainAfterAllLoopsHaveClosedIt) {
  MemoryPlatform platform;
  const os::Address name = os::Address::local("name").value();
  ListenerRegistry registry;
  int reported = 0;
  registry.on_listening = [&](const os::Address& bound) {
    EXPECT_EQ(bound, name);
    ++reported;
  };
  auto first = registry.listen(platform, name, {});
  ASSERT_TRUE(first);
  EXPECT_EQ(registry.listen(platform, name, {.reuse_port = false}).error(),
            std::errc::address_in_use);
  auto second = registry.listen(platform, name, {});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->shared, first->shared) << "one socket";
  EXPECT_EQ(reported, 1);
  *first = {};
  EXPECT_EQ(registry.listen(platform, name, {})->shared, second->shared) << "it is still open";
  *second = {};
  EXPECT_TRUE(registry.listen(platform, name, {}));
  EXPECT_EQ(reported, 2) << "a new socket";
}

/// A registry on a platform in memory, and sockets that it inherits.
class InheritingRegistry : public testing::Test {
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
  /// Lets one more loop listen. Returns all sockets that it got.
  Sockets given(const os::Address& address = os::Address::loopback(80)) {
    auto listener = registry_.listen(platform_, address, {});
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
    ListenerRegistry registry;
    const Sockets inherited = sockets(1, bound);
    registry.inherit(inherited);
    const auto listener = registry.listen(platform_, asked, {});
    return listener && listener->shared == inherited.front();
  }
  static Sockets part(const Sockets& all, std::size_t begin, std::size_t count) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    return {first, first + static_cast<std::ptrdiff_t>(count)};
  }

  MemoryPlatform platform_;
  ListenerRegistry registry_;
  std::vector<ListenerRegistry::Listener> held_;
};

TEST_F(InheritingRegistry, EachLoopGetsItsEvenShareOfTheSockets) {
  for (const std::size_t count : {6U, 7U, 8U}) {
    const Sockets all = sockets(count, os::Address::loopback(static_cast<std::uint16_t>(count)));
    registry_.set_loop_count(3);
    registry_.inherit(all);
    const os::Address address = all.front()->bound();
    const std::size_t first = (count + 2) / 3;
    EXPECT_EQ(given(address), part(all, 0, first)) << count;
    const std::size_t second = (count - first + 1) / 2;
    EXPECT_EQ(given(address), part(all, first, second)) << count;
    EXPECT_EQ(given(address), part(all, first + second, count - first - second)) << count;
  }
}

TEST_F(InheritingRegistry, MoreLoopsThanSocketsShareTheSocketsInTurn) {
  registry_.set_loop_count(2);
  Sockets all = sockets(2);
  for (const auto& each : all) each->set_externally_owned();
  registry_.inherit(all);
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

TEST_F(InheritingRegistry, ReportsAnInheritedAddressOnce) {
  registry_.set_loop_count(2);
  std::vector<os::Address> reported;
  registry_.on_listening = [&](const os::Address& bound) { reported.push_back(bound); };
  registry_.inherit(sockets(2));
  EXPECT_TRUE(reported.empty());
  given(os::Address::loopback(0));
  given(os::Address::loopback(0));
  EXPECT_EQ(reported, std::vector<os::Address>{os::Address::loopback(80)});
}

TEST_F(InheritingRegistry, KeepsTheSocketsOfOtherAddresses) {
  registry_.set_loop_count(1);
  const Sockets http = sockets(1, os::Address::loopback(80));
  const Sockets https = sockets(2, os::Address::loopback(443));
  registry_.inherit(http);
  registry_.inherit(https);
  EXPECT_EQ(given(os::Address::loopback(443)), https);
  EXPECT_EQ(given(os::Address::loopback(80)), http);
}

TEST_F(InheritingRegistry, UsesASocketOnlyForItsAddress) {
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

TEST_F(InheritingRegistry, ListsInheritedSocketsAndReportsWhenTheyStop) {
  int stopped = 0;
  registry_.on_stopped = [&] { ++stopped; };
  Sockets all = sockets(2);
  registry_.inherit(all);
  EXPECT_EQ(registry_.listeners(), all);
  for (const auto& each : all) {
    each->begin_accepting();
    each->end_accepting();
  }
  EXPECT_EQ(stopped, 2);
}

TEST_F(InheritingRegistry, NamesTheAddressesThatAnOlderProcessWaitsFor) {
  EXPECT_EQ(registry_.unaccepted_addresses(), "");
  registry_.set_loop_count(2);
  const Sockets http = sockets(2, os::Address::loopback(80));
  const Sockets https = sockets(2, os::Address::loopback(443));
  const Sockets managed = sockets(1, os::Address::loopback(22));
  for (const Sockets* each : {&http, &https}) {
    for (const auto& socket : *each) socket->set_peer_waits_for_accept();
    registry_.inherit(*each);
  }
  registry_.inherit(managed);
  EXPECT_EQ(registry_.unaccepted_addresses(), "127.0.0.1:443, 127.0.0.1:80");
  given(os::Address::loopback(443));
  EXPECT_EQ(registry_.unaccepted_addresses(), "127.0.0.1:443, 127.0.0.1:80") << "one of two";
  given(os::Address::loopback(443));
  EXPECT_EQ(registry_.unaccepted_addresses(), "127.0.0.1:80");
}

TEST_F(InheritingRegistry, ReportsAcceptingWhenNoOlderProcessWaitsAnyMore) {
  int accepting = 0;
  registry_.on_accept_requested(1);  // no callback yet
  registry_.on_accepting = [&] { ++accepting; };
  registry_.on_accept_requested(0);
  EXPECT_EQ(accepting, 1) << "no inherited socket";
  Sockets all = sockets(4);
  for (std::size_t i = 0; i < 3; ++i) all[i]->set_peer_waits_for_accept();
  registry_.inherit(all);
  registry_.on_accept_requested(0);
  registry_.on_accept_requested(1);
  registry_.on_accept_requested(1);
  EXPECT_EQ(accepting, 1) << "one of three is left";
  registry_.on_accept_requested(1);
  EXPECT_EQ(accepting, 2);
  registry_.on_accept_requested(1);
  EXPECT_EQ(accepting, 3) << "each further listener reports too";
}

TEST_F(InheritingRegistry, AnErrorOfThePlatformLosesNoSocket) {
  registry_.set_loop_count(2);
  const Sockets all = sockets(2);
  for (const auto& each : all) each->set_externally_owned();
  registry_.inherit(all);
  platform_.set_descriptors_max(platform_.open_descriptors());
  EXPECT_EQ(registry_.listen(platform_, os::Address::loopback(80), {}).error(),
            std::errc::too_many_files_open);
  platform_.set_descriptors_max(100);
  EXPECT_EQ(given().size(), 2U) << "the failed loop counts as one";
  EXPECT_EQ(given().size(), 1U);
  platform_.set_descriptors_max(platform_.open_descriptors());
  EXPECT_EQ(registry_.listen(platform_, os::Address::loopback(80), {}).error(),
            std::errc::too_many_files_open);
}

TEST_F(InheritingRegistry, AFailedListenLeavesNoDescriptorAndMayBeRepeated) {
  registry_.track_listeners();
  int reported = 0;
  registry_.on_listening = [&](const os::Address&) { ++reported; };
  for (const std::size_t room : {0U, 1U}) {
    platform_.set_descriptors_max(room);
    EXPECT_EQ(registry_.listen(platform_, os::Address::loopback(80), {}).error(),
              std::errc::too_many_files_open);
    EXPECT_EQ(platform_.open_descriptors(), 0U);
  }
  EXPECT_EQ(reported, 0);
  EXPECT_TRUE(registry_.listeners().empty());
  platform_.set_descriptors_max(2);
  given();
  EXPECT_EQ(reported, 1);
  platform_.set_descriptors_max(3);
  EXPECT_EQ(registry_.listen(platform_, os::Address::loopback(80), {}).error(),
            std::errc::too_many_files_open);
  EXPECT_EQ(platform_.open_descriptors(), 2U);
  EXPECT_EQ(registry_.listeners().size(), 1U);
}

TEST_F(InheritingRegistry, EachListenerKnowsItsAddress) {
  registry_.set_loop_count(2);
  const auto bound = [&](const os::Address& address) {
    given(address);
    return held_.back().bound;
  };
  registry_.inherit(sockets(1, os::Address::loopback(81)));
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
}  // namespace weir::loop::listener_registry_test
