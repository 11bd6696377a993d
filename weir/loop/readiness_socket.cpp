// Taking sockets out of their slab and giving them back.
#include "weir/loop/readiness_socket.hpp"

#include <cassert>
#include <new>

namespace weir {

ReadinessSocket& SocketSlab::take() {
  if (free_.empty()) {
    chunks_.push_back(std::make_unique<ReadinessSocket[]>(chunk_sockets));
    for (std::size_t index = 0; index < chunk_sockets; ++index) {
      free_.push_back(chunks_.back()[index]);
    }
  }
  return *free_.pop_front();
}

void SocketSlab::give_back(ReadinessSocket& socket) noexcept {
  assert(!socket.linked() && socket.incoming == nullptr && socket.outgoing == nullptr);
  const auto next = static_cast<std::uint8_t>(socket.generation + 1);
  socket.~ReadinessSocket();
  ::new (&socket) ReadinessSocket;
  socket.generation = next;
  free_.push_front(socket);
}

}  // namespace weir
