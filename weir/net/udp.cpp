#include "weir/net/udp.hpp"

#include <cassert>
#include <optional>
#include <utility>

#include "weir/loop/detail/listen/bind_retry.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/detail/socket_block.hpp"
#include "weir/task/sleep.hpp"

namespace weir::udp {

/// The state that a socket shares with its pending operations. It keeps its address when the socket
/// moves.
class Socket::State : DrainObserver {
 public:
  State(Loop& loop, weir::loop::Socket& socket, const Options& options,
        loop::HeldAddresses::Hold hold) noexcept
      : DrainObserver(&on_drain),
        loop_(loop),
        socket_(socket),
        hold_(std::move(hold)),
        bytes_max_(options.gro ? gro_bytes_max : options.bytes_max),
        gro_(options.gro) {
    if (!options.close_on_drain) return;
    if (loop.draining()) {
      draining_ = true;
    } else {
      loop.observe_drain(*this);
    }
  }
  ~State() {
    assert(receiving_ == nullptr && sending_ == nullptr);
    loop_.backend().close(socket_);
  }

  Loop& loop() const noexcept { return loop_; }
  int descriptor() const noexcept { return socket_.descriptor; }
  std::size_t sent() const noexcept { return sent_; }

  /// Starts an operation. Returns true if it finished immediately.
  bool start(loop::ReceiveDatagramsOperation& operation) {
    assert(receiving_ == nullptr);
    operation.bytes_max = bytes_max_;
    operation.gro = gro_;
    if (loop_.backend().receive_datagrams(socket_, operation)) return true;
    if (draining_) loop_.backend().cancel(operation);
    return false;
  }
  bool start(loop::SendDatagramsOperation& operation) {
    assert(sending_ == nullptr);
    return loop_.backend().send_datagrams(socket_, operation);
  }

  /// Returns true if other tasks run before the task of an operation that finished immediately.
  bool should_yield(const loop::ReceiveDatagramsOperation& operation) noexcept {
    return should_yield(operation.count);
  }
  bool should_yield(const loop::SendDatagramsOperation& operation) noexcept {
    return should_yield(operation.sent);
  }

  void suspended(loop::ReceiveDatagramsOperation& operation) noexcept { receiving_ = &operation; }
  void suspended(loop::SendDatagramsOperation& operation) noexcept { sending_ = &operation; }
  void resumed(const loop::ReceiveDatagramsOperation&) noexcept { receiving_ = nullptr; }
  void resumed(const loop::SendDatagramsOperation&) noexcept { sending_ = nullptr; }
  bool is_pending(const loop::ReceiveDatagramsOperation& operation) const noexcept {
    return receiving_ == &operation;
  }
  bool is_pending(const loop::SendDatagramsOperation& operation) const noexcept {
    return sending_ == &operation;
  }

  void on_completed(const loop::ReceiveDatagramsOperation&) noexcept {}
  void on_completed(const loop::SendDatagramsOperation& operation) noexcept {
    sent_ = operation.sent;
  }

  /// Maps the error of a failed operation to the error for the caller.
  std::error_code to_caller_error(const loop::ReceiveDatagramsOperation& operation) const noexcept {
    const bool drained = draining_ && operation.error() == Errc::cancelled;
    return drained ? make_error_code(Errc::closed) : operation.error();
  }
  std::error_code to_caller_error(const loop::SendDatagramsOperation& operation) const noexcept {
    return operation.error();
  }

 private:
  bool should_yield(std::size_t datagrams) noexcept {
    // A call costs about as much as four datagrams. A turn stays far below a millisecond.
    constexpr std::size_t work_per_call = 4;
    constexpr std::size_t work_max = 1024;
    work_since_yield_ += work_per_call + datagrams;
    if (work_since_yield_ < work_max) return false;
    work_since_yield_ = 0;
    return true;
  }
  static void on_drain(DrainObserver& self) {
    auto& state = static_cast<State&>(self);
    state.draining_ = true;
    if (state.receiving_ != nullptr) state.loop_.backend().cancel(*state.receiving_);
  }

  Loop& loop_;
  weir::loop::Socket& socket_;
  loop::HeldAddresses::Hold hold_;
  loop::ReceiveDatagramsOperation* receiving_ = nullptr;
  loop::SendDatagramsOperation* sending_ = nullptr;
  std::size_t sent_ = 0;
  static constexpr std::uint32_t gro_bytes_max = 65'535;
  std::uint32_t bytes_max_;
  bool gro_;
  std::size_t work_since_yield_ = 0;
  bool draining_ = false;  // true if the loop drains; later datagrams are not received
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
  return {*state_, bytes, peer};
}
Send Socket::send(std::string_view text, const Endpoint& peer) noexcept {
  return {*state_, to_bytes(text), peer};
}
Send Socket::send(Bytes bytes) noexcept {
  return {*state_, bytes, Endpoint()};
}
Send Socket::send(std::string_view text) noexcept {
  return {*state_, to_bytes(text), Endpoint()};
}
Send Socket::send(std::span<const Outgoing> datagrams) noexcept {
  return {*state_, datagrams};
}
std::size_t Socket::sent() const noexcept {
  return state_->sent();
}

Result<> Socket::join(const Endpoint& group, unsigned interface) {
  return state_->loop().platform().join_group(state_->descriptor(), {group, interface});
}
Result<> Socket::leave(const Endpoint& group, unsigned interface) {
  return state_->loop().platform().leave_group(state_->descriptor(), {group, interface});
}

os::Address Socket::local_address() const {
  return state_->loop().platform().local_address(state_->descriptor()).value_or(os::Address());
}
os::Address Socket::peer_address() const {
  return state_->loop().platform().peer_address(state_->descriptor()).value_or(os::Address());
}

template <class Op>
DatagramAwaiter<Op>::DatagramAwaiter(Socket::State& state) noexcept
    : Op(&resume), CancelNode(datagram_kind), loop::Timer(&on_next_turn), state_(state) {}

template <class Op>
DatagramAwaiter<Op>::~DatagramAwaiter() {
  assert(!state_.is_pending(*this));
}

template <class Op>
bool DatagramAwaiter<Op>::await_ready() {
  if (!state_.start(*this)) return false;
  yielding_ = state_.should_yield(*this);
  if (!yielding_) state_.on_completed(*this);
  return !yielding_;
}

template <class Op>
void DatagramAwaiter<Op>::suspend(std::coroutine_handle<> handle, CancelSource* cancel) {
  handle_ = handle;
  state_.suspended(*this);
  Loop& loop = state_.loop();
  if (yielding_) {
    loop.timers().start(*this, loop.now());
    return;
  }
  if (!join(cancel)) loop.backend().cancel(*this);
}

template <class Op>
void DatagramAwaiter<Op>::on_next_turn(loop::Timer& timer) {
  auto& self = static_cast<DatagramAwaiter&>(timer);
  self.state_.loop().ready(self);
}

template <class Op>
void DatagramAwaiter<Op>::resume(loop::Runnable& runnable) {
  auto& self = static_cast<DatagramAwaiter&>(static_cast<Op&>(runnable));
  self.state_.resumed(self);
  self.state_.on_completed(self);
  self.leave();
  resume_coroutine(self.handle_);
}

template <class Op>
void DatagramAwaiter<Op>::on_cancel(CancelNode& node) {
  auto& self = static_cast<DatagramAwaiter&>(node);
  self.state_.loop().backend().cancel(self);
}

template <class Op>
std::error_code DatagramAwaiter<Op>::outcome() const noexcept {
  return state_.to_caller_error(*this);
}

template class DatagramAwaiter<loop::ReceiveDatagramsOperation>;
template class DatagramAwaiter<loop::SendDatagramsOperation>;

namespace {

/// Returns a socket of the loop that owns the descriptor opened by the platform.
Result<Socket> adopt(Loop& loop, Result<loop::Descriptor> opened, const Options& options,
                     loop::HeldAddresses::Hold hold) {
  if (!opened) return fail(opened.error());
  WEIR_TRY(auto socket,
           loop.backend().adopt(std::move(*opened), {.role = loop::SocketRole::datagrams}));
  return Socket(make_socket_block<Socket::State>(loop, *socket, options, std::move(hold)));
}

}  // namespace

Task<Result<Socket>> bind(Endpoint endpoint, Options options) {
  Loop& loop = *(co_await this_context()).loop;
  const loop::DatagramOptions how{.local = endpoint,
                                  .reuse_port = options.reuse_port,
                                  .multicast_interface = options.multicast_interface,
                                  .gro = options.gro};
  loop::BindRetry retry(endpoint.family());
  loop::ListenerRegistry& registry = loop.group().listener_registry();
  auto socket = registry.open_datagrams(loop.platform(), how, &loop);
  std::optional<Endpoint> holder;
  while (!socket) {
    const auto pause = retry.next_pause(socket.error());
    if (!pause || loop.draining()) break;
    holder = registry.held_by_datagrams().find_conflict(endpoint);
    if (holder) break;
    WEIR_CO_TRY(co_await sleep(*pause));
    socket = registry.open_datagrams(loop.platform(), how, &loop);
  }
  if (!socket && options.reuse_port) {
    registry.record_failure("bind to", endpoint, socket.error(), holder);
  }
  loop::HeldAddresses::Hold hold;
  if (socket) {
    const auto bound = loop.platform().local_address(socket->value());
    hold = registry.held_by_datagrams().hold(bound.value_or(endpoint), &loop);
  }
  co_return adopt(loop, std::move(socket), options, std::move(hold));
}

Task<Result<Socket>> connect(Endpoint peer, Options options) {
  Loop& loop = *(co_await this_context()).loop;
  const loop::DatagramOptions how{
      .peer = peer, .multicast_interface = options.multicast_interface, .gro = options.gro};
  co_return adopt(loop, loop.platform().open_datagrams(how), options, {});
}

}  // namespace weir::udp
