// Factories of the readiness backends: epoll(7) for Linux, ppoll for other systems.
#pragma once

#include <memory>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/backend.hpp"

namespace weir::loop {

// The portable backend, on poll(2).

class Platform;
class RunQueue;

/// Returns a backend on ppoll (POSIX.1-2024), for systems without epoll and as a reference in
/// tests of the other backends. Each wait() takes time in proportion to the number of sockets.
/// Errors: the kernel's error if it opens no pipe.
/// Lifetime: `platform` and `ready` outlive the backend.
Result<std::unique_ptr<Backend>> make_poll_backend(Platform& platform, RunQueue& ready);

class Platform;
class RunQueue;

/// Returns a backend on epoll(7). It registers each socket once, for as long as the socket is open.
/// A connection that takes turns with its peer then costs one recv, one send and a share of one
/// epoll_pwait2 per turn. A datagram socket is registered for room only while a send waits. An idle
/// connection holds no buffer.
/// Errors: the kernel's error if it opens no epoll instance or no eventfd.
/// Lifetime: `platform` and `ready` outlive the backend.
Result<std::unique_ptr<Backend>> make_epoll_backend(Platform& platform, RunQueue& ready);

}  // namespace weir::loop
