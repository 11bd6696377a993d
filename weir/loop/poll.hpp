// The portable backend: poll(2).
#pragma once

#include <memory>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/backend.hpp"

namespace weir {

class Host;
class RunQueue;

/// A backend on ppoll (POSIX.1-2024): for systems without epoll, and to check the others by. Each
/// wait costs time in proportion to the number of sockets.
/// `host` and `ready` outlive it. Errors: the kernel's on opening a pipe.
Result<std::unique_ptr<Backend>> make_poll_backend(Host& host, RunQueue& ready);

}  // namespace weir
