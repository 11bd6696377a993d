// Fixture of the tests of streams and listeners. It provides each platform and backend of this
// machine. Library code does not include it, so it may use weir/testing.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/loop/os/os_platform.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {

struct NetKind {
  const char* name;
  bool simulated;
  BackendChoice backend;
  bool openssl_records = false;  ///< for tests of TLS: the servers have the records of OpenSSL

  friend void PrintTo(const NetKind& kind, std::ostream* out) { *out << kind.name; }
};

inline constexpr NetKind net_in_memory{"memory", true, BackendChoice::automatic};
inline constexpr NetKind net_on_uring{"uring", false, BackendChoice::uring};
inline constexpr NetKind net_on_uring_6_1{"uring_6_1", false, BackendChoice::uring_6_1};
inline constexpr NetKind net_on_epoll{"epoll", false, BackendChoice::epoll};
inline constexpr NetKind net_on_poll{"poll", false, BackendChoice::poll};

inline auto every_net_kind() {
  return testing::Values(net_in_memory, net_on_uring, net_on_uring_6_1, net_on_epoll, net_on_poll);
}
inline auto simulated_net_kind() {
  return testing::Values(net_in_memory);
}
inline auto kernel_net_kinds() {
  return testing::Values(net_on_uring, net_on_uring_6_1, net_on_epoll, net_on_poll);
}
/// Returns the kinds without io_uring, which reads ahead into buffers of its own.
inline auto net_kinds_without_read_ahead() {
  return testing::Values(net_in_memory, net_on_epoll, net_on_poll);
}

/// The two ends of one connection.
struct Pair {
  tcp::Stream server;
  tcp::Stream client;
};

class NetTest : public testing::TestWithParam<NetKind> {
 protected:
  void SetUp() override {
    if (GetParam().simulated) {
      auto memory = std::make_unique<MemoryPlatform>();
      memory_ = memory.get();
      platform_ = std::move(memory);
    } else {
      platform_ = std::make_unique<OsPlatform>();
    }
    auto made = Loop::make(*platform_, {.backend = GetParam().backend});
    if (!made) GTEST_SKIP() << "backend not available: " << made.error().message();
    loop_ = std::move(*made);
  }
  void TearDown() override {
    if (loop_ == nullptr) return;
    loop_->blocks().collect();
    // io_uring holds the buffers that it lends to the kernel.
    if (!loop_->backend().name().starts_with("uring")) {
      EXPECT_EQ(loop_->blocks().blocks_in_use(), 0U);
    }
    EXPECT_EQ(loop_->timers().armed(), 0U);
    loop_.reset();
    if (memory_ != nullptr) {
      EXPECT_EQ(memory_->open_descriptors(), 0U);
    }
  }

  template <class T>
  T run(Task<T> task, CancelSource* cancel = nullptr) {
    return weir::run(*loop_, std::move(task), cancel);
  }

  bool simulated() const { return memory_ != nullptr; }

  std::unique_ptr<loop::Platform> platform_;
  MemoryPlatform* memory_ = nullptr;
  std::unique_ptr<Loop> loop_;
};

/// Listens on a local address. Two calls with port 0 of one address on one loop get the same port.
inline Task<tcp::Listener> listen_locally(ListenOptions options = {},
                                          Endpoint endpoint = Endpoint::loopback(0)) {
  auto listener = co_await tcp::listen(endpoint, options);
  co_return std::move(listener.value());
}

inline Task<Pair> connect_pair() {
  tcp::Listener listener = co_await listen_locally();
  auto both = co_await all(as_task(listener.accept()), tcp::connect(listener.local_address()));
  co_return Pair{std::move(std::get<0>(both.value())), std::move(std::get<1>(both.value()))};
}

/// Returns all bytes until the end of the stream, and the error that ended it.
inline Task<std::pair<std::string, std::error_code>> read_to_end(Stream& stream) {
  std::string text;
  for (;;) {
    const auto bytes = co_await stream.read();
    if (!bytes) co_return std::pair(std::move(text), bytes.error());
    text += bytes->text();
  }
}

/// Writes like Stream::write(): `co_await CountedWrite(stream, text)`.
/// Returns: the number of bytes that count as sent, and the error of the write.
class CountedWrite : public Write::Awaiter {
 public:
  CountedWrite(Stream& stream, std::string_view text) noexcept : Awaiter(stream.write(text)) {}
  std::pair<std::size_t, std::error_code> await_resume() noexcept {
    const Result<> written = Awaiter::await_resume();
    return {this->sent, written ? std::error_code() : written.error()};
  }
};

/// Reads at least `count` bytes, or fewer if the stream ends.
inline Task<std::string> read_some(Stream& stream, std::size_t count) {
  std::string text;
  while (text.size() < count) {
    const auto bytes = co_await stream.read();
    if (!bytes) break;
    text += bytes->text();
  }
  co_return text;
}

}  // namespace weir
