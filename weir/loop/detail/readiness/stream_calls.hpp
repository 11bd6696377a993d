// System calls that send on a stream without waiting, shared by all backends on the kernel.
#pragma once

#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/operation.hpp"

namespace weir::loop {

/// The result of one attempt to send.
struct SendTryResult {
  bool finished = false;  ///< true if all is sent
  int error = 0;          ///< errno; 0 if the kernel has only no room for the rest
};

/// Sends the bytes that are left, as many as the kernel takes, in as few system calls as possible.
/// Adds them to `sent` and to the counters.
SendTryResult try_send(int descriptor, SendOperation& operation, BackendCounters& counters);

/// Returns true if the error of a failed send is what ended the connection; the kernel reports it
/// only once.
bool ends_connection(int error) noexcept;

}  // namespace weir::loop
