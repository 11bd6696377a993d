#include "weir/http/server/detail/open_websockets.hpp"

#include <coroutine>
#include <utility>

#include "weir/task/context.hpp"
#include "weir/task/scope.hpp"

namespace weir::http {

/// Waits until no WebSocket is open; a cancellation does not end it.
class OpenWebSockets::AllClosedAwaiter : public Waiter {
 public:
  explicit AllClosedAwaiter(OpenWebSockets& sockets) noexcept : sockets_(sockets) {}
  bool await_ready() const noexcept { return sockets_.open_.value() == 0; }
  template <HasContext Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    set_coroutine(handle);
    sockets_.waiter_ = this;
  }
  void await_resume() const noexcept {}

 private:
  OpenWebSockets& sockets_;
};

void OpenWebSockets::keep_open(Scope& connections) {
  if (!waits_) connections.spawn(wait());
}

void OpenWebSockets::on_closed() noexcept {
  if (waiter_ == nullptr || open_.value() != 0) return;
  loop_.ready(*std::exchange(waiter_, nullptr));
}

Task<> OpenWebSockets::wait() {
  const weir::detail::Counter& open = open_;
  waits_ = true;
  while (open.value() != 0) co_await AllClosedAwaiter(*this);
  waits_ = false;
}

}  // namespace weir::http
