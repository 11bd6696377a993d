#include "weir/net/udp.hpp"

#include <cassert>
#include <utility>

#include "weir/loop/detail/listen/bind_retry.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/detail/socket_block.hpp"
#include "weir/task/sleep.hpp"

namespace weir::udp {

/// What a socket shares with its pending operations; it stays where it is when the socket moves.
class Socket::State : DrainWatcher {
 public:
  State(Loop& loop, weir::Socket& socket, const Options& options) noexcept
      : DrainWatcher(&drain_asked),
        loop_(loop),
        socket_(socket),
        bytes_max_(options.joined ? joined_bytes_max : options.bytes_max),
        joined_(options.joined) {
    if (!options.ends_with_drain) return;
    if (loop.draining()) {
      ending_ = true;
    } else {
      loop.watch_drain(*this);
    }
  }
  ~State() {
    assert(receiving_ == nullptr && sending_ == nullptr);
    loop_.backend().close(socket_);
  }

  Loop& loop() const noexcept { return loop_; }
  int descriptor() const noexcept { return socket_.descriptor; }
  std::size_t sent() const noexcept { return sent_; }

  /// Whether it finished at once.
  bool start(ReceiveDatagramsOperation& operation) {
    assert(receiving_ == nullptr);
    operation.bytes_max = bytes_max_;
    operation.joined = joined_;
    if (loop_.backend().receive_datagrams(socket_, operation)) return true;
    if (ending_) loop_.backend().cancel(operation);
    return false;
  }
  bool start(SendDatagramsOperation& operation) {
    assert(sending_ == nullptr);
    return loop_.backend().send_datagrams(socket_, operation);
  }

  /// For what has finished at once: whether others are to have a turn first.
  bool too_many_in_a_row(const ReceiveDatagramsOperation& operation) noexcept {
    return too_many_in_a_row(operation.count);
  }
  bool too_many_in_a_row(const SendDatagramsOperation& operation) noexcept {
    return too_many_in_a_row(operation.sent);
  }

  void suspended(ReceiveDatagramsOperation& operation) noexcept { receiving_ = &operation; }
  void suspended(SendDatagramsOperation& operation) noexcept { sending_ = &operation; }
  void resumed(const ReceiveDatagramsOperation&) noexcept { receiving_ = nullptr; }
  void resumed(const SendDatagramsOperation&) noexcept { sending_ = nullptr; }
  bool waits(const ReceiveDatagramsOperation& operation) const noexcept {
    return receiving_ == &operation;
  }
  bool waits(const SendDatagramsOperation& operation) const noexcept {
    return sending_ == &operation;
  }

  void ended(const ReceiveDatagramsOperation&) noexcept {}
  void ended(const SendDatagramsOperation& operation) noexcept { sent_ = operation.sent; }

  /// What a receive that failed so is told.
  std::error_code explain(const ReceiveDatagramsOperation& operation) const noexcept {
    const bool drained = ending_ && operation.error() == Errc::cancelled;
    return drained ? make_error_code(Errc::closed) : operation.error();
  }
  std::error_code explain(const SendDatagramsOperation& operation) const noexcept {
    return operation.error();
  }

 private:
  bool too_many_in_a_row(std::size_t datagrams) noexcept {
    // A call costs about as much as some datagrams in it. A turn stays far below a millisecond.
    constexpr std::size_t a_call = 4;
    constexpr std::size_t in_a_row_max = 1024;
    in_a_row_ += a_call + datagrams;
    if (in_a_row_ < in_a_row_max) return false;
    in_a_row_ = 0;
    return true;
  }
  static void drain_asked(DrainWatcher& self) {
    auto& state = static_cast<State&>(self);
    state.ending_ = true;
    if (state.receiving_ != nullptr) state.loop_.backend().cancel(*state.receiving_);
  }

  Loop& loop_;
  weir::Socket& socket_;
  ReceiveDatagramsOperation* receiving_ = nullptr;
  SendDatagramsOperation* sending_ = nullptr;
  std::size_t sent_ = 0;
  static constexpr std::uint32_t joined_bytes_max = 65'535;
  std::uint32_t bytes_max_;
  bool joined_;
  std::size_t in_a_row_ = 0;
  bool ending_ = false;  // the loop drains: what has not arrived will not be received
};

Socket::Socket(BlockPtr<State> state) noexcept : state_(std::move(state)) {}
Socket::Socket(Socket&&) noexcept = default;
Socket& Socket::operator=(Socket&&) noexcept = default;
Socket::~Socket() = default;

Receive Socket::receive() noexcept {
  return Receive(*state_);
}
ReceiveMany Socket::receive(std::span<Datagram> slots) noexcept {
  assert(!slots.empty());
  return {*state_, slots};
}
Send Socket::send(Bytes bytes, const Endpoint& peer) noexcept {
  return {*state_, Outgoing{bytes, peer}};
}
Send Socket::send(std::string_view text, const Endpoint& peer) noexcept {
  return {*state_, Outgoing{to_bytes(text), peer}};
}
Send Socket::send(Bytes bytes) noexcept {
  return {*state_, Outgoing{bytes, {}}};
}
Send Socket::send(std::string_view text) noexcept {
  return {*state_, Outgoing{to_bytes(text), {}}};
}
Send Socket::send(std::span<const Outgoing> datagrams) noexcept {
  return {*state_, datagrams};
}
std::size_t Socket::sent() const noexcept {
  return state_->sent();
}

Result<> Socket::join(const Endpoint& group, unsigned interface) {
  return state_->loop().host().join(state_->descriptor(), {group, interface});
}
Result<> Socket::leave(const Endpoint& group, unsigned interface) {
  return state_->loop().host().leave(state_->descriptor(), {group, interface});
}

os::Address Socket::local_address() const {
  return state_->loop().host().local_address(state_->descriptor()).value_or(os::Address());
}
os::Address Socket::peer_address() const {
  return state_->loop().host().peer_address(state_->descriptor()).value_or(os::Address());
}

template <class Op>
Awaiting<Op>::Awaiting(Socket::State& state) noexcept
    : Op(&resume), CancelNode(&ask), Timer(&turn_came), state_(state) {}

template <class Op>
Awaiting<Op>::~Awaiting() {
  assert(!state_.waits(*this));
}

template <class Op>
bool Awaiting<Op>::await_ready() {
  if (!state_.start(*this)) return false;
  gives_way_ = state_.too_many_in_a_row(*this);
  if (!gives_way_) state_.ended(*this);
  return !gives_way_;
}

template <class Op>
void Awaiting<Op>::suspend(std::coroutine_handle<> handle, CancelSource* cancel) {
  handle_ = handle;
  state_.suspended(*this);
  Loop& loop = state_.loop();
  if (gives_way_) {
    loop.timers().start(*this, loop.now());
    return;
  }
  if (cancel == nullptr) return;
  if (cancel->cancelled()) {
    loop.backend().cancel(*this);
  } else {
    cancel->add(*this);
  }
}

template <class Op>
void Awaiting<Op>::turn_came(Timer& timer) {
  auto& self = static_cast<Awaiting&>(timer);
  self.state_.loop().ready(self);
}

template <class Op>
void Awaiting<Op>::resume(Runnable& runnable) {
  auto& self = static_cast<Awaiting&>(static_cast<Op&>(runnable));
  self.state_.resumed(self);
  self.state_.ended(self);
  static_cast<CancelNode&>(self).unlink();
  go_on_with(self.handle_);
}

template <class Op>
void Awaiting<Op>::ask(CancelNode& node) {
  auto& self = static_cast<Awaiting&>(node);
  self.state_.loop().backend().cancel(self);
}

template <class Op>
std::error_code Awaiting<Op>::outcome() const noexcept {
  return state_.explain(*this);
}

template class Awaiting<ReceiveDatagramsOperation>;
template class Awaiting<SendDatagramsOperation>;

namespace {

/// A socket of the loop, of what the host has opened.
Result<Socket> adopt(Loop& loop, Result<Descriptor> opened, const Options& options) {
  if (!opened) return fail(opened.error());
  auto socket = loop.backend().adopt(std::move(*opened), {.role = SocketRole::datagrams});
  if (!socket) return fail(socket.error());
  return Socket(make_socket_block<Socket::State>(loop, **socket, options));
}

}  // namespace

Task<Result<Socket>> bind(Endpoint endpoint, Options options) {
  Loop& loop = *(co_await this_context()).loop;
  const DatagramOptions how{.local = endpoint,
                            .reuse_port = options.reuse_port,
                            .multicast_interface = options.multicast_interface,
                            .joined = options.joined};
  AddressPatience patience(endpoint.family());
  auto socket = loop.group().open_datagrams(loop.host(), how);
  while (!socket) {
    const auto pause = patience.after(socket.error());
    if (!pause || loop.draining()) break;
    const auto slept = co_await sleep(*pause);
    if (!slept) co_return fail(slept.error());
    socket = loop.group().open_datagrams(loop.host(), how);
  }
  if (!socket && options.reuse_port) {
    loop.group().note_failure("bind to", endpoint, socket.error());
  }
  co_return adopt(loop, std::move(socket), options);
}

Task<Result<Socket>> connect(Endpoint peer, Options options) {
  Loop& loop = *(co_await this_context()).loop;
  const DatagramOptions how{
      .peer = peer, .multicast_interface = options.multicast_interface, .joined = options.joined};
  co_return adopt(loop, loop.host().open_datagrams(how), options);
}

}  // namespace weir::udp
