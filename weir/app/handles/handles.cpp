// Checks of the core that a handle is used on.
#include "weir/app/handles/handles.hpp"

#include "weir/loop/loop.hpp"

namespace weir::inject {

bool Providers::is_on_own_core() const noexcept {
  const Loop* const here = Loop::current();  // nullptr before the loops run and after their end
  return here == nullptr || here == loop;
}

}  // namespace weir::inject
