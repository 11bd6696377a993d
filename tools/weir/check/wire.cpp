#include "tools/weir/check/wire.hpp"

#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/timeout.hpp"
#include "weir/tls/client.hpp"

namespace weir::check {

Task<bool> Wire::connect(tls::Connector* tls) {
  auto stream = co_await timeout(target_.timeout, tcp::connect(target_.endpoint));
  if (!stream) {
    set_trouble("no connection: " + stream.error().message());
    co_return false;
  }
  AnyStream plain(std::move(*stream));
  if (tls == nullptr) {
    stream_.emplace(std::move(plain));
    co_return true;
  }
  auto secured = co_await tls->connect(std::move(plain), target_.host);
  if (secured) {
    stream_.emplace(std::move(*secured));
  } else {
    set_trouble("no TLS connection: " + secured.error().text());
  }
  co_return stream_.has_value();
}

void Wire::set_trouble(std::string trouble) {
  trouble_ = std::move(trouble);
  closed_ = true;
}

Task<bool> Wire::send(std::string_view bytes, Duration wait_timeout) {
  if (closed_) co_return false;
  const auto written = co_await timeout(wait_timeout, stream().write(bytes));
  co_return written.has_value();
}

Task<> Wire::transfer(std::string_view bytes, Duration wait_timeout) {
  if (closed_) co_return;
  const auto both = co_await all(write(bytes), receive_then_stop_sending(wait_timeout));
  static_cast<void>(both);
}

Task<> Wire::write(std::string_view bytes) {
  const auto written = co_await stream().write(bytes);
  // A server that rejects early may close before all is sent. Its answer decides the verdict.
  static_cast<void>(written);
}

Task<> Wire::receive_then_stop_sending(Duration wait_timeout) {
  co_await receive(wait_timeout);
  stream().cancel_write();
}

Task<> Wire::receive(Duration wait_timeout) {
  const Context context = co_await this_context();
  const Instant end = after(context.loop->platform().now(), wait_timeout);
  while (!closed_ && !context.cancelled() && !is_done()) {
    const Duration left = end - context.loop->platform().now();
    if (left <= Duration::zero()) break;
    auto input = co_await timeout(left, stream().read());
    if (input) {
      on_input(std::move(*input));
    } else if (input.error() != Errc::timed_out && input.error() != Errc::cancelled) {
      closed_ = true;
      on_end(input.error());
    }
  }
}

void Wire::close() {
  closed_ = true;
  stream_.reset();
}

}  // namespace weir::check
