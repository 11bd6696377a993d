#include "weir/net/listener.hpp"

#include <cassert>
#include <utility>

namespace weir::tcp {

/// What a listener shares with its pending accept; it stays where it is when the listener moves.
class Listener::State : Timer, DrainWatcher {
 public:
  State(Loop& loop, Socket& socket) noexcept
      : Timer(&grace_ended), DrainWatcher(&drain_asked), loop_(loop), socket_(socket) {
    if (loop.draining()) {
      drain();
    } else {
      loop.watch_drain(*this);
    }
  }
  ~State() {
    assert(accepting_ == nullptr);
    loop_.backend().close(socket_);
  }

  Loop& loop() noexcept { return loop_; }
  Socket& socket() noexcept { return socket_; }
  bool closed() const noexcept { return closed_; }

  bool begin(AcceptOperation& operation) {
    assert(accepting_ == nullptr);
    if (closed_) {
      operation.finish(Errc::closed);
      return true;
    }
    if (loop_.backend().accept(socket_, operation)) return true;
    accepting_ = &operation;
    return false;
  }
  void ended(bool accepted) noexcept {
    accepting_ = nullptr;
    quiet_ = quiet_ && !accepted;
  }

 private:
  // How long a drained listener must have seen no connection before it closes. A handshake that was
  // under way when new ones were refused completes within a round trip.
  static constexpr Duration grace = std::chrono::milliseconds(50);

  static void drain_asked(DrainWatcher& self) { static_cast<State&>(self).drain(); }
  static void grace_ended(Timer& self) { static_cast<State&>(self).check_quiet(); }

  void drain() noexcept {
    // Where the host cannot refuse, connections are still accepted until none comes for a while.
    static_cast<void>(loop_.host().refuse_new_connections(socket_.descriptor));
    quiet_ = true;
    rounds_left_ = 40;
    start_grace();
  }
  void start_grace() noexcept { loop_.timers().start(*this, after(loop_.now(), grace)); }
  void check_quiet() {
    if (!std::exchange(quiet_, true) && --rounds_left_ > 0) {
      start_grace();
      return;
    }
    closed_ = true;
    if (accepting_ != nullptr) loop_.backend().cancel(*accepting_);
  }

  Loop& loop_;
  Socket& socket_;
  AcceptOperation* accepting_ = nullptr;
  int rounds_left_ = 0;
  bool quiet_ = false;   // nothing was accepted since the grace began
  bool closed_ = false;  // drained
};

Listener::Listener(BlockPtr<State> state) noexcept : state_(std::move(state)) {}
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;

Accept Listener::accept() noexcept {
  return Accept(*state_);
}

os::Address Listener::local_address() const {
  return state_->loop().host().local_address(state_->socket().descriptor).value_or(os::Address());
}

Accept::Awaiter::Awaiter(Listener::State& state) noexcept
    : AcceptOperation(&resume), CancelNode(&ask), state_(state) {}
Accept::Awaiter::~Awaiter() = default;

bool Accept::Awaiter::await_ready() {
  if (!state_.begin(*this)) return false;
  state_.ended(!error());
  return true;
}

bool Accept::Awaiter::suspend(std::coroutine_handle<> handle, CancelSource* cancel) {
  handle_ = handle;
  if (cancel == nullptr) return true;
  if (cancel->cancelled()) {
    state_.loop().backend().cancel(*this);
  } else {
    cancel->add(*this);
  }
  return true;
}

void Accept::Awaiter::resume(Runnable& runnable) {
  auto& self = static_cast<Awaiter&>(static_cast<AcceptOperation&>(runnable));
  static_cast<CancelNode&>(self).unlink();
  self.state_.ended(!self.error());
  self.handle_.resume();
}

void Accept::Awaiter::ask(CancelNode& node) {
  auto& self = static_cast<Awaiter&>(node);
  self.state_.loop().backend().cancel(self);
}

Result<Stream> Accept::Awaiter::await_resume() {
  if (error() == Errc::cancelled && state_.closed()) return fail(Errc::closed);
  if (error()) return fail(error());
  Loop& loop = state_.loop();
  // What was accepted from a listener that turns newcomers away may not hear its peer yet.
  if (loop.draining()) static_cast<void>(loop.host().configure(accepted.value(), {}));
  auto socket = loop.backend().adopt(std::move(accepted), {.role = SocketRole::stream});
  if (!socket) return fail(socket.error());
  return Stream(loop, **socket);
}

Task<Result<Listener>> listen(Endpoint endpoint, ListenOptions options) {
  Loop& loop = *(co_await this_context()).loop;
  auto descriptor = loop.group().listen(loop.host(), endpoint, options);
  if (!descriptor) co_return fail(descriptor.error());
  // Accepted connections inherit it.
  if (auto configured = loop.host().configure(descriptor->value(), {}); !configured) {
    co_return fail(configured.error());
  }
  auto socket = loop.backend().adopt(std::move(*descriptor), {.role = SocketRole::listener});
  if (!socket) co_return fail(socket.error());
  co_return Listener(make_block<Listener::State>(loop, **socket));
}

}  // namespace weir::tcp
