// Accept requests of the io_uring backend.
#include "weir/loop/detail/uring/requests.hpp"

#include <sys/socket.h>

#include <cassert>
#include <new>
#include <utility>

#include "weir/loop/contract/detail/accept_errors.hpp"

namespace weir::loop::uring {

bool Listener::accept(BackendContext& context, AcceptOperation& operation) {
  assert(accepting_ == nullptr);
  operation.pending_on(*this);
  if (taken_ < accepted_.size()) {
    operation.accepted = Descriptor(context.platform, accepted_[taken_++]);
    if (taken_ == accepted_.size()) {
      accepted_.clear();
      taken_ = 0;
    }
    operation.finish();
    return true;
  }
  if (accepting_stopped_ && !armed_) {
    operation.finish(Errc::closed);
    return true;
  }
  accepting_ = &operation;
  arm(context);
  return false;
}

void Listener::stop_accepting(BackendContext& context) {
  if (std::exchange(accepting_stopped_, true)) return;
  if (paused_) {
    paused_ = false;
    context.remove_waiting(*this);
  }
  if (!armed_) {
    if (accepting_ != nullptr) context.finish(*std::exchange(accepting_, nullptr), Errc::closed);
  } else if (!std::exchange(stopping_, true)) {
    context.ring.cancel(this, Tag::accept);
  }
}

void Listener::cancel(BackendContext& context, Operation& operation) {
  if (&operation != accepting_) return;
  accepting_ = nullptr;  // connections that arrive now are queued
  context.finish(operation, Errc::cancelled);
}

void Listener::stop(BackendContext& context) {
  assert(accepting_ == nullptr);
  if (armed_ && !stopping_) context.ring.cancel(this, Tag::accept);
  if (paused_) context.remove_waiting(*this);
  drop_accepted(context);
}

void Listener::drop_accepted(BackendContext& context) noexcept {
  for (; taken_ < accepted_.size(); ++taken_) context.platform.close(accepted_[taken_]);
}

void Listener::keep(BackendContext& context, int connection) noexcept {
  Descriptor kept(context.platform, connection);
  if (taken_ >= accepted_max) {
    accepted_.erase(accepted_.begin(), accepted_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
  }
  try {
    accepted_.push_back(connection);
  } catch (const std::bad_alloc&) {
    return;
  }
  static_cast<void>(kept.release());
}

void Listener::arm(BackendContext& context) {
  if (armed_ || paused_ || accepting_stopped_) return;
  io_uring_sqe& entry = context.ring.next();
  io_uring_prep_multishot_accept(&entry, descriptor, nullptr, nullptr,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
  context.started(entry, *this, Tag::accept);
  armed_ = true;
  stopping_ = false;
}

void Listener::completed(BackendContext& context, const Completion& completion) {
  assert(completion.tag == Tag::accept);
  if (!completion.more()) {
    armed_ = false;
    --in_flight;
  }
  if (closing) {
    if (completion.result >= 0) context.platform.close(completion.result);
    return;
  }
  if (completion.result >= 0) context.counters.accepts.add();
  if (completion.result < 0) {
    failed(context, -completion.result);
  } else if (pause_ = {}; accepting_ != nullptr) {
    AcceptOperation& operation = *std::exchange(accepting_, nullptr);
    operation.accepted = Descriptor(context.platform, completion.result);
    context.finish(operation);
  } else {
    keep(context, completion.result);
  }
  if (!armed_) {
    if (accepting_ == nullptr) return;
    if (accepting_stopped_) {
      context.finish(*std::exchange(accepting_, nullptr), Errc::closed);
    } else {
      arm(context);
    }
  } else if (!stopping_ && accepted_.size() - taken_ >= accepted_max) {
    stopping_ = true;
    context.ring.cancel(this, Tag::accept);
  }
}

void Listener::failed(BackendContext& context, int error) {
  switch (classify_accept(error)) {
    case AcceptFailure::no_connection:
    case AcceptFailure::connection_gone:
      break;
    case AcceptFailure::exhausted:
      pause(context);
      break;
    case AcceptFailure::broken:
      if (accepting_ != nullptr) {
        context.finish(*std::exchange(accepting_, nullptr), system_error(error));
      }
  }
}

void Listener::pause(BackendContext& context) {
  if (accepting_stopped_) return;
  context.counters.accept_pauses.add();
  pause_ = next_accept_pause(pause_);
  resume_at_ = after(context.platform.now(), pause_);
  paused_ = true;
  context.add_waiting(*this);
}

void Listener::resume(BackendContext& context) {
  paused_ = false;
  context.remove_waiting(*this);
  if (accepting_ != nullptr) arm(context);
}

}  // namespace weir::loop::uring
