// Tests of a ListenerRegistry that loops of several threads use at the same time.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "weir/loop/detail/listen/listener_registry.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::loop::listener_registry_threads_test {
namespace {

/// Calls `each` with 0 and 1 on two threads that begin at the same time.
void on_two_threads(const std::function<void(std::size_t)>& each) {
  std::atomic<int> ready{0};
  const auto begin = [&](std::size_t thread) {
    ready.fetch_add(1);
    while (ready.load() < 2) std::this_thread::yield();
    each(thread);
  };
  std::thread other(begin, 1);
  begin(0);
  other.join();
}

TEST(ListenerRegistryOfThreads, LoopsThatListenAtTheSameTimeGetOnePort) {
  OsPlatform platform;
  const os::Address any_port = os::Address::loopback(0);
  for (int round = 0; round < 100; ++round) {
    ListenerRegistry registry;
    std::atomic<int> reported{0};
    registry.on_listening = [&](const os::Address&) { ++reported; };
    registry.on_receiving = registry.on_listening;
    std::array<Result<ListenerRegistry::Listener>, 2> listeners{fail(Errc::closed),
                                                                fail(Errc::closed)};
    std::array<Result<Descriptor>, 2> datagrams{fail(Errc::closed), fail(Errc::closed)};
    on_two_threads([&](std::size_t thread) {
      listeners[thread] = registry.listen(platform, any_port, {});
      datagrams[thread] =
          registry.open_datagrams(platform, {.local = any_port, .reuse_port = true});
    });
    ASSERT_TRUE(listeners[0] && listeners[1] && datagrams[0] && datagrams[1]);
    EXPECT_EQ(platform.local_address(listeners[0]->descriptor.value()).value(),
              platform.local_address(listeners[1]->descriptor.value()).value());
    EXPECT_EQ(platform.local_address(datagrams[0]->value()).value(),
              platform.local_address(datagrams[1]->value()).value());
    EXPECT_EQ(reported.load(), 2) << "once for each of the two ports";
  }
}

TEST(ListenerRegistryOfThreads, ListsListenersWhileTheyComeAndGo) {
  OsPlatform platform;
  ListenerRegistry registry;
  registry.track_listeners();
  const auto first = registry.listen(platform, os::Address::loopback(0), {});
  ASSERT_TRUE(first);
  on_two_threads([&](std::size_t) {
    for (int i = 0; i < 500; ++i) {
      const auto own = registry.listen(platform, os::Address::loopback(0), {});
      ASSERT_TRUE(own);
      const auto open = registry.listeners();
      EXPECT_GE(open.size(), 2U);
    }
  });
  EXPECT_EQ(registry.listeners(), std::vector{first->shared});
}

TEST(ListenerRegistryOfThreads, ReadsAFailureWhileAnotherIsRecorded) {
  ListenerRegistry registry;
  const std::error_code error = make_error_code(Errc::unsupported);
  const auto text = [&](std::uint16_t port) {
    return "cannot listen on 127.0.0.1:" + std::to_string(port) + ": " + error.message();
  };
  on_two_threads([&](std::size_t thread) {
    for (int i = 0; i < 5000; ++i) {
      const auto port = static_cast<std::uint16_t>(thread == 0 ? 1 : 10'000);
      registry.record_failure("listen on", os::Address::loopback(port), error);
      const std::string failure = registry.failure();
      EXPECT_TRUE(failure == text(1) || failure == text(10'000)) << failure;
    }
  });
}

TEST(ListenerRegistryOfThreads, CountsEachAcceptedSocketOnce) {
  MemoryPlatform platform;
  constexpr std::size_t count = 200;
  for (int round = 0; round < 30; ++round) {
    ListenerRegistry registry;
    std::atomic<int> accepting{0};
    registry.on_accepting = [&] { ++accepting; };
    std::vector<std::shared_ptr<SharedListener>> sockets;
    while (sockets.size() < count) {
      sockets.push_back(
          std::make_shared<SharedListener>(platform, Descriptor(), os::Address::loopback(80)));
      sockets.back()->set_peer_waits_for_accept();
    }
    registry.inherit(sockets);
    on_two_threads([&](std::size_t) {
      for (std::size_t i = 0; i < count / 2; ++i) registry.on_accept_requested(1);
    });
    EXPECT_EQ(accepting.load(), 1) << "the last of them";
  }
}

// The thread sanitizer reports a loop that the last one does not see.
TEST(SharedListenerOfThreads, TheLastLoopToStopSeesWhatTheOtherHasDone) {
  MemoryPlatform platform;
  for (int round = 0; round < 100; ++round) {
    const os::Address address = os::Address::loopback(0);
    SharedListener listener(platform, platform.listen(address, {}).value(), address);
    std::array<int, 2> done{};
    int seen = 0;
    listener.on_stopped = [&] { seen = done[0] + done[1]; };
    for (std::size_t loop = 0; loop < done.size(); ++loop) listener.begin_accepting();
    on_two_threads([&](std::size_t thread) {
      done[thread] = 1;
      listener.end_accepting();
    });
    EXPECT_EQ(seen, 2);
  }
}

TEST(ListenerRegistryOfThreads, NamesAddressesWhileLoopsTakeTheirSockets) {
  OsPlatform platform;
  const auto listener = platform.listen(os::Address::loopback(0), {}).value();
  constexpr std::uint16_t count = 40;
  for (int round = 0; round < 10; ++round) {
    ListenerRegistry registry;
    std::vector<std::shared_ptr<SharedListener>> sockets;
    for (std::uint16_t port = 1; port <= count; ++port) {
      sockets.push_back(std::make_shared<SharedListener>(
          platform, platform.share(listener.value()).value(), os::Address::loopback(port)));
      sockets.back()->set_peer_waits_for_accept();
    }
    registry.inherit(std::move(sockets));
    on_two_threads([&](std::size_t thread) {
      for (std::uint16_t port = 1; port <= count; ++port) {
        if (thread == 0) {
          EXPECT_TRUE(registry.listen(platform, os::Address::loopback(port), {}));
        } else {
          const std::string addresses = registry.unaccepted_addresses();
          EXPECT_TRUE(addresses.empty() || addresses.starts_with("127.0.0.1:")) << addresses;
        }
      }
    });
    EXPECT_EQ(registry.unaccepted_addresses(), "");
  }
}

}  // namespace
}  // namespace weir::loop::listener_registry_threads_test
