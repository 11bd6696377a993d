#include "weir/http/router/detail/route_update.hpp"

#include <cassert>

#include "weir/loop/contract/detail/trace_context.hpp"

namespace weir::http {

RouteUpdate::~RouteUpdate() {
  assert(!linked());
  if (retires_) updater_.release_slot(*route_);
}

bool RouteUpdate::begin(const Context& context) {
  loop_ = context.loop;
  if (const TraceContext* const trace = context.trace()) requesting_route_ = trace->origin();
  const bool cancelled = !cancel_hook_.join(context.cancel);
  if (cancelled && kind_ != Kind::remove) {
    error_ = Errc::cancelled;
    return false;
  }
  stop_requested_ = cancelled;
  // The update may be posted immediately, but runs later: this loop is busy here.
  updater_.submit(*this);
  return true;
}

void RouteUpdate::on_completed_at_owner(loop::Runnable& self) {
  auto& change = static_cast<RouteUpdate&>(self);
  change.cancel_hook_.leave();
  resume_coroutine(change.handle_);
}

void RouteUpdate::CancelHook::on_cancel(CancelNode& node) {
  RouteUpdate& change = static_cast<CancelHook&>(node).change;
  change.updater_.stop_requests(change);
}

}  // namespace weir::http
