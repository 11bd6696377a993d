// Files on io_uring: bytes in and out of an open one, where its name plays no part any more.
//
// What is in the page cache is copied when the loop submits, without a thread; what is not, the
// kernel fetches by itself. Opening, renaming and the like the kernel would hand to threads of its
// own: those stay with the pool, whose threads are bounded and seen.
#pragma once

#include "weir/loop/contract/detail/operation.hpp"
#include "weir/loop/detail/uring/ring.hpp"
#include "weir/loop/uring_socket.hpp"

namespace weir::uring {

void start_file(Core& core, FileOperation& operation);
/// It finishes when the kernel has let go of its memory: one that is being worked on, with its
/// result.
void cancel_file(Core& core, FileOperation& operation);
void file_completed(Core& core, const Completion& completion);

}  // namespace weir::uring
