// The system calls behind datagrams, many datagrams each where there are many: what all backends on
// the kernel share.
#pragma once

#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/operation.hpp"

namespace weir {

/// What came of trying an operation.
struct DatagramTry {
  bool finished = false;  ///< it has finished; else it waits for the kernel
  bool again = false;     ///< the next one may find something, or room, without waiting
};

/// Takes what has arrived, in one system call (recvmmsg(2); for one slot recvfrom(2)). Each
/// datagram goes straight to a buffer of its own, but for those that the kernel has joined
/// (UDP_GRO), where that is asked for.
DatagramTry try_receive(int descriptor, ReceiveDatagramsOperation& operation,
                        BackendCounters& counters);

/// Goes on sending, in as few system calls as possible (sendmmsg(2); for a single one sendto(2)).
/// Neighbours of the same size to the same peer pass through the kernel's layers as one
/// (UDP_SEGMENT) and part only at the end; where a route cannot do that, they are sent one by one.
DatagramTry try_send(int descriptor, SendDatagramsOperation& operation, BackendCounters& counters);

}  // namespace weir
