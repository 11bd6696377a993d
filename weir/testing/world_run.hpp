// The loops of a simulated host while its main waits for them.
#pragma once

#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir {

struct WorldCore {
  Loop* loop;
  Instant rests_until = Instant::min();  ///< others have its CPU
  bool fails_to_allocate = false;        ///< as the test has asked for
};

/// A call of Host::run().
struct WorldRun {
  std::vector<WorldCore> cores;
  RunControl* control = nullptr;
  Result<> outcome;
};

}  // namespace weir
