// What is said to requests whose owner is not there.
#pragma once

#include <chrono>

#include "weir/base/time.hpp"

namespace weir::http {

struct RouteBoardOptions {
  /// How long a request waits for an owner that is being replaced and cannot exist twice; then it
  /// is answered with 503.
  Duration wait_max = std::chrono::seconds(10);
  std::chrono::seconds retry_after{1};  ///< the Retry-After of each such 503
};

}  // namespace weir::http
