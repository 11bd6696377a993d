// A fixture with one HTTP server on one loop of a memory platform, for tests of connections. It
// may use weir/testing, because only tests include it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/test/heap_fixture.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/proxy_protocol.hpp"
#include "weir/task/scope.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {

/// A server in virtual time with raw clients. shut_down() drains the server and then expects that
/// no block of memory, timer or descriptor is left.
class HttpFixture : Continuation, loop::Runnable {
 public:
  explicit HttpFixture(const MemoryPlatformOptions& options = {})
      : Continuation(root_kind<&ended>), loop::Runnable(&begin), platform_(options) {}
  ~HttpFixture() { shut_down(); }

  /// Serves routes_ on loopback, port 80.
  void serve(const http::Limits& limits = {}) {
    const http::ServeOptions options{.limits = limits,
                                     .tls = tls_,
                                     .plain_http2 = plain_http2_,
                                     .proxy_protocol = proxy_protocol_,
                                     .observer = observer_};
    server_.emplace(*loop_, routes_, options);
    loop_->ready(*this);
    settle();
    blocks_at_rest_ = blocks();
  }
  /// Drains the server, as Runtime does first; stop() cancels it.
  void drain() { loop_->drain(); }
  void stop() { cancel_.cancel(); }
  bool stopped() const noexcept { return stopped_; }

  void shut_down() {
    if (!server_) return;
    peers_.clear();
    drain();
    pass(std::chrono::seconds(2));
    EXPECT_TRUE(stopped_) << "the server does not end";
    if (!stopped_) stop();
    settle();
    root_.reset();
    server_.reset();
    EXPECT_EQ(blocks(), 0U) << "blocks of the pool are still in use";
    EXPECT_EQ(loop_->timers().armed(), 0U);
    EXPECT_EQ(platform_.open_descriptors(), 0U);
  }

  MemoryPeer& connect() {
    peers_.push_back(std::make_unique<MemoryPeer>(platform_, address_));
    return *peers_.back();
  }
  /// Runs the loop until it is idle, without advancing the time.
  void settle() { platform_.run_until_idle(*loop_); }
  void pass(Duration length) { platform_.advance(*loop_, length); }
  /// Runs one turn of the loop without advancing the time. Returns true if it did any work.
  bool turn() { return loop_->turn(platform_.now()); }

  /// Sends `text` as far as the server accepts it and returns the received bytes, without
  /// advancing the time.
  std::string talk(MemoryPeer& peer, std::string_view text) {
    while (!text.empty()) {
      const std::size_t sent = peer.send(text);
      text.remove_prefix(sent);
      settle();
      if (sent == 0) break;
    }
    return peer.take();
  }
  /// Sends `text` on a new connection and returns the statuses of the responses.
  std::string statuses(std::string_view text) {
    return sim::statuses_of(sim::parse_http_responses(talk(connect(), text)));
  }

  std::size_t blocks() {
    loop_->blocks().collect();
    return loop_->blocks().blocks_in_use();
  }
  /// Expects that no connection has left any resource.
  void expect_at_rest() {
    EXPECT_EQ(blocks(), blocks_at_rest_);
    EXPECT_EQ(loop_->timers().armed(), 0U);
    EXPECT_EQ(platform_.open_descriptors(), 1U) << "more than the listener is open";
    EXPECT_EQ(server_->counters().connections_open.value(), 0U);
  }

 protected:
  struct FixturePlatform : MemoryPlatform {
    using MemoryPlatform::MemoryPlatform;
    void write_line(std::string_view line) noexcept override {
      const TestHeap::NoAllocationFailure no_failure;
      MemoryPlatform::write_line(line);
    }
    void close(int descriptor) noexcept override {
      const TestHeap::NoAllocationFailure no_failure;
      MemoryPlatform::close(descriptor);
    }
    Result<std::size_t> unacked_bytes(int descriptor) override {
      const auto of_network = MemoryPlatform::unacked_bytes(descriptor);
      return of_network ? Result<std::size_t>(*of_network + unacked) : of_network;
    }
    /// Bytes of each connection that the server's kernel holds for the client.
    std::size_t unacked = 0;
  };
  FixturePlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
  os::Address address_ = os::Address::loopback(80);
  http::Router routes_;
  std::shared_ptr<tls::Server> tls_;  // set it before serve() for HTTPS
  http::PlainHttp2 plain_http2_ = http::PlainHttp2::off;
  std::shared_ptr<const ProxyProtocol> proxy_protocol_;
  http::ServerObserver* observer_ = nullptr;
  std::optional<http::ServerState> server_;

 private:
  static void begin(loop::Runnable& self) {
    auto& fixture = static_cast<HttpFixture&>(self);
    fixture.root_.emplace(with_scope(OnFailure::isolate, &http::listen_and_serve,
                                     std::ref(*fixture.server_), fixture.address_));
    fixture.root_->start(Context{fixture.loop_.get(), &fixture.cancel_}, fixture);
  }
  static std::coroutine_handle<> ended(Continuation& self, std::coroutine_handle<>) {
    static_cast<HttpFixture&>(self).stopped_ = true;
    return std::noop_coroutine();
  }

  CancelSource cancel_;
  std::optional<Task<Result<>>> root_;
  std::vector<std::unique_ptr<MemoryPeer>> peers_;
  std::size_t blocks_at_rest_ = 0;
  bool stopped_ = false;
};

class HttpTest : public testing::Test, protected HttpFixture {
 protected:
  explicit HttpTest(const MemoryPlatformOptions& options = {}) : HttpFixture(options) {}
  void TearDown() override { shut_down(); }
};

}  // namespace weir
