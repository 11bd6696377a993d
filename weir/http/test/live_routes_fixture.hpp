// A fixture with a router on several cores of a memory platform, for tests of route changes. It
// may use weir/testing, because only tests include it.
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

#include "weir/http/router/live_routes.hpp"
#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir::http {

/// A record of a handler's destruction and of its requests.
struct HandlerLog {
  unsigned destroyed = 0;
  unsigned on_core = 99;  ///< the core on which it was destroyed
  unsigned inside = 0;    ///< requests in the handler
  unsigned stopped = 0;   ///< requests that were cancelled
};

/// A member of a handler that records the handler's destruction in its log.
class HandlerProbe {
 public:
  explicit HandlerProbe(HandlerLog& log) noexcept : log_(&log) {}
  HandlerProbe(HandlerProbe&& other) noexcept : log_(std::exchange(other.log_, nullptr)) {}
  ~HandlerProbe() {
    if (log_ == nullptr) return;
    EXPECT_EQ(log_->inside, 0U) << "the handler still has a request";
    ++log_->destroyed;
    const Loop* const loop = Loop::current();
    if (loop != nullptr) log_->on_core = loop->core();
  }
  HandlerLog& log() const noexcept { return *log_; }

 private:
  HandlerLog* log_;
};

/// A handler that answers without waiting.
class TextHandler {
 public:
  TextHandler(HandlerLog& log, std::string what) : probe_(log), what_(std::move(what)) {}
  Response operator()() const { return text(what_ + std::to_string(probe_.log().destroyed)); }

 private:
  HandlerProbe probe_;
  std::string what_;
};

/// One event per core that releases the waiting handlers of the core.
using Gates = std::array<ManualResetEvent, 3>;

/// A handler that waits for its core's gate and uses its members before and after.
class WaitingHandler {
 public:
  WaitingHandler(HandlerLog& log, Gates& gates, std::string what)
      : probe_(log), gates_(&gates), what_(std::move(what)) {}
  Task<Response> operator()(Request&) const {
    ++probe_.log().inside;
    const Context context = co_await this_context();
    const auto passed = co_await (*gates_)[context.loop->core()].wait();
    if (!passed) ++probe_.log().stopped;
    --probe_.log().inside;
    co_return text(what_);
  }

 private:
  HandlerProbe probe_;
  Gates* gates_;
  std::string what_;
};

/// A handler that waits for its core's gate while it streams its answer.
class StreamingHandler {
 public:
  StreamingHandler(HandlerLog& log, Gates& gates, std::string what)
      : probe_(log), gates_(&gates), what_(std::move(what)) {}
  Response operator()() const { return stream("text/plain", &write, this); }

 private:
  static Task<Result<>> write(BodySink& sink, const StreamingHandler* self) {
    ++self->probe_.log().inside;
    auto sent = co_await sink.write(self->what_);
    const Context context = co_await this_context();
    const auto passed = co_await (*self->gates_)[context.loop->core()].wait();
    if (sent && passed) sent = co_await sink.write(self->what_);
    if (!passed) ++self->probe_.log().stopped;
    --self->probe_.log().inside;
    if (!passed) co_return fail(passed.error());
    co_return sent;
  }
  HandlerProbe probe_;
  Gates* gates_;
  std::string what_;
};

/// Three cores with one server each on port 80 + core, so that a test chooses the core that
/// answers.
class LiveRoutesTest : public MultiCoreTest {
 protected:
  LiveRoutesTest() : MultiCoreTest(3) {}
  void TearDown() override {
    peers_.clear();
    for (unsigned core = 0; core < 3; ++core) stop(core);
    MultiCoreTest::TearDown();
  }

  void start(unsigned core) {
    servers_[core].emplace(loop(core), routes_, ServeOptions());
    roots_[core].emplace(loop(core), serving(core));
    settle();
  }
  void start_all() {
    for (unsigned core = 0; core < 3; ++core) start(core);
  }
  /// Drains the server of a core until it has ended.
  void stop(unsigned core) {
    if (!servers_[core]) return;
    loop(core).drain();
    platform_.advance(loops(), std::chrono::seconds(2));
    ASSERT_TRUE(roots_[core]->finished());
    roots_[core].reset();
    servers_[core].reset();
  }
  /// Runs the loops until they are idle, without advancing the time.
  void settle() { platform_.run_until_idle(loops()); }

  /// Sends bytes to a core on a new connection.
  MemoryPeer& send(unsigned core, std::string_view bytes) {
    peers_.push_back(std::make_unique<MemoryPeer>(platform_, address_of(core)));
    EXPECT_EQ(peers_.back()->send(bytes), bytes.size());
    settle();
    return *peers_.back();
  }
  static std::string get(std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  }
  MemoryPeer& send_get(unsigned core, std::string_view path) { return send(core, get(path)); }
  /// Returns the responses since the last call, such as "200 hello" or "404", with '|' between
  /// them. An incomplete response ends with '-'.
  static std::string said(MemoryPeer& peer) {
    std::string all;
    for (const sim::HttpResponse& each : sim::parse_http_responses(peer.take())) {
      if (!all.empty()) all += "|";
      all += std::to_string(each.status);
      if (each.status == 200) all += " " + each.body;
      if (!each.complete) all += "-";
    }
    return all;
  }
  std::string ask(unsigned core, std::string_view path) { return said(send_get(core, path)); }
  /// Returns the answer of all cores, which must be equal.
  std::string ask_all(std::string_view path) {
    const std::string first = ask(0, path);
    EXPECT_EQ(ask(1, path), first);
    EXPECT_EQ(ask(2, path), first);
    return first;
  }

  /// A task on a core whose value is available after a later round of the loop.
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
  /// Runs a task on a core until all loops are idle and expects that it has ended.
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

  std::deque<HandlerLog> logs_;  // logs of handlers, which may live as long as the router
  Router routes_;
  LiveRoutes live_{routes_};
  Gates gates_;

 private:
  static os::Address address_of(unsigned core) {
    return os::Address::loopback(static_cast<std::uint16_t>(80 + core));
  }
  Task<> serving(unsigned core) {
    std::ignore = co_await with_scope(OnFailure::isolate, &listen_and_serve,
                                      std::ref(*servers_[core]), Endpoint(address_of(core)));
  }

  std::array<std::optional<ServerState>, 3> servers_;
  std::array<std::optional<Root>, 3> roots_;
  std::vector<std::unique_ptr<MemoryPeer>> peers_;
};

}  // namespace weir::http
