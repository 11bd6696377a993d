// The raw client of a simulated server.
#include "weir/testing/memory/detail/memory_peer.hpp"

#include <cerrno>
#include <limits>

namespace weir {

MemoryPeer::MemoryPeer(MemoryPlatform& platform, const os::Address& server)
    : stream_(platform.network().open_stream()) {
  static_cast<void>(platform.network().connect(*stream_, server));
}

std::size_t MemoryPeer::send(std::string_view text) {
  std::size_t sent = 0;
  while (stream_ != nullptr && sent < text.size()) {
    const auto count = stream_->send(to_bytes(text.substr(sent)));
    if (!count) break;
    sent += *count;
  }
  return sent;
}

std::size_t MemoryPeer::read(std::size_t size) {
  const std::size_t before = received_.size();
  while (stream_ != nullptr && received_.size() - before < size) {
    const std::size_t start = received_.size();
    const std::size_t want = std::min(size - (start - before), stream_->unread());
    if (want == 0) break;
    received_.resize(start + want);
    const auto count =
        stream_->receive(std::as_writable_bytes(std::span(received_).subspan(start)));
    received_.resize(start + count.value_or(0));
    if (!count) break;
  }
  return received_.size() - before;
}

const std::string& MemoryPeer::received() {
  read(std::numeric_limits<std::size_t>::max());
  return received_;
}

std::string MemoryPeer::take() {
  std::string fresh = received().substr(taken_);
  taken_ = received_.size();
  return fresh;
}

bool MemoryPeer::ended() {
  received();
  return stream_ != nullptr && stream_->receivable() == Errc::end_of_stream;
}

bool MemoryPeer::was_reset() {
  received();
  return stream_ != nullptr && stream_->receivable() == system_error(ECONNRESET);
}

}  // namespace weir
