// Blocks that own a socket of a loop's backend.
#pragma once

#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/loop/loop.hpp"

namespace weir {

/// A T, made of the loop, the socket and the rest, which closes the socket when it goes. Errors:
/// what making it throws, std::bad_alloc mostly; then the socket is closed here.
template <class T, class... Args>
BlockPtr<T> make_socket_block(Loop& loop, Socket& socket, Args&&... args) {
  try {
    return make_block<T>(loop, socket, std::forward<Args>(args)...);
  } catch (...) {
    loop.backend().close(socket);
    throw;
  }
}

}  // namespace weir
