#include "weir/loop/uring_listener.hpp"

#include <sys/socket.h>

#include <cassert>
#include <new>
#include <utility>

#include "weir/loop/contract/detail/accept_errors.hpp"

namespace weir::uring {
bool Listener::accept(Core& core, AcceptOperation& operation) {
  assert(accepting_ == nullptr);
  operation.pending_on(*this);
  if (taken_ < accepted_.size()) {
    operation.accepted = Descriptor(core.host, accepted_[taken_++]);
    if (taken_ == accepted_.size()) {
      accepted_.clear();
      taken_ = 0;
    }
    operation.finish();
    return true;
  }
  if (takes_no_more_ && !armed_) {
    operation.finish(Errc::closed);
    return true;
  }
  accepting_ = &operation;
  arm(core);
  return false;
}

void Listener::take_no_more(Core& core) {
  if (std::exchange(takes_no_more_, true)) return;
  if (paused_) {
    paused_ = false;
    core.wait_no_more(*this);
  }
  if (!armed_) {
    if (accepting_ != nullptr) core.finish(*std::exchange(accepting_, nullptr), Errc::closed);
  } else if (!std::exchange(stopping_, true)) {
    core.ring.cancel(this, Tag::accept);
  }
}

void Listener::cancel(Core& core, Operation& operation) {
  if (&operation != accepting_) return;
  accepting_ = nullptr;  // who comes now is queued
  core.finish(operation, Errc::cancelled);
}

void Listener::stop(Core& core) {
  assert(accepting_ == nullptr);
  if (armed_ && !stopping_) core.ring.cancel(this, Tag::accept);
  if (paused_) core.wait_no_more(*this);
  drop_accepted(core);
}

void Listener::drop_accepted(Core& core) noexcept {
  for (; taken_ < accepted_.size(); ++taken_) core.host.close(accepted_[taken_]);
}

void Listener::keep(Core& core, int connection) noexcept {
  Descriptor kept(core.host, connection);
  try {
    accepted_.push_back(connection);
  } catch (const std::bad_alloc&) {
    return;
  }
  static_cast<void>(kept.release());
}

void Listener::arm(Core& core) {
  if (armed_ || paused_ || takes_no_more_) return;
  io_uring_sqe& entry = core.ring.next();
  io_uring_prep_multishot_accept(&entry, descriptor, nullptr, nullptr,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
  core.started(entry, *this, Tag::accept);
  armed_ = true;
  stopping_ = false;
}

void Listener::completed(Core& core, const Completion& completion) {
  assert(completion.tag == Tag::accept);
  if (!completion.more()) {
    armed_ = false;
    --in_flight;
  }
  if (closing) {
    if (completion.result >= 0) core.host.close(completion.result);
    return;
  }
  if (completion.result >= 0) core.counters.accepts.add();
  if (completion.result < 0) {
    failed(core, -completion.result);
  } else if (pause_ = {}; accepting_ != nullptr) {
    AcceptOperation& operation = *std::exchange(accepting_, nullptr);
    operation.accepted = Descriptor(core.host, completion.result);
    core.finish(operation);
  } else {
    keep(core, completion.result);
  }
  if (!armed_) {
    if (accepting_ == nullptr) return;
    if (takes_no_more_) {
      core.finish(*std::exchange(accepting_, nullptr), Errc::closed);
    } else {
      arm(core);
    }
  } else if (!stopping_ && accepted_.size() - taken_ >= accepted_max) {
    stopping_ = true;
    core.ring.cancel(this, Tag::accept);
  }
}

void Listener::failed(Core& core, int error) {
  switch (classify_accept(error)) {
    case AcceptFailure::nobody_waits:
    case AcceptFailure::connection_gone:
      break;
    case AcceptFailure::exhausted:
      pause(core);
      break;
    case AcceptFailure::broken:
      if (accepting_ != nullptr) {
        core.finish(*std::exchange(accepting_, nullptr), system_error(error));
      }
  }
}

void Listener::pause(Core& core) {
  if (takes_no_more_) return;
  core.counters.accept_pauses.add();
  pause_ = next_accept_pause(pause_);
  resume_at_ = after(core.host.now(), pause_);
  paused_ = true;
  core.wait_with(*this);
}

void Listener::resume(Core& core) {
  paused_ = false;
  core.wait_no_more(*this);
  if (accepting_ != nullptr) arm(core);
}

}  // namespace weir::uring
