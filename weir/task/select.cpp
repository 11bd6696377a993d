// The timer of a sleep in a select().
#include "weir/task/select.hpp"

namespace weir::detail {

bool SleepWait::begin(Loop& loop) {
  const Instant deadline = length_ ? after(loop.platform().now(), *length_) : deadline_;
  loop.timers().start(*this, deadline);
  return true;
}

}  // namespace weir::detail
