// Datagrams: what arrives in one piece or not at all.
#pragma once

#include <algorithm>
#include <cstddef>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/os/address.hpp"

namespace weir {

/// One that has arrived.
struct Datagram {
  Buffer buffer;            ///< lent by the core; empty: so was the datagram
  os::Address peer;         ///< who sent it
  std::size_t cut_off = 0;  ///< bytes at its end for which there was no room; they are lost
  /// Of so many bytes is each of several that the kernel has joined in the buffer, but the last,
  /// which may be shorter; 0: it is a single one. Only where that was asked for.
  std::size_t size_each = 0;

  /// Calls `visit(Bytes)` for each datagram in the buffer, oldest first.
  template <class Visit>
  void for_each(Visit visit) const {
    const Bytes all = buffer;
    const std::size_t step = size_each == 0 ? all.size() : size_each;
    std::size_t begin = 0;
    do {
      visit(all.subspan(begin, std::min(step, all.size() - begin)));
      begin += step;
    } while (begin < all.size());
  }
};

/// One to be sent. What it names stays valid until it is.
struct OutgoingDatagram {
  Bytes bytes;
  os::Address peer;  ///< to whom; none: to whom the socket is connected
};

}  // namespace weir
