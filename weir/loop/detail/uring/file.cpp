// File requests of the io_uring backend.
#include "weir/loop/detail/uring/requests.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdint>

namespace weir::loop::uring {
namespace {

// The kernel's own limit for one call (MAX_RW_COUNT) is a page less than 2 GiB.
constexpr std::size_t transfer_max = 1 << 30;

unsigned length_of(std::size_t size) noexcept {
  return static_cast<unsigned>(std::min(size, transfer_max));
}

void submit(BackendContext& context, FileOperation& operation) {
  io_uring_sqe& entry = context.ring.next();
  switch (operation.action) {
    case FileOperation::Action::read:
      io_uring_prep_read(&entry, operation.file, operation.target.data(),
                         length_of(operation.target.size()), operation.offset);
      break;
    case FileOperation::Action::write:
      io_uring_prep_write(&entry, operation.file, operation.source.data(),
                          length_of(operation.source.size()), operation.offset);
      break;
    case FileOperation::Action::sync:
      io_uring_prep_fsync(&entry, operation.file, 0);
      break;
  }
  Ring::mark(entry, &operation, Tag::file);
}

}  // namespace

void start_file(BackendContext& context, FileOperation& operation) {
  operation.count = 0;
  operation.cancelling = false;
  operation.pending();
  submit(context, operation);
}

void cancel_file(BackendContext& context, FileOperation& operation) {
  if (operation.cancelling) return;
  operation.cancelling = true;
  context.ring.cancel(&operation, Tag::file);
}

void file_completed(BackendContext& context, const Completion& completion) {
  auto& operation = *static_cast<FileOperation*>(completion.object);
  assert(operation.state() == Operation::State::pending);
  if (completion.result >= 0) {
    operation.count = static_cast<std::size_t>(completion.result);
    context.finish(operation);
    return;
  }
  // A cancellation interrupts a kernel thread that works on the request. No other request of this
  // backend does.
  const bool interrupted = completion.result == -EINTR || completion.result == -ECANCELED;
  if (interrupted && !operation.cancelling) {
    submit(context, operation);
  } else if (interrupted) {
    context.finish(operation, Errc::cancelled);
  } else {
    context.finish(operation, system_error(-completion.result));
  }
}

}  // namespace weir::loop::uring
