// ManualResetEvent::set() resumes all waiters.
#include "weir/task/sync/event.hpp"

namespace weir {

void ManualResetEvent::set() {
  set_ = true;
  while (QueuedWait* const first = waiting_.front()) first->grant();
}

}  // namespace weir
