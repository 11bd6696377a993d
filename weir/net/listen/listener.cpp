#include "weir/net/listen/listener.hpp"

#include <optional>
#include <utility>

#include "weir/loop/detail/listen/bind_retry.hpp"
#include "weir/net/detail/socket_block.hpp"
#include "weir/net/listen/detail/listener_state.hpp"
#include "weir/task/sleep.hpp"

namespace weir::tcp {

Listener::Listener(BlockPtr<State> state) noexcept : state_(std::move(state)) {}
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;

Accept Listener::accept() noexcept {
  return Accept(*state_);
}

os::Address Listener::local_address() const {
  return state_->loop()
      .platform()
      .local_address(state_->socket().descriptor)
      .value_or(os::Address());
}

// Maximum number of consecutive handovers. The loop keeps the next connection and resumes the
// accepting task, so that a flood of handovers does not block other work.
constexpr unsigned handed_over_max = 16;

Accept::Awaiter::Awaiter(Listener::State& state) noexcept
    : loop::AcceptOperation(&resume), CancelNode(accept_kind), state_(state) {}
Accept::Awaiter::~Awaiter() = default;

/// Returns true if it has a stream or an error.
bool Accept::Awaiter::await_ready() {
  while (state_.begin(*this)) {
    if (complete()) return true;
  }
  return false;
}

bool Accept::Awaiter::complete() {
  if (error() && !state_.try_recover(*this)) return error() != Errc::closed || state_.closed();
  const bool ours = !state_.take_handed_off_flag();
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
  if (!join(cancel)) state_.cancel(*this);
}

void Accept::Awaiter::resume(loop::Runnable& runnable) {
  auto& self = static_cast<Awaiter&>(static_cast<loop::AcceptOperation&>(runnable));
  self.state_.on_accept_completed();
  self.handed_over_ = 0;
  if (!self.complete() && !self.await_ready()) {
    if (self.cancel_ != nullptr && self.cancel_->cancelled()) on_cancel(self);
    return;
  }
  self.leave();
  resume_coroutine(self.handle_);
}

void Accept::Awaiter::on_cancel(CancelNode& node) {
  auto& self = static_cast<Awaiter&>(node);
  self.state_.cancel(self);
}

Result<Stream> Accept::Awaiter::await_resume() {
  if (error()) return fail(state_.to_accept_error(error()));
  return Stream(state_.loop(), *stream_);
}

namespace {

Task<Result<Listener>> open_listener(Endpoint endpoint, ListenOptions options, bool through_drain) {
  Loop& loop = *(co_await this_context()).loop;
  loop::BindRetry retry(endpoint.family());
  loop::ListenerRegistry& registry = loop.group().listener_registry();
  auto listener = registry.listen(loop.platform(), endpoint, options, &loop);
  std::optional<Endpoint> holder;
  while (!listener) {
    const auto pause = retry.next_pause(listener.error());
    if (!pause || loop.draining()) break;
    holder = registry.held_by_listeners().find_conflict(endpoint);
    if (holder) break;
    WEIR_CO_TRY(co_await sleep(*pause));
    listener = registry.listen(loop.platform(), endpoint, options, &loop);
  }
  if (!listener) {
    registry.record_failure("listen on", endpoint, listener.error(), holder);
    co_return fail(listener.error());
  }
  const int descriptor = listener->descriptor.value();
  // Accepted connections inherit this configuration.
  if (auto configured = loop.platform().configure(descriptor, {}); !configured) {
    co_return fail(configured.error());
  }
  const loop::SocketOptions adopting{.role = loop::SocketRole::listener,
                                     .shared = listener->shared != nullptr};
  WEIR_CO_TRY(auto socket, loop.backend().adopt(std::move(listener->descriptor), adopting));
  auto state = make_socket_block<Listener::State>(loop, *socket, *listener, through_drain);
  WEIR_CO_TRY(state->add_extra_listeners(listener->additional));
  co_return Listener(std::move(state));
}

}  // namespace

Task<Result<Listener>> listen(Endpoint endpoint, ListenOptions options) {
  return open_listener(endpoint, options, false);
}

Task<Result<Listener>> listen_through_drain(Endpoint endpoint, ListenOptions options) {
  return open_listener(endpoint, options, true);
}

}  // namespace weir::tcp
