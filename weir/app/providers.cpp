#include "weir/app/handles/handles.hpp"

#include "weir/loop/loop.hpp"

namespace weir::wiring {

bool Providers::is_at_home() const noexcept {
  const Loop* const here = Loop::current();  // nullptr: before the loops run, or behind them
  return here == nullptr || here == home;
}

}  // namespace weir::wiring
