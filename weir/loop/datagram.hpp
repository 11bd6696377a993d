// Datagrams: what arrives in one piece or not at all.
#pragma once

#include <cstddef>

#include "weir/base/buffer.hpp"
#include "weir/base/bytes.hpp"
#include "weir/os/address.hpp"

namespace weir {

/// One that has arrived.
struct Datagram {
  Buffer buffer;            ///< lent by the core; empty: so was the datagram
  os::Address peer;         ///< who sent it
  std::size_t cut_off = 0;  ///< bytes at its end for which there was no room; they are lost
};

/// One to be sent. What it names stays valid until it is.
struct OutgoingDatagram {
  Bytes bytes;
  os::Address peer;  ///< to whom; none: to whom the socket is connected
};

}  // namespace weir
