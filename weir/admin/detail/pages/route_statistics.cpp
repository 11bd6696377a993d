// Counting the requests of each route, and their times.
#include "weir/admin/detail/pages/route_statistics.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>

namespace weir::admin {

void TimeHistogram::add(const TimeHistogram& other) noexcept {
  for (std::size_t i = 0; i < buckets_max; ++i) counts_[i] += other.counts_[i];
}

void TimeHistogram::subtract(const TimeHistogram& older) noexcept {
  for (std::size_t i = 0; i < buckets_max; ++i)
    counts_[i] -= std::min(counts_[i], older.counts_[i]);
}

std::uint64_t TimeHistogram::count() const noexcept {
  std::uint64_t sum = 0;
  for (const std::uint64_t each : counts_) sum += each;
  return sum;
}

Duration TimeHistogram::quantile(double part) const noexcept {
  const std::uint64_t all = count();
  if (all == 0) return Duration::zero();
  const double wanted = std::clamp(part, 0.0, 1.0) * static_cast<double>(all);
  double below = 0;
  for (std::size_t i = 0; i < buckets_max; ++i) {
    if (counts_[i] == 0) continue;
    const auto here = static_cast<double>(counts_[i]);
    if (below + here >= wanted) {
      // The times of a bucket are taken as evenly spread.
      const Duration start = i == 0 ? Duration::zero() : end_of(i - 1);
      const double share = std::clamp((wanted - below) / here, 0.0, 1.0);
      const std::chrono::duration<double, std::nano> width = end_of(i) - start;
      return start + std::chrono::duration_cast<Duration>(width * share);
    }
    below += here;
  }
  return end_of(buckets_max - 1);
}

/// The unit is 1,024 ns. Four buckets have one unit each; then four share each power of two.
std::size_t TimeHistogram::bucket_of(Duration time) noexcept {
  const auto units = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0)) >> 10U;
  if (units < 4) return static_cast<std::size_t>(units);
  const auto exponent = static_cast<unsigned>(std::bit_width(units)) - 3;
  const std::size_t bucket = std::size_t{4} * exponent + (units >> exponent);
  return std::min(bucket, buckets_max - 1);
}

Duration TimeHistogram::end_of(std::size_t bucket) noexcept {
  const std::size_t next = bucket + 1;
  if (next < 8) return Duration(static_cast<std::int64_t>(next) << 10U);
  const std::size_t exponent = next / 4 - 1;
  const std::uint64_t units = std::uint64_t{4 + next % 4} << exponent;
  return Duration(static_cast<std::int64_t>(units << 10U));
}

std::string name_of(const RouteCounts& counts) {
  if (counts.route == nullptr) return "(no route)";
  return std::string(http::name_of(counts.method)) + " " + counts.route->pattern;
}

void CoreRoutes::add(const http::EndedRequest& request, Duration time) noexcept {
  RouteCounts* counts = nullptr;
  try {
    counts = find(request);
  } catch (const std::bad_alloc&) {
    return;  // it is not counted
  }
  ++counts->requests;
  if (request.status >= http::Status::internal_error) ++counts->failures;
  if (!request.complete) ++counts->incomplete;
  counts->longest = std::max(counts->longest, time);
  counts->times.add(time);
}

RouteCounts* CoreRoutes::find(const http::EndedRequest& request) {
  if (routes_.empty()) routes_.emplace_back();  // the entry without a route
  if (request.route == nullptr) return &routes_.front();
  const std::size_t number = request.route->number;
  if (number < by_number_.size()) {
    for (const std::uint16_t index : by_number_[number]) {
      if (routes_[index].method == request.method) return &routes_[index];
    }
  } else {
    by_number_.resize(number + 1);
  }
  if (routes_.size() == routes_max) return &routes_.front();
  by_number_[number].reserve(by_number_[number].size() + 1);
  RouteCounts& made = routes_.emplace_back();
  made.route = request.route;
  made.method = request.method;
  by_number_[number].push_back(static_cast<std::uint16_t>(routes_.size() - 1));
  return &made;
}

void RouteObserver::on_requests_ended(Loop& loop, Instant end,
                                      std::span<const http::EndedRequest> requests) noexcept {
  try {
    auto& routes = loop.slots().get<CoreRoutes>();
    for (const http::EndedRequest& each : requests) routes.add(each, end - each.begin);
  } catch (const std::bad_alloc&) {
    // They are not counted.
  }
  if (next_ != nullptr) next_->on_requests_ended(loop, end, requests);
}

void add_routes(std::vector<RouteCounts>& sums, const std::vector<RouteCounts>& core) {
  for (const RouteCounts& each : core) {
    const auto same = [&](const RouteCounts& sum) {
      return sum.route == each.route && sum.method == each.method;
    };
    const auto known = std::ranges::find_if(sums, same);
    if (known == sums.end()) {
      sums.push_back(each);
      continue;
    }
    known->requests += each.requests;
    known->failures += each.failures;
    known->incomplete += each.incomplete;
    known->longest = std::max(known->longest, each.longest);
    known->times.add(each.times);
  }
}

}  // namespace weir::admin
