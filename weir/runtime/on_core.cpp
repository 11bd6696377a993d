#include "weir/runtime/on_core.hpp"

#include <stdexcept>
#include <string>

namespace weir::detail {

void RemoteCall::begin() {
  owner_ = context().loop;
  steps_in_flight_ = 1;
  remote_cancel_.set_trace(context().trace());
  if (!join()) remote_cancel_.cancel();  // the remote loop does not use it yet
  remote_.post(start_);
}

void RemoteCall::on_cancel(CancelNode& node) {
  auto& call = static_cast<RemoteCall&>(node);
  ++call.steps_in_flight_;
  call.remote_.post(call.cancel_);
}

void RemoteCall::start_remote() {
  loop::CurrentActivity::set_trace(remote_cancel_.trace());
  start(Context{&remote_, &remote_cancel_});
}

void RemoteCall::finished() {
  remote_finished_ = true;
  remote_cancel_.unlist();  // the owner destroys it on its own thread
  owner_->post(finish_);
}

void RemoteCall::cancel_remote() {
  if (!remote_finished_) remote_cancel_.cancel();
  owner_->post(cancel_done_);
}

void RemoteCall::on_completed_at_owner() {
  // The result returns before or after the reply to a cancellation; none is sent after the
  // result.
  leave();
  if (--steps_in_flight_ == 0) Waiter::run();
}

Loop& loop_of_core(Loop& owner, unsigned core) {
  const auto loops = owner.group().loops();
  if (core >= loops.size()) {
    throw std::out_of_range("on_core(" + std::to_string(core) + "): there are " +
                            std::to_string(loops.size()) + " cores");
  }
  return *loops[core];
}

}  // namespace weir::detail
