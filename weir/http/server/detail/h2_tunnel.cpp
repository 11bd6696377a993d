// WebSockets over HTTP/2 (RFC 8441): the stream of a request carries their bytes.

#include <cassert>
#include <limits>
#include <new>
#include <tuple>
#include <utility>

#include "weir/http/detail/h2/head_writer.hpp"
#include "weir/http/server/detail/h2_connection.hpp"
#include "weir/http/server/detail/served_websocket.hpp"

namespace weir::http {

H2Tunnel::H2Tunnel(H2Exchange& exchange) noexcept : Stream(exchange.loop()), exchange_(&exchange) {}

H2Tunnel::H2Tunnel(H2Tunnel&& other) noexcept
    : Stream(other), exchange_(std::exchange(other.exchange_, nullptr)) {}

Stream* H2Tunnel::move_to(void* room) noexcept {
  return new (room) H2Tunnel(std::move(*this));
}

Result<> H2Tunnel::finish_writing() {
  return exchange_ == nullptr ? fail(Errc::closed) : exchange_->finish_writing();
}

/// The exchange resets a stream that has not ended.
void H2Tunnel::close() {
  if (exchange_ == nullptr) return;
  std::exchange(exchange_, nullptr)->observe_hangup(nullptr);
}

os::Address H2Tunnel::peer_address() const {
  return exchange_ == nullptr ? os::Address() : exchange_->peer_address();
}
os::Address H2Tunnel::local_address() const {
  return {};
}
const TlsInfo* H2Tunnel::tls() const noexcept {
  return exchange_ == nullptr ? nullptr : exchange_->tls();
}
void H2Tunnel::observe_hangup(loop::HangupObserver* observer) {
  if (exchange_ != nullptr) exchange_->observe_hangup(observer);
}

bool H2Tunnel::start_receive(loop::ReceiveOperation& operation) {
  if (exchange_ != nullptr) return exchange_->start_receive(operation);
  operation.finish(make_error_code(Errc::closed));
  return true;
}
bool H2Tunnel::start_send(loop::SendOperation& operation) {
  if (exchange_ != nullptr) return exchange_->start_send(operation);
  operation.finish(make_error_code(Errc::closed));
  return true;
}
void H2Tunnel::cancel_operation(loop::Operation& operation) {
  if (exchange_ != nullptr) exchange_->cancel_operation(operation);
}

// The exchange.

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
  call_.report_end(true);
  call_.leave_route();  // the socket keeps it from now on
  tunnel_.emplace();
  socket->open({}, AnyStream(H2Tunnel(*this)), {});
  co_await http::serve_websocket(std::move(socket));
  tunnel_.reset();
  // It is a reset of TCP for the client (RFC 8441 §5).
  if (!closed() && !local_ended()) connection_.reset(*this, H2Error::cancel);
}

/// Returns why nothing more can be received, or no error.
std::error_code H2Exchange::input_error() const noexcept {
  if (body_error_) return body_error_;
  return remote_ended() ? make_error_code(Errc::end_of_stream) : std::error_code();
}

bool H2Exchange::start_receive(loop::ReceiveOperation& operation) {
  assert(tunnel_->receive == nullptr && operation.target.empty());
  if (arrived_.empty()) {
    if (const std::error_code error = input_error()) {
      operation.finish(error);
      return true;
    }
    operation.pending();
    tunnel_->receive = &operation;
    return false;
  }
  if (!closed()) {
    connection_.session().consume_and_grow(*this, arrived_.size());
    connection_.wake_writer();
  }
  operation.buffer = std::exchange(arrived_, {});
  operation.finish();
  return true;
}

/// Gives what has arrived to the receive that waits.
void H2Exchange::give_input() {
  if (loop::HangupObserver* const observer = tunnel_->observer) {
    if (gone_ || (observer->observes_input() && tunnel_->receive == nullptr)) {
      tunnel_->observer = nullptr;
      observer->on_hangup();
    }
  }
  if (tunnel_->receive == nullptr || (arrived_.empty() && !input_error())) return;
  loop::ReceiveOperation& operation = *std::exchange(tunnel_->receive, nullptr);
  operation.finish();
  [[maybe_unused]] const bool finished = start_receive(operation);
  assert(finished);
  loop().ready(operation);
}

bool H2Exchange::start_send(loop::SendOperation& operation) {
  assert(tunnel_->send == nullptr);
  operation.sent = 0;
  if (operation.partial || gone_ || closed() || local_ended()) {
    operation.finish(operation.partial ? std::error_code() : make_error_code(Errc::closed));
    return true;
  }
  tunnel_->pieces = operation.pieces;
  tunnel_->send = &operation;
  if (send_pieces()) {
    tunnel_->send = nullptr;
    operation.finish();
    return true;
  }
  operation.pending();
  return false;
}

/// Sends the rest of the pieces as far as the windows allow. Returns true if all are sent.
bool H2Exchange::send_pieces() {
  while (!tunnel_->pieces.empty()) {
    pending_ = tunnel_->pieces.front();
    tunnel_->pieces = tunnel_->pieces.subspan(1);
    if (!connection_.sends_in_place(pending_.size())) {
      const std::size_t sent = connection_.session().send_data(*this, pending_, false);
      tunnel_->send->sent += sent;
      pending_ = pending_.subspan(sent);
    }
    connection_.wake_writer();
    if (pending_.empty()) continue;
    pending_ends_ = false;
    output_.reset();
    connection_.session().want_send(*this);
    connection_.watch_progress();
    return false;
  }
  return true;
}

void H2Exchange::end_send(std::error_code error) {
  if (tunnel_->send == nullptr) return;
  loop::SendOperation& operation = *std::exchange(tunnel_->send, nullptr);
  operation.finish(error);
  loop().ready(operation);
}

void H2Exchange::cancel_operation(loop::Operation& operation) {
  if (tunnel_->receive == &operation) {
    tunnel_->receive = nullptr;
    operation.finish(make_error_code(Errc::cancelled));
    loop().ready(operation);
  } else if (tunnel_->send == &operation) {
    if (!pending_.empty() && !closed()) connection_.session().stop_sending(*this);
    pending_ = {};
    end_send(make_error_code(Errc::cancelled));
  }
}

void H2Exchange::observe_hangup(loop::HangupObserver* observer) noexcept {
  if (!tunnel_) return;
  tunnel_->observer = observer;
  if (observer == nullptr) return;
  const bool has_input = !arrived_.empty() || input_error();
  if (!gone_ && !(observer->observes_input() && has_input && tunnel_->receive == nullptr)) return;
  tunnel_->observer = nullptr;
  observer->on_hangup();
}

Result<> H2Exchange::finish_writing() {
  if (gone_ || closed() || local_ended()) return fail(Errc::closed);
  send_end(connection_.session(), connection_.encoder(), *this, {});
  connection_.wake_writer();
  return {};
}

}  // namespace weir::http
