#include "weir/task/sync/event.hpp"

namespace weir {

void CoreManualResetEvent::set() {
  set_ = true;
  while (QueuedWait* const first = waiting_.front()) first->grant();
}

}  // namespace weir
