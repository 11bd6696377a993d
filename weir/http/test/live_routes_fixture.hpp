// A router that is served by several cores of a host in memory, for tests of what happens while its
// routes change. Included by tests only, so it may use weir/testing.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/runtime/test/runtime_fixture.hpp"
#include "weir/http/router/live_routes.hpp"
#include "weir/http/serve.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/testing/http_answers.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir::http {

/// What became of a handler.
struct Fate {
  unsigned destroyed = 0;
  unsigned on_core = 99;  ///< where it was destroyed
  unsigned inside = 0;    ///< requests that are in it
  unsigned stopped = 0;   ///< that were cancelled
};

/// Tells a handler's fate when the handler goes; a part of the handler.
class Doomed {
 public:
  explicit Doomed(Fate& fate) noexcept : fate_(&fate) {}
  Doomed(Doomed&& other) noexcept : fate_(std::exchange(other.fate_, nullptr)) {}
  ~Doomed() {
    if (fate_ == nullptr) return;
    EXPECT_EQ(fate_->inside, 0U) << "it has a request";
    ++fate_->destroyed;
    const Loop* const loop = Loop::current();
    if (loop != nullptr) fate_->on_core = loop->core();
  }
  Fate& fate() const noexcept { return *fate_; }

 private:
  Fate* fate_;
};

/// A handler that answers at once.
class Saying {
 public:
  Saying(Fate& fate, std::string what) : doomed_(fate), what_(std::move(what)) {}
  Response operator()() const { return text(what_ + std::to_string(doomed_.fate().destroyed)); }

 private:
  Doomed doomed_;
  std::string what_;
};

/// What lets handlers that wait go on, core by core.
using Gates = std::array<CoreManualResetEvent, 3>;

/// A handler that waits for its core's gate, and uses itself before and after.
class Waiting {
 public:
  Waiting(Fate& fate, Gates& gates, std::string what)
      : doomed_(fate), gates_(&gates), what_(std::move(what)) {}
  Task<Response> operator()(Request&) const {
    ++doomed_.fate().inside;
    const Context context = co_await this_context();
    const auto passed = co_await (*gates_)[context.loop->core()].wait();
    if (!passed) ++doomed_.fate().stopped;
    --doomed_.fate().inside;
    co_return text(what_);
  }

 private:
  Doomed doomed_;
  Gates* gates_;
  std::string what_;
};

/// The same, while it streams its answer.
class Streaming {
 public:
  Streaming(Fate& fate, Gates& gates, std::string what)
      : doomed_(fate), gates_(&gates), what_(std::move(what)) {}
  Response operator()() const { return stream("text/plain", &write, this); }

 private:
  static Task<Result<>> write(BodySink& sink, const Streaming* self) {
    ++self->doomed_.fate().inside;
    auto sent = co_await sink.write(self->what_);
    const Context context = co_await this_context();
    const auto passed = co_await (*self->gates_)[context.loop->core()].wait();
    if (sent && passed) sent = co_await sink.write(self->what_);
    if (!passed) ++self->doomed_.fate().stopped;
    --self->doomed_.fate().inside;
    if (!passed) co_return fail(passed.error());
    co_return sent;
  }
  Doomed doomed_;
  Gates* gates_;
  std::string what_;
};

/// Three cores with a server each, at port 80 + core: so a test chooses who answers.
class LiveRoutesTest : public CoresTest {
 protected:
  LiveRoutesTest() : CoresTest(3) {}
  void TearDown() override {
    peers_.clear();
    for (unsigned core = 0; core < 3; ++core) stop(core);
    CoresTest::TearDown();
  }

  void start(unsigned core) {
    servers_[core].emplace(loop(core), routes_, Limits());
    roots_[core].emplace(loop(core), serving(core));
    settle();
  }
  void start_all() {
    for (unsigned core = 0; core < 3; ++core) start(core);
  }
  /// Drains it until it is gone.
  void stop(unsigned core) {
    if (!servers_[core]) return;
    loop(core).drain();
    host_.advance(loops(), std::chrono::seconds(2));
    ASSERT_TRUE(roots_[core]->finished());
    roots_[core].reset();
    servers_[core].reset();
  }
  /// Lets everything happen that needs no time.
  void settle() { host_.run_until_idle(loops()); }

  /// Sends bytes to a core on a connection of their own.
  MemoryPeer& send(unsigned core, std::string_view bytes) {
    peers_.push_back(std::make_unique<MemoryPeer>(host_, address_of(core)));
    EXPECT_EQ(peers_.back()->send(bytes), bytes.size());
    settle();
    return *peers_.back();
  }
  static std::string get(std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  }
  MemoryPeer& send_get(unsigned core, std::string_view path) { return send(core, get(path)); }
  /// What has come since the last call, such as "200 hello" or "404"; several between bars. One
  /// that is cut ends with '-'.
  static std::string said(MemoryPeer& peer) {
    std::string all;
    for (const HttpAnswer& each : read_http_answers(peer.take())) {
      if (!all.empty()) all += "|";
      all += std::to_string(each.status);
      if (each.status == 200) all += " " + each.body;
      if (!each.whole) all += "-";
    }
    return all;
  }
  std::string ask(unsigned core, std::string_view path) { return said(send_get(core, path)); }
  /// The answer of all cores, which must be the same.
  std::string ask_all(std::string_view path) {
    const std::string first = ask(0, path);
    EXPECT_EQ(ask(1, path), first);
    EXPECT_EQ(ask(2, path), first);
    return first;
  }

  /// A task on a core that gives something, from the next round on.
  template <class T>
  class Running {
   public:
    Running(Loop& loop, Task<T> task) : root_(loop, keep(std::move(task), value_)) {}
    bool done() const noexcept { return value_.has_value(); }
    const T& value() const { return value_.value(); }

   private:
    static Task<> keep(Task<T> task, std::optional<T>& value) {
      value.emplace(co_await std::move(task));
    }
    std::optional<T> value_;
    Root root_;
  };
  /// Runs it on a core until everything is idle; it must have ended.
  template <class T>
  T run_on(unsigned core, Task<T> task) {
    Running<T> running(loop(core), std::move(task));
    settle();
    EXPECT_TRUE(running.done());
    return running.value();
  }
  template <class T>
  static Task<T> under(CancelSource& cancel, Task<T> task) {
    Context context = co_await this_context();
    context.cancel = &cancel;
    auto running = in_context(context, std::move(task));
    co_return co_await std::move(running);
  }

  std::deque<Fate> fates_;  // of handlers, which may live as long as the router
  Router routes_;
  LiveRoutes live_{routes_};
  Gates gates_;

 private:
  static os::Address address_of(unsigned core) {
    return os::Address::loopback(static_cast<std::uint16_t>(80 + core));
  }
  Task<> serving(unsigned core) {
    static_cast<void>(co_await with_scope(OnFailure::supervise, &serve_on,
                                          std::ref(*servers_[core]), Endpoint(address_of(core))));
  }

  std::array<std::optional<ServerCore>, 3> servers_;
  std::array<std::optional<Root>, 3> roots_;
  std::vector<std::unique_ptr<MemoryPeer>> peers_;
};

}  // namespace weir::http
