#include "weir/http/router/detail/route_update.hpp"

#include <cassert>

#include "weir/loop/work_unit.hpp"

namespace weir::http {

RouteChange::~RouteChange() {
  assert(!linked());
  if (retires_) publisher_.forget(*route_);
}

bool RouteChange::begin(const Context& context) {
  loop_ = context.loop;
  CancelSource* const cancel = context.cancel;
  if (const WorkUnit* const unit = context.unit()) unit_ = unit->of();
  const bool cancelled = context.cancelled();
  if (cancelled && kind_ != Kind::remove) {
    error_ = Errc::cancelled;
    return false;
  }
  impatient_ = cancelled;
  // Whoever posts it meanwhile, it runs later: this loop is busy here.
  publisher_.submit(*this);
  if (cancel != nullptr && !cancelled) cancel->add(cancelling_);
  return true;
}

void RouteChange::came_home(Runnable& self) {
  auto& change = static_cast<RouteChange&>(self);
  change.cancelling_.unlink();
  go_on_with(change.handle_);
}

void RouteChange::Cancelling::ask(CancelNode& node) {
  RouteChange& change = static_cast<Cancelling&>(node).change;
  change.publisher_.hurry(change);
}

}  // namespace weir::http
