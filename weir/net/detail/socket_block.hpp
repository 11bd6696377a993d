// Construction of pool blocks that own a socket of a loop's backend.
#pragma once

#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/loop/loop.hpp"

namespace weir {

/// Returns a T constructed from the loop, the socket and `args`. The destructor of T closes the
/// socket. If the construction throws, mostly std::bad_alloc, this function closes the socket and
/// rethrows.
template <class T, class... Args>
BlockPtr<T> make_socket_block(Loop& loop, loop::Socket& socket, Args&&... args) {
  try {
    return make_block<T>(loop, socket, std::forward<Args>(args)...);
  } catch (...) {
    loop.backend().close(socket);
    throw;
  }
}

}  // namespace weir
