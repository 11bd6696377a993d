#include "weir/admin/detail/pages/history.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace weir::admin {
namespace {

bool is_of_other_run(const RuntimeReport& before, const RuntimeReport& now) {
  if (before.cores.size() != now.cores.size()) return true;
  return !now.cores.empty() && before.cores.front().turns > now.cores.front().turns;
}

}  // namespace

MemorySample History::memory_of(const Sample& sample, Duration age) {
  MemorySample memory{.age = age, .resident_bytes = sample.resident_bytes};
  for (const CoreReport& core : sample.report.cores) {
    memory.frames += core.frames_in_use;
    memory.buffers += core.buffers_in_use;
    memory.blocks += core.blocks_in_use;
    memory.connections += core.connections;
  }
  return memory;
}

Observation History::observe(RuntimeReport report, std::optional<std::uint64_t> resident_bytes,
                             Instant now) {
  const std::lock_guard lock(mutex_);
  if (first_at_ == never) first_at_ = now;
  // In another run, the cores begin to count again.
  if (!recent_.empty() && is_of_other_run(recent_.back().report, report)) {
    recent_.clear();
    old_.clear();
    first_at_ = now;
  }
  // A rate over a long time without requests would hide the present load.
  while (recent_.size() > 1 && now - recent_.front().at > recent_step * 10) recent_.pop_front();
  Observation seen;
  if (!recent_.empty()) {
    seen.recent = recent_.front().report;
    seen.recent_age = now - recent_.front().at;
  }
  if (!old_.empty()) {
    seen.oldest = old_.front().report;
    seen.oldest_age = now - old_.front().at;
    seen.oldest_resident_bytes = old_.front().resident_bytes;
  }
  seen.up = now - first_at_;
  for (auto each = old_.rbegin(); each != old_.rend(); ++each) {
    seen.memory.push_back(memory_of(*each, now - each->at));
  }
  if (recent_.empty() || now - recent_.back().at >= recent_step) {
    if (recent_.size() == recent_max) recent_.pop_front();
    recent_.push_back({now, report, resident_bytes});
  }
  if (old_.empty() || now - old_.back().at >= old_step) {
    if (old_.size() == old_max) old_.pop_front();
    old_.push_back({now, report, resident_bytes});
  }
  seen.now = std::move(report);
  seen.resident_bytes = resident_bytes;
  return seen;
}

RouteObservation History::observe(std::shared_ptr<const RouteTable> routes, Instant now) {
  const std::lock_guard lock(mutex_);
  while (routes_.size() > 1 && now - routes_.front().at > recent_step * 10) routes_.pop_front();
  RouteObservation seen;
  if (!routes_.empty()) {
    seen.recent = routes_.front().routes;
    seen.recent_age = now - routes_.front().at;
  }
  if (routes_.empty() || now - routes_.back().at >= recent_step) {
    if (routes_.size() == recent_max) routes_.pop_front();
    routes_.push_back({now, std::move(routes)});
  }
  return seen;
}

double rate_of(std::uint64_t now, std::uint64_t before, Duration elapsed) noexcept {
  if (elapsed <= Duration::zero() || now < before) return 0;
  return static_cast<double>(now - before) / std::chrono::duration<double>(elapsed).count();
}

std::uint64_t metric_of(const CoreReport& core, std::string_view name) noexcept {
  const auto found = std::ranges::find(core.metrics, name, &Metric::name);
  return found == core.metrics.end() ? 0 : found->value;
}

std::uint64_t metric_at(const CoreReport& core, std::size_t place, std::string_view name) noexcept {
  const bool is_there = place < core.metrics.size() && core.metrics[place].name == name;
  return is_there ? core.metrics[place].value : metric_of(core, name);
}

}  // namespace weir::admin
