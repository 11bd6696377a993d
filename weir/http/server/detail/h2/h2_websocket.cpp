// The requests of HTTP/2 that become WebSockets (RFC 8441). h2_exchange.cpp has the others.

#include <limits>
#include <tuple>
#include <utility>

#include "weir/http/detail/h2/head_writer.hpp"
#include "weir/http/server/detail/h2/h2_connection.hpp"
#include "weir/http/server/detail/served_websocket.hpp"

namespace weir::http {

Loop& H2Exchange::loop() const noexcept {
  return connection_.loop();
}

/// Sends the head of the response, and serves the WebSocket until it ends.
Task<> H2Exchange::serve_websocket() {
  if (gone_ || closed()) co_return;
  call_.check_response();
  if (call_.upgrade() == nullptr) {
    if (!send_response()) std::ignore = co_await output_.wait();
    co_return;
  }
  call_.hold();
  auto socket =
      make_block<ServedWebSocket>(connection_.server(), call_.route(), std::move(*call_.upgrade()),
                                  connection_.context().cancel);
  body_max_ = std::numeric_limits<std::uint64_t>::max();
  send_head(false);
  call_.report_sent();
  call_.end();
  call_.leave_route();  // the socket keeps it from now on
  tunnel_ = TunnelState::open;
  socket->open({}, AnyStream(H2Tunnel(*this)), {});
  co_await http::serve_websocket(std::move(socket));
  tunnel_ = TunnelState::ended;
  // It is a reset of TCP for the client (RFC 8441 §5).
  if (!closed() && !local_ended()) connection_.reset(*this, H2Error::cancel);
}

void H2Exchange::close_tunnel() noexcept {
  observe_hangup(nullptr);
}

std::error_code H2Exchange::input_error() const noexcept {
  if (body_error_) return body_error_;
  return remote_ended() ? make_error_code(Errc::end_of_stream) : std::error_code();
}

Buffer H2Exchange::take_input() {
  Buffer input = std::exchange(arrived_, {});  // also if there is no memory for WINDOW_UPDATE
  const std::size_t returned = take_returned(input.size());
  if (!closed()) {
    connection_.session().consume_and_grow(*this, input.size(), returned);
    connection_.wake_writer();
  }
  return input;
}

bool H2Exchange::send_piece_now(Bytes piece) {
  pending_ = piece;
  if (!connection_.sends_in_place(pending_.size())) {
    const std::size_t sent = connection_.session().send_data(*this, pending_, false);
    count_sent(sent);
    pending_ = pending_.subspan(sent);
  }
  connection_.wake_writer();
  if (pending_.empty()) return true;
  pending_ends_ = false;
  output_.reset();
  connection_.session().want_send(*this);
  connection_.watch_progress();
  return false;
}

void H2Exchange::drop_piece() noexcept {
  if (!pending_.empty() && !closed()) connection_.session().stop_sending(*this);
  pending_ = {};
}

Result<> H2Exchange::finish_writing() {
  if (!may_send()) return fail(Errc::closed);
  send_end(connection_.session(), connection_.encoder(), *this, {});
  connection_.wake_writer();
  return {};
}

}  // namespace weir::http
