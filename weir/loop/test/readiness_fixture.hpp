// Fixture for tests of the backends: a backend without a loop, and sockets to use.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::loop {

/// An operation that counts its runs.
template <class Op>
struct Recorded : Op {
  Recorded() : Op([](Runnable& self) { ++static_cast<Recorded&>(static_cast<Op&>(self)).runs; }) {}
  int runs = 0;
};

struct RecordedHangup : HangupObserver {
  RecordedHangup()
      : HangupObserver([](HangupObserver& self) { ++static_cast<RecordedHangup&>(self).calls; }) {}
  int calls = 0;
};

/// Accepts a connection whose connect has begun; waits until it arrives.
inline os::Fd accept_from(const os::Fd& listener) {
  pollfd wanted{listener.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 10'000), 1);
  auto accepted = os::accept_one(listener.get());
  EXPECT_TRUE(accepted.has_value());
  return std::move(*accepted);
}

/// One backend, with the platform, pool and queue that a loop would give it.
class ReadinessFixture {
 public:
  explicit ReadinessFixture(BackendChoice choice) : use_(pool_) {
    auto chosen = platform_.make_backend(choice, ready_);
    EXPECT_TRUE(chosen.has_value());
    backend_ = std::move(chosen->backend);
  }

  Backend& backend() { return *backend_; }
  OsPlatform& platform() { return platform_; }
  BlockPool& pool() { return pool_; }

  /// Waits once, at most for `longest`, and then runs everything that has finished.
  void turn(Duration longest = std::chrono::seconds(10)) {
    backend_->wait(ready_.empty() ? after(platform_.now(), longest) : Instant::min());
    while (Runnable* runnable = ready_.pop()) runnable->run();
  }
  template <class Op>
  void finish(const Recorded<Op>& operation) {
    const Instant end = after(platform_.now(), std::chrono::seconds(10));
    while (operation.runs == 0 && platform_.now() < end) turn(end - platform_.now());
    ASSERT_GT(operation.runs, 0) << "it never finished";
  }

  struct Pair {
    Socket* ours = nullptr;
    os::Fd theirs;
  };
  /// A connection over TCP's loopback; the backend has our end.
  Pair connect_tcp() {
    auto listener = os::open_listener(os::Address::loopback(0));
    auto theirs = os::open_stream(os::AddressFamily::ipv4);
    EXPECT_TRUE(os::start_connect(theirs->get(), *os::local_address(listener->get())).has_value());
    return {adopt(accept_from(*listener)), std::move(*theirs)};
  }
  Socket* adopt(os::Fd descriptor, SocketRole role = SocketRole::stream) {
    auto socket = backend_->adopt(Descriptor(platform_, descriptor.release()), {.role = role});
    EXPECT_TRUE(socket.has_value());
    return *socket;
  }

 private:
  OsPlatform platform_;
  BlockPool pool_;
  ScopedBlockPool use_;
  RunQueue ready_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace weir::loop
