// One HTTP server on one loop of a host in memory, for tests of what happens on its connections.
// Included by tests only, so it may use weir/testing.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/test/heap_fixture.hpp"
#include "weir/http/serve.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/scope.hpp"
#include "weir/testing/http_answers.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir {

/// Virtual time, raw clients. shut_down() drains the server, and then nothing may be left: no block
/// of memory, no timer, no descriptor.
class HttpBench : Completion, Runnable {
 public:
  explicit HttpBench(const MemoryHostOptions& options = {})
      : Completion(&ended), Runnable(&begin), host_(options) {}
  ~HttpBench() { shut_down(); }

  /// Serves routes_ on loopback, port 80.
  void serve(const http::Limits& limits = {}) {
    server_.emplace(*loop_, routes_, limits);
    loop_->ready(*this);
    settle();
    blocks_at_rest_ = blocks();
  }
  /// As Runtime does it: asked to finish, and cancelled.
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
    EXPECT_EQ(host_.open_descriptors(), 0U);
  }

  MemoryPeer& connect() {
    peers_.push_back(std::make_unique<MemoryPeer>(host_, address_));
    return *peers_.back();
  }
  /// Lets everything happen that needs no time.
  void settle() { host_.run_until_idle(*loop_); }
  void pass(Duration length) { host_.advance(*loop_, length); }
  /// One turn of the loop, without time passing. Returns whether it did anything.
  bool turn() { return loop_->turn(host_.now()); }

  /// Sends it, as far as the server takes it, and gives what came back; no time passes.
  std::string talk(MemoryPeer& peer, std::string_view text) {
    while (!text.empty()) {
      const std::size_t sent = peer.send(text);
      text.remove_prefix(sent);
      settle();
      if (sent == 0) break;
    }
    return peer.take();
  }
  /// The statuses that one connection gets for this.
  std::string statuses(std::string_view text) {
    return statuses_of(read_http_answers(talk(connect(), text)));
  }

  std::size_t blocks() {
    loop_->blocks().collect();
    return loop_->blocks().blocks_in_use();
  }
  /// Nothing of any connection is left.
  void expect_at_rest() {
    EXPECT_EQ(blocks(), blocks_at_rest_);
    EXPECT_EQ(loop_->timers().armed(), 0U);
    EXPECT_EQ(host_.open_descriptors(), 1U) << "more than the listener is open";
    EXPECT_EQ(server_->counters().connections_open.value(), 0U);
  }

 protected:
  struct Host : MemoryHost {
    using MemoryHost::MemoryHost;
    void log(std::string_view line) noexcept override {
      const TestHeap::Spared spared;
      MemoryHost::log(line);
    }
  };
  Host host_;
  std::unique_ptr<Loop> loop_ = Loop::make(host_, {}).value();
  os::Address address_ = os::Address::loopback(80);
  http::Router routes_;
  std::optional<http::ServerCore> server_;

 private:
  static void begin(Runnable& self) {
    auto& bench = static_cast<HttpBench&>(self);
    bench.root_.emplace(with_scope(OnFailure::supervise, &http::serve_on, std::ref(*bench.server_),
                                   bench.address_));
    bench.root_->start(Context{bench.loop_.get(), &bench.cancel_}, bench);
  }
  static std::coroutine_handle<> ended(Completion& self, std::coroutine_handle<>) {
    static_cast<HttpBench&>(self).stopped_ = true;
    return std::noop_coroutine();
  }

  CancelSource cancel_;
  std::optional<Task<Result<>>> root_;
  std::vector<std::unique_ptr<MemoryPeer>> peers_;
  std::size_t blocks_at_rest_ = 0;
  bool stopped_ = false;
};

class HttpTest : public testing::Test, protected HttpBench {
 protected:
  explicit HttpTest(const MemoryHostOptions& options = {}) : HttpBench(options) {}
  void TearDown() override { shut_down(); }
};

}  // namespace weir
