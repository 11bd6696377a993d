// PermitPool grants its waiters in order.
#include "weir/task/sync/detail/permit_pool.hpp"

namespace weir::detail {

void PermitPool::grant_waiters() {
  for (PermitWait* first; (first = waiting_.front()) != nullptr && first->count_ <= available_;) {
    available_ -= first->count_;
    first->grant();
  }
}

}  // namespace weir::detail
