#include "weir/cores/pool_size.hpp"

#include <algorithm>

namespace weir {

PoolSize::PoolSize(const PoolSizeOptions& options, std::size_t cpus, Instant now)
    : options_(options), cpus_(std::max<std::size_t>(cpus, 1)) {
  set(options, now);
  last_change_ = {now, 0, size_, SizeReason::started};
}

std::size_t PoolSize::base() const noexcept {
  if (!automatic()) return options_.fixed;
  return std::clamp(cpus_, options_.min, options_.max);
}

void PoolSize::set(const PoolSizeOptions& options, Instant now) {
  options_ = options;
  options_.min = std::max<std::size_t>(options_.min, 1);
  options_.max = std::max(options_.max, options_.min);
  change(base(), SizeReason::set, now);
}

void PoolSize::change(std::size_t to, SizeReason reason, Instant now) {
  if (to == size_) return;
  last_change_ = {now, size_, to, reason};
  size_ = to;
}

void PoolSize::sample(const PoolSample&) {}
void PoolSize::rested(std::size_t, Instant) {}
void PoolSize::no_thread_left(std::size_t, Instant) {}

}  // namespace weir
