#include "weir/net/listener.hpp"

#include <cassert>
#include <cerrno>
#include <memory>
#include <utility>

namespace weir::tcp {

/// What a listener shares with its pending accept; it stays where it is when the listener moves.
class Listener::State final : Timer, DrainWatcher, Intake::Receiver {
 public:
  State(Loop& loop, Socket& socket, const LoopGroup::Listener& listener)
      : Timer(&grace_ended),
        DrainWatcher(&drain_asked),
        loop_(loop),
        socket_(socket),
        shared_(listener.shared),
        balance_(listener.balance) {
    if (balance_ != nullptr && balance_->intake(loop.core()).open(*this)) {
      intake_ = &balance_->intake(loop.core());
    }
    if (loop.draining()) {
      drain();
    } else {
      loop.watch_drain(*this);
    }
  }
  ~State() {
    assert(accepting_ == nullptr);
    if (intake_ != nullptr) intake_->close();
    loop_.backend().close(socket_);
  }

  Loop& loop() noexcept { return loop_; }
  Socket& socket() noexcept { return socket_; }

  /// Whether it finished at once.
  bool begin(AcceptOperation& operation) {
    assert(accepting_ == nullptr);
    quiet_ = false;
    if (take_over(operation)) return true;
    if (closed_) {
      operation.finish(Errc::closed);
      return true;
    }
    if (loop_.backend().accept(socket_, operation)) return true;
    accepting_ = &operation;
    return false;
  }
  void ended() noexcept { accepting_ = nullptr; }

  /// Whether it has finished with a connection that another core has handed over.
  bool take_over(AcceptOperation& operation) {
    if (intake_ == nullptr) return false;
    Descriptor connection = intake_->take();
    if (!connection) return false;
    operation.accepted = std::move(connection);
    operation.finish();
    taken_over_ = true;
    loop_.count_taken_over();
    return true;
  }
  /// Whether what was accepted last came so. Asked once for each.
  bool was_taken_over() noexcept { return std::exchange(taken_over_, false); }
  /// Whether what this core has accepted is another core's now.
  bool hand_over(Descriptor& accepted) {
    if (intake_ == nullptr || draining_) return false;
    if (!balance_->hand_over(loop_.core(), accepted)) return false;
    loop_.count_handed_over();
    return true;
  }

  /// The stream of what was accepted, or nullptr: then it is closed, for want of memory mostly.
  Socket* adopt(Descriptor accepted) {
    // What was accepted from a listener that turns newcomers away may not hear its peer yet.
    if (draining_) static_cast<void>(loop_.host().configure(accepted.value(), {}));
    auto socket = loop_.backend().adopt(std::move(accepted), {.role = SocketRole::stream});
    if (socket) return *socket;
    loop_.count_dropped_connection();
    return nullptr;
  }

  /// What an accept that failed so is told.
  std::error_code explain(std::error_code error) const noexcept {
    // The kernel fails the accepts of a Unix listener that takes no newcomers and has none left,
    // also where another loop that shares it has begun to drain first.
    const bool refusing = draining_ || (shared_ != nullptr && error == system_error(EINVAL));
    const bool drained = closed_ || (refusing && error != Errc::cancelled);
    return drained ? make_error_code(Errc::closed) : error;
  }

 private:
  // How long somebody must have waited for a connection in vain before a drained listener closes. A
  // handshake that was under way when new ones were refused completes within a round trip.
  static constexpr Duration grace = std::chrono::milliseconds(50);
  // Where newcomers cannot be refused and keep coming, it closes on some of them after 2 s.
  static constexpr int rounds_max = 40;

  void connections_came() override {
    if (accepting_ != nullptr) loop_.backend().cancel(*accepting_);
  }
  static void drain_asked(DrainWatcher& self) { static_cast<State&>(self).drain(); }
  static void grace_ended(Timer& self) { static_cast<State&>(self).check_quiet(); }

  void drain() noexcept {
    // Where the host cannot refuse, connections are still accepted until none comes for a while.
    static_cast<void>(loop_.host().refuse_new_connections(socket_.descriptor));
    draining_ = true;
    if (intake_ != nullptr) intake_->shut();
    start_grace();
  }
  void start_grace() noexcept {
    quiet_ = accepting_ != nullptr;
    loop_.timers().start(*this, after(loop_.now(), grace));
  }
  void check_quiet() {
    // While nobody accepts, what waits in the queue is not lost but kept. Nor is what other cores
    // have handed over: whoever accepts has been told.
    const bool has_some = intake_ != nullptr && !intake_->empty();
    if (accepting_ == nullptr || has_some || (!quiet_ && --rounds_left_ > 0)) {
      start_grace();
      return;
    }
    closed_ = true;
    loop_.backend().cancel(*accepting_);
  }

  Loop& loop_;
  Socket& socket_;
  std::shared_ptr<SharedListener> shared_;
  Balance* balance_;
  Intake* intake_ = nullptr;  // what other cores give this one
  AcceptOperation* accepting_ = nullptr;
  int rounds_left_ = rounds_max;
  bool quiet_ = false;  // one and the same accept has been pending since the grace began
  bool draining_ = false;
  bool closed_ = false;      // drained
  bool taken_over_ = false;  // see was_taken_over()
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

// A flood that is handed over shall not keep a loop from everything else: of so many in a row the
// last is kept, and the task that accepts goes on.
constexpr unsigned handed_over_max = 16;

Accept::Awaiter::Awaiter(Listener::State& state) noexcept
    : AcceptOperation(&resume), CancelNode(&ask), state_(state) {}
Accept::Awaiter::~Awaiter() = default;

/// Whether it has something to give: a stream, or an error.
bool Accept::Awaiter::await_ready() {
  while (state_.begin(*this)) {
    if (settled()) return true;
  }
  return false;
}

bool Accept::Awaiter::settled() {
  // The wait was cut short for what another core has handed over, or it is over.
  if (error() && (error() != Errc::cancelled || !state_.take_over(*this))) return true;
  const bool ours = !state_.was_taken_over();
  if (ours && handed_over_ < handed_over_max && state_.hand_over(accepted)) {
    ++handed_over_;
    return false;
  }
  stream_ = state_.adopt(std::move(accepted));
  return stream_ != nullptr;
}

void Accept::Awaiter::suspend(std::coroutine_handle<> handle, CancelSource* cancel) {
  handle_ = handle;
  cancel_ = cancel;
  if (cancel == nullptr) return;
  if (cancel->cancelled()) {
    state_.loop().backend().cancel(*this);
  } else {
    cancel->add(*this);
  }
}

void Accept::Awaiter::resume(Runnable& runnable) {
  auto& self = static_cast<Awaiter&>(static_cast<AcceptOperation&>(runnable));
  self.state_.ended();
  self.handed_over_ = 0;
  if (!self.settled() && !self.await_ready()) {
    if (self.cancel_ != nullptr && self.cancel_->cancelled()) ask(self);
    return;
  }
  static_cast<CancelNode&>(self).unlink();
  self.handle_.resume();
}

void Accept::Awaiter::ask(CancelNode& node) {
  auto& self = static_cast<Awaiter&>(node);
  self.state_.loop().backend().cancel(self);
}

Result<Stream> Accept::Awaiter::await_resume() {
  if (error()) return fail(state_.explain(error()));
  return Stream(state_.loop(), *stream_);
}

Task<Result<Listener>> listen(Endpoint endpoint, ListenOptions options) {
  Loop& loop = *(co_await this_context()).loop;
  auto listener = loop.group().listen(loop.host(), endpoint, options);
  if (!listener) co_return fail(listener.error());
  const int descriptor = listener->descriptor.value();
  // Accepted connections inherit it.
  if (auto configured = loop.host().configure(descriptor, {}); !configured) {
    co_return fail(configured.error());
  }
  auto socket =
      loop.backend().adopt(std::move(listener->descriptor), {.role = SocketRole::listener});
  if (!socket) co_return fail(socket.error());
  co_return Listener(make_block<Listener::State>(loop, **socket, *listener));
}

}  // namespace weir::tcp
