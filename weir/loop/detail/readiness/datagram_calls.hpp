// System calls that send and receive datagrams, shared by all backends on the kernel.
#pragma once

#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/operation.hpp"

namespace weir::loop {

/// The result of one attempt at an operation.
struct DatagramTryResult {
  bool finished = false;      ///< true if the operation has finished; else it waits for the kernel
  bool may_continue = false;  ///< true if another attempt may succeed without waiting
};

/// Receives the datagrams that have arrived, in one system call: recvmmsg(2), or recvfrom(2) for a
/// single slot without GRO. Each datagram goes directly to a buffer of its own. The kernel joins
/// several datagrams in one buffer (UDP_GRO) only if the operation asks for it.
DatagramTryResult try_receive(int descriptor, ReceiveDatagramsOperation& operation,
                              BackendCounters& counters);

/// Sends the datagrams that are left, in as few system calls as possible: sendmmsg(2), or
/// sendto(2) for a single datagram. Consecutive datagrams of one size to one peer pass through the
/// kernel as one message (UDP_SEGMENT), which is split only at the end. If a route cannot do that,
/// try_send() sends them one by one.
DatagramTryResult try_send(int descriptor, SendDatagramsOperation& operation,
                           BackendCounters& counters);

}  // namespace weir::loop
