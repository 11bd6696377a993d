#include "weir/tls/stream.hpp"

#include "weir/tls/detail/session.hpp"

namespace weir::tls {

Stream::Stream(BlockPtr<detail::Session> session) noexcept
    : weir::Stream(session->inner().loop()), session_(std::move(session)) {}

Stream::Stream(Stream&& other) noexcept
    : weir::Stream(other), session_(std::move(other.session_)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this == &other) return *this;
  close();
  set_loop(other.loop());
  session_ = std::move(other.session_);
  return *this;
}

Stream::~Stream() {
  Stream::close();
}

Result<> Stream::finish_writing() {
  if (session_ == nullptr) return fail(Errc::closed);
  return session_->finish_writing();
}

void Stream::close() {
  if (session_ != nullptr) detail::Session::close(std::move(session_));
}

Result<> Stream::set_close_mode(CloseMode mode) {
  if (session_ == nullptr) return fail(Errc::closed);
  return session_->set_close_mode(mode);
}

os::Address Stream::peer_address() const {
  return session_ == nullptr ? os::Address() : session_->inner().peer_address();
}

os::Address Stream::local_address() const {
  return session_ == nullptr ? os::Address() : session_->inner().local_address();
}

const TlsInfo* Stream::tls() const noexcept {
  return session_ == nullptr ? nullptr : &session_->info();
}

std::size_t Stream::unacked_bytes() const {
  return session_ == nullptr ? 0 : session_->inner().unacked_bytes();
}

void Stream::observe_hangup(loop::HangupObserver* observer) {
  if (session_ == nullptr) return;
  if (observer != nullptr && observer->observes_input() && session_->has_data()) {
    session_->inner().observe_hangup(nullptr);
    return observer->on_hangup();
  }
  session_->inner().observe_hangup(observer);
}

bool Stream::start_receive(loop::ReceiveOperation& operation) {
  if (session_ != nullptr) return session_->receive(operation);
  operation.finish(Errc::closed);
  return true;
}

bool Stream::start_send(loop::SendOperation& operation) {
  if (session_ != nullptr) return session_->send(operation);
  operation.finish(Errc::closed);
  return true;
}

void Stream::cancel_operation(loop::Operation& operation) {
  if (session_ != nullptr) session_->cancel(operation);
}

std::size_t Stream::sent_of(const loop::SendOperation& operation) const noexcept {
  return session_ == nullptr ? operation.sent : session_->sent_of(operation);
}

}  // namespace weir::tls
