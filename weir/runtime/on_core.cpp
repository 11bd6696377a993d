#include "weir/runtime/on_core.hpp"

#include <stdexcept>
#include <string>

namespace weir::detail {

void RemoteCall::begin() {
  home_ = context().loop;
  out_ = 1;
  CancelSource* const cancel = context().cancel;
  if (cancel != nullptr) cancelled_there_.set_unit(cancel->unit());
  if (cancel != nullptr && cancel->cancelled()) {
    cancelled_there_.cancel();  // nobody there knows of it yet
  } else if (cancel != nullptr) {
    cancel->add(*this);
  }
  remote_.post(start_);
}

void RemoteCall::ask(CancelNode& node) {
  auto& call = static_cast<RemoteCall&>(node);
  ++call.out_;
  call.remote_.post(call.cancel_);
}

void RemoteCall::start_there() {
  Running::work_for(cancelled_there_.unit());
  start(Context{&remote_, &cancelled_there_});
}

void RemoteCall::finished() {
  finished_there_ = true;
  home_->post(finish_);
}

void RemoteCall::cancel_there() {
  if (!finished_there_) cancelled_there_.cancel();
  home_->post(cancel_done_);
}

void RemoteCall::came_home() {
  // The end comes home before or after the answer to a cancellation; none is sent after the end.
  static_cast<CancelNode&>(*this).unlink();
  if (--out_ == 0) Waiter::run();
}

Loop& loop_of_core(Loop& home, unsigned core) {
  const auto loops = home.group().loops();
  if (core >= loops.size()) {
    throw std::out_of_range("on_core(" + std::to_string(core) + "): there are " +
                            std::to_string(loops.size()) + " cores");
  }
  return *loops[core];
}

}  // namespace weir::detail
