#include "weir/http/router/detail/route_store.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {

std::size_t RouteSlots::acquire() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return next_++;
  const std::size_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void RouteSlots::release(std::size_t slot) {
  const std::lock_guard lock(mutex_);
  free_.push_back(slot);
}

RouteStore::RouteStore() : table_(std::make_unique<RouteTable>()) {
  table_->set_rules(&rules_);
}
RouteStore::~RouteStore() = default;

Result<std::shared_ptr<const PathRegex>> RouteStore::compile(const Pattern::Segment& segment) {
  const auto known = regexes_.find(segment.text);
  if (known != regexes_.end()) {
    if (auto living = known->second.lock()) return living;
  }
  WEIR_TRY(auto compiled, PathRegex::compile(segment.text, segment.groups));
  auto shared = std::make_shared<const PathRegex>(std::move(compiled));
  std::erase_if(regexes_, [](const auto& each) { return each.second.expired(); });
  regexes_[segment.text] = shared;
  return shared;
}

Result<> RouteStore::find_params(Route& route) {
  std::size_t index = 0;
  for (const Pattern::Segment& segment : route.pattern.segments()) {
    Route::PathParam param{segment.kind, index++, nullptr};
    if (segment.kind == SegmentText::Kind::literal) continue;
    if (segment.kind == SegmentText::Kind::regex) {
      WEIR_TRY(auto compiled, compile(segment));
      param.regex = std::move(compiled);
    }
    route.params.push_back(std::move(param));
  }
  return {};
}

Result<RouteStore::Added> RouteStore::add(std::unique_ptr<Route>& route) {
  if (!is_token(route->method) || route->method == name_of(Method::connect)) {
    return fail(Errc::bad_input);
  }
  WEIR_TRY(find_params(*route));
  WEIR_TRY(const auto added, table_->add(*route));
  if (added != route.get()) return Added{.conflict = added};
  route->id = RouteId{next_id_++};
  route->slot = slots_.acquire();
  routes_.push_back(std::move(route));
  return Added{.id = routes_.back()->id};
}

/// Returns the position of the first route with this id or a later one.
std::size_t RouteStore::position_of(RouteId id) const noexcept {
  const auto number = [](const auto& each) { return each->id.number; };
  const auto place = std::ranges::lower_bound(routes_, id.number, {}, number);
  return static_cast<std::size_t>(place - routes_.begin());
}

const Route* RouteStore::find(RouteId id) const noexcept {
  const std::size_t index = position_of(id);
  if (index == routes_.size() || routes_[index]->id != id) return nullptr;
  return routes_[index].get();
}

std::unique_ptr<Route> RouteStore::extract(RouteId id) noexcept {
  assert(find(id) != nullptr);
  const auto place = routes_.begin() + static_cast<std::ptrdiff_t>(position_of(id));
  std::unique_ptr<Route> route = std::move(*place);
  routes_.erase(place);
  return route;
}

std::unique_ptr<Route> RouteStore::replace(RouteId id, Handler handler,
                                           const std::optional<RouteOptions>& options) {
  assert(find(id) != nullptr);
  std::unique_ptr<Route>& place = routes_[position_of(id)];
  const Route& old = *place;
  auto next = std::make_unique<Route>(Route{old.method, old.pattern, std::move(handler),
                                            options.value_or(old.options), old.params, old.id,
                                            slots_.acquire()});
  next->middleware = old.middleware;
  return std::exchange(place, std::move(next));
}

std::vector<std::unique_ptr<Route>> RouteStore::extract_all() {
  auto routes = std::exchange(routes_, {});
  static_cast<void>(rebuild());
  return routes;
}

std::unique_ptr<RouteTable> RouteStore::rebuild() {
  auto next = std::make_unique<RouteTable>();
  next->set_middleware(table_->middleware());
  next->set_rules(&rules_);
  for (const auto& route : routes_) {
    [[maybe_unused]] const auto added = next->add(*route);
    assert(added && *added == route.get());
  }
  return std::exchange(table_, std::move(next));
}

}  // namespace weir::http
