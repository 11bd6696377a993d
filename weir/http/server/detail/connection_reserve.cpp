#include "weir/http/server/detail/connection_reserve.hpp"

#include <atomic>
#include <mutex>

namespace weir::http {

ConnectionReserve::Use::Use(ConnectionReserve* reserve, Loop& loop)
    : reserve_(reserve), loop_(loop) {
  if (reserve_ == nullptr) return;
  Sum& sum = Sum::of(loop);
  const std::lock_guard lock(sum.mutex);
  if (reserve_->servers_++ == 0) sum.size.fetch_add(reserve_->size_, std::memory_order_relaxed);
}

ConnectionReserve::Use::~Use() {
  if (reserve_ == nullptr) return;
  Sum& sum = *loop_.group().slots().find<Sum>();
  const std::lock_guard lock(sum.mutex);
  if (--reserve_->servers_ == 0) sum.size.fetch_sub(reserve_->size_, std::memory_order_relaxed);
}

}  // namespace weir::http
