#include "weir/http/detail/h2/send_scheduler.hpp"

namespace weir::http {

H2Stream* SendScheduler::next() noexcept {
  for (auto& queue : queues_) {
    while (H2Stream* const stream = queue.front()) {
      if (stream->send_window() > 0) return stream;
      stream->unlink();  // WINDOW_UPDATE queues it again
    }
  }
  return nullptr;
}

}  // namespace weir::http
