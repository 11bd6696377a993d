// The epoll backend: Linux' readiness, told on edges.
#pragma once

#include <memory>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/backend.hpp"

namespace weir {

class Host;
class RunQueue;

/// A backend on epoll(7). Each socket is registered once, for everything and for life, so that the
/// steady state of a connection that takes turns with its peer costs one recv, one send and its
/// share of one epoll_pwait2, and no idle connection holds a buffer.
/// `host` and `ready` outlive it. Errors: the kernel's on opening an epoll instance.
Result<std::unique_ptr<Backend>> make_epoll_backend(Host& host, RunQueue& ready);

}  // namespace weir
