#include "weir/sim/peer.hpp"

#include <cerrno>

#include "weir/base/error.hpp"

namespace weir {

WorldPeer::WorldPeer(MemoryHost& host, const os::Address& server)
    : stream_(host.network().open_stream()) {
  stream_->observe(*this);
  static_cast<void>(host.network().connect(*stream_, server));
}

WorldPeer::~WorldPeer() {
  close();
}

void WorldPeer::send(std::string_view text) {
  if (!connected() || finishing_) return;
  asked_ += text;
  write();
}

void WorldPeer::finish() {
  left_ = true;
  finishing_ = true;
  write();
}

void WorldPeer::reset() {
  left_ = true;
  if (connected()) stream_->reset();
}

void WorldPeer::close() {
  left_ = true;
  if (stream_ != nullptr) stream_->forget(*this);
  stream_.reset();
}

void WorldPeer::set_reading(bool reads) {
  reads_ = reads;
  read();
}

std::error_code WorldPeer::state() const noexcept {
  return stream_ == nullptr ? system_error(EBADF) : stream_->receivable();
}

void WorldPeer::changed() {
  read();
  write();
}

void WorldPeer::read() {
  while (reads_ && stream_ != nullptr && stream_->unread() != 0) {
    const std::size_t before = received_.size();
    received_.resize(before + stream_->unread());
    const auto count =
        stream_->receive(std::as_writable_bytes(std::span(received_).subspan(before)));
    received_.resize(before + count.value_or(0));
  }
}

void WorldPeer::write() {
  if (!connected()) return;
  while (sent_ < asked_.size()) {
    const auto count = stream_->send(to_bytes(std::string_view(asked_).substr(sent_)));
    if (!count) return;
    sent_ += *count;
  }
  if (finishing_) static_cast<void>(stream_->shut_down_sending());
}

}  // namespace weir
