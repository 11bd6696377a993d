#include "weir/http/server/detail/response_heads.hpp"

#include <chrono>

namespace weir::http {

void ResponseHeads::refresh() noexcept {
  const WallTime now = loop_.platform().wall_time();
  date_ = Date(now);
  common_ = ResponseHeadCache();
  common_block_ = ResponseBlockCache();
  const Duration into_second = now.time_since_epoch() % std::chrono::seconds(1);
  date_until_ = after(loop_.now(), std::chrono::seconds(1) - into_second);
}

}  // namespace weir::http
