#include "weir/task/units.hpp"

namespace weir::detail {

void Units::grant_waiting() {
  for (Take* first; (first = waiting_.front()) != nullptr && first->count_ <= free_;) {
    free_ -= first->count_;
    first->grant();
  }
}

}  // namespace weir::detail
