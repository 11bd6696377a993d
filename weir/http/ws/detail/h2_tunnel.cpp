#include "weir/http/ws/detail/h2_tunnel.hpp"

#include <cassert>
#include <new>
#include <utility>

#include "weir/loop/loop.hpp"

namespace weir::http {

bool H2TunnelCarrier::start_receive(loop::ReceiveOperation& operation) {
  assert(receive_ == nullptr && operation.target.empty());
  if (has_input()) {
    try {
      operation.buffer = take_input();
    } catch (...) {
      receive_ = &operation;
      throw;
    }
    operation.finish();
    return true;
  }
  if (const std::error_code error = input_error()) {
    operation.finish(error);
    return true;
  }
  operation.pending();
  receive_ = &operation;
  return false;
}

/// Gives what has arrived to the receive that waits.
void H2TunnelCarrier::give_input() {
  if (loop::HangupObserver* const observer = observer_) {
    if (is_gone() || (observer->observes_input() && receive_ == nullptr)) {
      observer_ = nullptr;
      observer->on_hangup();
    }
  }
  if (receive_ == nullptr || (!has_input() && !input_error())) return;
  loop::ReceiveOperation& operation = *std::exchange(receive_, nullptr);
  operation.finish();
  [[maybe_unused]] const bool finished = start_receive(operation);
  assert(finished);
  loop().ready(operation);
}

bool H2TunnelCarrier::start_send(loop::SendOperation& operation) {
  assert(send_ == nullptr);
  operation.sent = 0;
  if (operation.partial || !may_send()) {
    operation.finish(operation.partial ? std::error_code() : make_error_code(Errc::closed));
    return true;
  }
  pieces_ = operation.pieces;
  send_ = &operation;
  if (send_pieces()) {
    send_ = nullptr;
    operation.finish();
    return true;
  }
  operation.pending();
  return false;
}

/// Sends the rest of the pieces as far as the windows allow. Returns true if all are sent.
bool H2TunnelCarrier::send_pieces() {
  while (!pieces_.empty()) {
    const Bytes piece = pieces_.front();
    pieces_ = pieces_.subspan(1);
    if (!send_piece_now(piece)) return false;
  }
  return true;
}

void H2TunnelCarrier::on_piece_sent() {
  if (send_pieces()) end_send({});
}

void H2TunnelCarrier::end_send(std::error_code error) {
  if (send_ == nullptr) return;
  loop::SendOperation& operation = *std::exchange(send_, nullptr);
  operation.finish(error);
  loop().ready(operation);
}

void H2TunnelCarrier::cancel_operation(loop::Operation& operation) {
  if (receive_ == &operation) {
    receive_ = nullptr;
    operation.finish(make_error_code(Errc::cancelled));
    loop().ready(operation);
  } else if (send_ == &operation) {
    drop_piece();
    end_send(make_error_code(Errc::cancelled));
  }
}

void H2TunnelCarrier::observe_hangup(loop::HangupObserver* observer) noexcept {
  observer_ = observer;
  if (observer == nullptr) return;
  const bool would_not_wait = has_input() || input_error();
  if (!is_gone() && !(observer->observes_input() && would_not_wait && receive_ == nullptr)) return;
  observer_ = nullptr;
  observer->on_hangup();
}

H2Tunnel::H2Tunnel(H2TunnelCarrier& carrier) noexcept
    : Stream(carrier.loop()), carrier_(&carrier) {}

H2Tunnel::H2Tunnel(H2Tunnel&& other) noexcept
    : Stream(other), carrier_(std::exchange(other.carrier_, nullptr)) {}

Stream* H2Tunnel::move_to(void* room) noexcept {
  return new (room) H2Tunnel(std::move(*this));
}

Result<> H2Tunnel::finish_writing() {
  return carrier_ == nullptr ? fail(Errc::closed) : carrier_->finish_writing();
}

void H2Tunnel::close() {
  if (carrier_ != nullptr) std::exchange(carrier_, nullptr)->close_tunnel();
}

Result<> H2Tunnel::set_close_mode(CloseMode) {
  if (carrier_ == nullptr) return fail(Errc::closed);
  return {};
}

os::Address H2Tunnel::peer_address() const {
  return carrier_ == nullptr ? os::Address() : carrier_->peer_address();
}
os::Address H2Tunnel::local_address() const {
  return {};
}
const TlsInfo* H2Tunnel::tls() const noexcept {
  return carrier_ == nullptr ? nullptr : carrier_->tls();
}
void H2Tunnel::observe_hangup(loop::HangupObserver* observer) {
  if (carrier_ != nullptr) carrier_->observe_hangup(observer);
}

bool H2Tunnel::start_receive(loop::ReceiveOperation& operation) {
  if (carrier_ != nullptr) return carrier_->start_receive(operation);
  operation.finish(make_error_code(Errc::closed));
  return true;
}
bool H2Tunnel::start_send(loop::SendOperation& operation) {
  if (carrier_ != nullptr) return carrier_->start_send(operation);
  operation.finish(make_error_code(Errc::closed));
  return true;
}
void H2Tunnel::cancel_operation(loop::Operation& operation) {
  if (carrier_ != nullptr) carrier_->cancel_operation(operation);
}

}  // namespace weir::http
