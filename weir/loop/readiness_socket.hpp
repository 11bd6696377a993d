// One socket of a readiness backend, and the slab that such sockets live in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "weir/base/detail/list.hpp"
#include "weir/loop/contract/detail/backend.hpp"

namespace weir {

/// What a readiness backend knows of one descriptor: one cache line.
struct alignas(64) ReadinessSocket : Socket, ListNode {
  Operation* incoming = nullptr;     ///< the pending receive or accept
  Operation* outgoing = nullptr;     ///< the pending send or connect
  HangupWatcher* watcher = nullptr;  ///< told once, then forgotten
  int error = 0;                     ///< errno that the connection died of, once a call has told
  std::uint32_t place = 0;           ///< for a backend that keeps its sockets in an array
  std::uint8_t generation = 0;       ///< counts the sockets that this memory has held
  SocketRole role = SocketRole::stream;
  bool may_receive : 1 = true;     ///< the next recv or accept may have something
  bool may_send : 1 = true;        ///< the kernel may have room
  bool peer_finished : 1 = false;  ///< no more edges for what is to be received: read until the end
  bool urgent : 1 = false;         ///< out-of-band data was seen: a short read proves nothing
  bool ended : 1 = false;          ///< recv has told the end of the stream
  bool dead : 1 = false;           ///< both directions are closed, or the connection was reset
  bool paused : 1 = false;         ///< a listener that waits for descriptors or memory
  bool reported : 1 = false;       ///< the kernel tells what becomes of it
  bool stopped : 1 = false;        ///< a listener that takes no more
};
static_assert(sizeof(ReadinessSocket) == 64);

/// Memory for the sockets of one backend. It is used again but not freed before the backend is,
/// and each use has another tag: whatever the kernel still reports about a closed descriptor is
/// recognised instead of followed. Threads: the backend's.
class SocketSlab {
 public:
  /// Throws std::bad_alloc.
  ReadinessSocket& take();
  void give_back(ReadinessSocket& socket) noexcept;

  /// Names this use of the socket's memory in one word; never 0.
  static std::uint64_t tag(const ReadinessSocket& socket) noexcept {
    return reinterpret_cast<std::uintptr_t>(&socket) | (socket.generation & generation_mask);
  }
  /// The socket of a tag, or nullptr when that was given back since.
  static ReadinessSocket* find(std::uint64_t tag) noexcept {
    auto* socket = reinterpret_cast<ReadinessSocket*>(
        static_cast<std::uintptr_t>(tag & ~std::uint64_t{generation_mask}));
    const bool same = (socket->generation & generation_mask) == (tag & generation_mask);
    return same && socket->descriptor >= 0 ? socket : nullptr;
  }

  template <class Function>
  void for_each_open(Function function) {
    for (auto& chunk : chunks_) {
      for (std::size_t index = 0; index < chunk_sockets; ++index) {
        if (chunk[index].descriptor >= 0) function(chunk[index]);
      }
    }
  }

 private:
  static constexpr std::size_t chunk_sockets = 256;
  static constexpr unsigned generation_mask = alignof(ReadinessSocket) - 1;

  // Declared before the list, which unlinks what is in the chunks when it is destroyed.
  std::vector<std::unique_ptr<ReadinessSocket[]>> chunks_;
  List<ReadinessSocket> free_;
};

}  // namespace weir
