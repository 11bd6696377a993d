// Counting the requests of each route, and their times.
#include "weir/admin/detail/pages/route_statistics.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>

#include "weir/task/detail/turn_budget.hpp"

namespace weir::admin {

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

std::string name_of(const http::RouteName* route, http::Method method) {
  if (route == nullptr) return "(no route)";
  const bool is_known = method != http::Method::other;
  return std::string(is_known ? http::name_of(method) : "_OTHER") + " " + route->pattern;
}

void RouteCounters::add(const http::EndedRequest& request, Duration time) noexcept {
  requests_.add();
  if (request.status >= http::Status::internal_error) failures_.add();
  if (!request.complete) incomplete_.add();
  longest_.update_max(static_cast<std::uint64_t>(std::max(time, Duration::zero()).count()));
  times_[TimeHistogram::bucket_of(time)].add();
}

void RouteCounters::add_to(RouteCounts& sum) const noexcept {
  sum.requests += requests_.value();
  sum.failures += failures_.value();
  sum.incomplete += incomplete_.value();
  sum.longest = std::max(sum.longest, Duration(static_cast<std::int64_t>(longest_.value())));
  for (std::size_t i = 0; i < times_.size(); ++i) sum.times.add_count(i, times_[i].value());
}

CoreRoutes::~CoreRoutes() {
  for (std::size_t i = 0; i < size(); ++i) delete routes_[i];
}

void CoreRoutes::add(const http::EndedRequest& request, Duration time) noexcept {
  try {
    find(request)->add(request, time);
  } catch (const std::bad_alloc&) {
    // It is not counted.
  }
}

RouteCounters& CoreRoutes::make(const http::RouteName* route, http::Method method) {
  const std::size_t index = size();
  routes_[index] = new RouteCounters(route, method);
  size_.store(index + 1, std::memory_order_release);
  return *routes_[index];
}

RouteCounters* CoreRoutes::find(const http::EndedRequest& request) {
  if (size() == 0) make(nullptr, http::Method::other);  // the entry without a route
  if (request.route == nullptr) return routes_.front();
  const std::size_t number = request.route->number;
  if (number < by_number_.size()) {
    for (const std::uint16_t index : by_number_[number]) {
      if (routes_[index]->method() == request.method) return routes_[index];
    }
  } else {
    by_number_.resize(number + 1);
  }
  if (size() == routes_max) return routes_.front();
  by_number_[number].reserve(by_number_[number].size() + 1);
  RouteCounters& made = make(request.route, request.method);
  by_number_[number].push_back(static_cast<std::uint16_t>(size() - 1));
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

RouteCounts& RouteTable::at(const http::RouteName* route, http::Method method) {
  const auto [place, fresh] = index_.try_emplace(Key(route, method), nullptr);
  if (!fresh) return *place->second;
  try {
    RouteCounts& made = routes_.emplace_back();
    made.route = route;
    made.method = method;
    place->second = &made;
    return made;
  } catch (...) {
    index_.erase(place);
    throw;
  }
}

const RouteCounts* RouteTable::find(const http::RouteName* route,
                                    http::Method method) const noexcept {
  const auto known = index_.find(Key(route, method));
  return known == index_.end() ? nullptr : known->second;
}

Task<std::shared_ptr<const RouteTable>> read_routes(Loop& loop) {
  TurnBudget budget(loop);
  auto table = std::make_shared<RouteTable>();
  const std::span<Loop* const> group = loop.group().loops();
  std::vector<Loop*> loops(group.begin(), group.end());
  if (loops.empty()) loops.push_back(&loop);
  for (Loop* const core : loops) {
    const CoreRoutes* const routes = core->slots().find<CoreRoutes>();
    const std::size_t count = routes == nullptr ? 0 : routes->size();
    for (std::size_t i = 0; i < count; ++i) {
      const RouteCounters& each = routes->at(i);
      each.add_to(table->at(each.route(), each.method()));
      co_await budget.item();
    }
  }
  co_return table;
}

namespace {

RouteRow row_of(const RouteCounts& now, const RouteCounts* old, Duration recent_age) {
  RouteRow row{.route = now.route, .method = now.method};
  row.requests = row.recent_requests = now.requests;
  row.failures = row.recent_failures = now.failures;
  row.incomplete = now.incomplete;
  row.longest = now.longest;
  TimeHistogram times = now.times;
  if (old != nullptr) {
    row.recent_requests -= std::min(old->requests, now.requests);
    row.recent_failures -= std::min(old->failures, now.failures);
    if (row.recent_requests > 0) times.subtract(old->times);
  }
  if (recent_age > Duration::zero()) {
    const std::chrono::duration<double> seconds = recent_age;
    row.rate = static_cast<double>(row.recent_requests) / seconds.count();
  }
  row.p50 = times.quantile(0.5);
  row.p90 = times.quantile(0.9);
  row.p99 = times.quantile(0.99);
  return row;
}

}  // namespace

Task<std::vector<RouteRow>> compare_routes(Loop& loop, const RouteTable& now,
                                           const RouteTable* recent, Duration recent_age) {
  TurnBudget budget(loop);
  std::vector<RouteRow> rows;
  rows.reserve(now.all().size());
  for (const RouteCounts& each : now.all()) {
    if (each.requests == 0) continue;
    const RouteCounts* const old =
        recent == nullptr ? nullptr : recent->find(each.route, each.method);
    rows.push_back(row_of(each, old, recent_age));
    co_await budget.item();
  }
  std::ranges::sort(rows, [](const RouteRow& one, const RouteRow& other) {
    return one.rate != other.rate ? one.rate > other.rate : one.requests > other.requests;
  });
  co_return rows;
}

}  // namespace weir::admin
