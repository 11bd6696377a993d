// A raw client on a host of a World.
#include "weir/sim/peer.hpp"

#include <cerrno>

#include "weir/base/result.hpp"

namespace weir::sim {

Peer::Peer(MemoryPlatform& host, const os::Address& server)
    : stream_(host.network().open_stream()) {
  stream_->observe(*this);
  static_cast<void>(host.network().connect(*stream_, server));
}

Peer::~Peer() {
  close();
}

void Peer::send(std::string_view text) {
  if (!connected() || closed_) return;
  outgoing_ += text;
  write();
}

void Peer::finish() {
  closed_ = true;
  finished_ = true;
  write();
}

void Peer::reset() {
  closed_ = true;
  if (connected()) stream_->reset();
}

void Peer::close() {
  closed_ = true;
  if (stream_ != nullptr) stream_->unobserve(*this);
  stream_.reset();
}

void Peer::set_reading(bool reads) {
  reading_ = reads;
  read();
}

std::error_code Peer::state() const noexcept {
  return stream_ == nullptr ? system_error(EBADF) : stream_->receivable();
}

void Peer::on_change() {
  read();
  write();
}

void Peer::read() {
  while (reading_ && stream_ != nullptr && stream_->unread() != 0) {
    const std::size_t before = received_.size();
    received_.resize(before + stream_->unread());
    const auto count =
        stream_->receive(std::as_writable_bytes(std::span(received_).subspan(before)));
    received_.resize(before + count.value_or(0));
  }
}

void Peer::write() {
  if (!connected()) return;
  while (sent_ < outgoing_.size()) {
    const auto count = stream_->send(to_bytes(std::string_view(outgoing_).substr(sent_)));
    if (!count) return;
    sent_ += *count;
  }
  if (finished_) static_cast<void>(stream_->shut_down_sending());
}

}  // namespace weir::sim
