#include "weir/net/listen/listener.hpp"

#include <utility>

#include "weir/loop/detail/listen/bind_retry.hpp"
#include "weir/net/listener_state.hpp"
#include "weir/net/detail/socket_block.hpp"
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
  if (error() && !state_.goes_on(*this)) return error() != Errc::closed || state_.closed();
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
    state_.cancel(*this);
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
  go_on_with(self.handle_);
}

void Accept::Awaiter::ask(CancelNode& node) {
  auto& self = static_cast<Awaiter&>(node);
  self.state_.cancel(self);
}

Result<Stream> Accept::Awaiter::await_resume() {
  if (error()) return fail(state_.explain(error()));
  return Stream(state_.loop(), *stream_);
}

Task<Result<Listener>> listen(Endpoint endpoint, ListenOptions options) {
  Loop& loop = *(co_await this_context()).loop;
  AddressPatience patience(endpoint.family());
  auto listener = loop.group().listen(loop.host(), endpoint, options);
  while (!listener) {
    const auto pause = patience.after(listener.error());
    if (!pause || loop.draining()) break;
    const auto slept = co_await sleep(*pause);
    if (!slept) co_return fail(slept.error());
    listener = loop.group().listen(loop.host(), endpoint, options);
  }
  if (!listener) {
    loop.group().note_failure("listen on", endpoint, listener.error());
    co_return fail(listener.error());
  }
  const int descriptor = listener->descriptor.value();
  // Accepted connections inherit it.
  if (auto configured = loop.host().configure(descriptor, {}); !configured) {
    co_return fail(configured.error());
  }
  const SocketOptions adopting{.role = SocketRole::listener, .shared = listener->shared != nullptr};
  auto socket = loop.backend().adopt(std::move(listener->descriptor), adopting);
  if (!socket) co_return fail(socket.error());
  auto state = make_socket_block<Listener::State>(loop, **socket, *listener);
  if (auto added = state->add_side_doors(listener->further); !added) co_return fail(added.error());
  co_return Listener(std::move(state));
}

}  // namespace weir::tcp
