#include "weir/app/life.hpp"

#include <cassert>
#include <utility>

#include "weir/app/explain.hpp"

namespace weir::wiring {
namespace {

/// A longer queue gives its memory back when it is empty.
constexpr std::size_t queue_kept = 1024;

bool is_on_the_way(State state) noexcept {
  return state == State::starting || state == State::leaving || state == State::stopping;
}

}  // namespace

// --- cores ---------------------------------------------------------------------------------------

Life::Outpost::Outpost(Loop& loop, App& app, http::RouteBoard* board, Life& life)
    : services(loop, app, board, &Outpost::tell, this),
      in(loop, &Outpost::receive, this),
      home(*life.inbox_) {}

void Life::Outpost::receive(void* self, std::vector<Order>& orders) {
  auto& outpost = *static_cast<Outpost*>(self);
  outpost.receiving = true;
  for (const Order& each : orders) outpost.services.execute(each);
  outpost.receiving = false;
  outpost.home.send(outpost.reports);
}

void Life::Outpost::tell(void* self, Report report) {
  auto& outpost = *static_cast<Outpost*>(self);
  outpost.reports.push_back(std::move(report));
  if (!outpost.receiving) outpost.home.send(outpost.reports);
}

void Life::open(Loop& home, std::span<Loop* const> loops, App& app, http::RouteBoard* board) {
  home_ = &home;
  loops_ = loops;
  outposts_.clear();
  here_.emplace(home, app, board, &Life::tell, this);
  inbox_.emplace(home, &Life::receive, this);
  for (Loop* const each : loops) {
    outposts_.push_back(each == &home ? nullptr
                                      : std::make_unique<Outpost>(*each, app, board, *this));
  }
  failures_.clear();
}

void Life::tell(void* self, Report report) {
  auto& life = *static_cast<Life*>(self);
  life.reports_.push_back(std::move(report));
  life.run();
}

void Life::receive(void* self, std::vector<Report>& reports) {
  auto& life = *static_cast<Life*>(self);
  for (Report& each : reports) life.reports_.push_back(std::move(each));
  life.run();
}

void Life::order_on(std::size_t core, const Order& order) {
  const auto& outpost = outposts_[core];
  if (outpost == nullptr) {
    here_->execute(order);
  } else {
    outpost->orders.push_back(order);
  }
}

// --- all of them ---------------------------------------------------------------------------------

void Life::begin(bool all_or_nothing) {
  running_ = true;
  all_or_nothing_ = all_or_nothing;
  for (Index index = 0; index < graph_.node_count(); ++index) {
    if (graph_.node(index).recipe != nullptr) look(graph_.node(index));
  }
  run();
}

void Life::end() {
  running_ = false;
  for (Index index = graph_.node_count(); index-- > 0;) {
    if (graph_.node(index).recipe != nullptr) look(graph_.node(index));
  }
  run();
}

void Life::hurry() {
  for (Index index = 0; index < graph_.node_count(); ++index) {
    Node& node = graph_.node(index);
    const bool runs = node.state == State::starting || node.state == State::stopping;
    if (!runs && !node.opening) continue;
    order({.kind = Order::Kind::cancel, .node = &node});
  }
  run();
}

void Life::look_at_touched() {
  for (const Index each : graph_.take_touched()) {
    if (graph_.node(each).recipe != nullptr) look(graph_.node(each));  // some are gone again
  }
}

void Life::run() {
  if (busy_) return;
  busy_ = true;
  for (;;) {
    if (!reports_.empty()) {
      handling_.swap(reports_);
      for (Report& each : handling_) handle(each);
      handling_.clear();
    } else if (queue_head_ != queue_.size()) {
      Node& node = graph_.node(queue_[queue_head_++]);
      node.queued = false;
      step(node);
    } else {
      break;
    }
  }
  if (queue_.capacity() > queue_kept) queue_ = {};
  queue_.clear();
  queue_head_ = 0;
  for (const auto& outpost : outposts_) {
    if (outpost != nullptr) outpost->in.send(outpost->orders);
  }
  busy_ = false;
  if (on_the_way_ != 0) return;
  while (auto* const each = settling_.pop_front()) each->of.settled();
}

bool Life::Settling::begin() {
  if (context().cancelled()) (life_.*on_cancel_)();
  if (life_.settled()) return false;
  life_.settling_.push_back(place_);
  if (context().cancel != nullptr && !context().cancelled()) context().cancel->add(*this);
  return true;
}

void Life::Settling::cancel(CancelNode& node) {
  auto& self = static_cast<Settling&>(node);
  (self.life_.*self.on_cancel_)();
}

void Life::Settling::settled() {
  static_cast<CancelNode&>(*this).unlink();
  resume_later();
}

// --- one of them ---------------------------------------------------------------------------------

bool Life::wanted(const Node& node) const noexcept {
  return running_ && node.demand != 0 && !node.sleeps() && !node.recipe->held && node.missing == 0;
}

void Life::enter(Node& node, State state) {
  on_the_way_ += is_on_the_way(state);
  on_the_way_ -= is_on_the_way(node.state);
  node.state = state;
  node.since = home_->now();
}

void Life::forgive(Node& node) {
  std::erase_if(failures_, [&](const Failure& each) { return each.node == node.index; });
  enter(node, State::waiting);
}

void Life::step(Node& node) {
  if (node.asks) answer_questions_of(node);
  switch (node.state) {
    case State::waiting:
      return wanted(node) ? call(node) : answer_askers(node);
    case State::calling:
      if (!wanted(node)) {
        enter(node, State::waiting);
        demand_children(node, 0);
      } else if (node.absent == 0) {
        start(node);
      } else {
        demand_children(node, 1);  // there may be others than before
      }
      return;
    case State::starting:
      if (may_stay(node) || node.cancelling) return;
      node.cancelling = true;
      return order({.kind = Order::Kind::cancel, .node = &node});
    case State::up:
      if (!may_stay(node) && !node.opening) leave(node);
      return;
    case State::leaving:
      if (node.users == 0) stop(node);
      return;
    case State::failed:
      if (node.demand == 0) enter(node, State::waiting);
      return;
    case State::stopping:
      return;
  }
}

void Life::call(Node& node) {
  if (node.absent == 0) return start(node);
  enter(node, State::calling);
  demand_children(node, 1);
}

void Life::demand_children(Node& node, std::uint32_t demand) {
  for (std::size_t i = 0; i < node.recipe->plan->parameters.size(); ++i) {
    if (!node.edges[i].child) continue;
    if (demand != 0 && graph_.is_loose(node.edges[i])) continue;
    Node& child = graph_.node(node.edges[i].provider);
    if (std::exchange(child.demand, demand) != demand) look(child);
  }
}

void Life::start(Node& node) {
  enter(node, State::starting);
  node.cancelling = false;
  const auto parameters = node.recipe->plan->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Edge& edge = node.edges[i];
    if (parameters[i].need == Need::required) {
      ++graph_.node(edge.provider).users;
      edge.argument = graph_.object_for(edge);
    } else if (parameters[i].need == Need::lazy) {
      renew(node.first_edge + static_cast<Index>(i));
    } else if (is_for_any(parameters[i].need)) {
      Watch& watch = graph_.watch_of(edge);
      order({.kind = Order::Kind::clear, .node = &node, .providers = &watch});
      for (const Index seen : watch.edges) {
        const Node& provider = graph_.node(graph_.edge(seen).provider);
        if (provider.state == State::up) show(graph_.edge(seen), provider);
      }
    }
  }
  order({.kind = Order::Kind::make, .node = &node});
}

void Life::started(Node& node) {
  if (!may_stay(node)) return stop(node);  // nobody has heard of it yet
  enter(node, State::up);
  for (Index index = node.dependants; index != none; index = graph_.edge(index).next) {
    Edge& edge = graph_.edge(index);
    Node& dependant = graph_.node(edge.node);
    if (graph_.is_weak(edge)) {
      introduce(edge);
    } else if (graph_.is_loose(edge)) {
      answer(index);
    } else if (--(edge.child ? dependant.absent : dependant.missing) == 0) {
      look(dependant);
    }
  }
}

void Life::leave(Node& node) {
  enter(node, State::leaving);
  if (node.asks) answer_questions_of(node);
  for (Index index = node.dependants; index != none; index = graph_.edge(index).next) {
    Edge& edge = graph_.edge(index);
    Node& dependant = graph_.node(edge.node);
    if (graph_.is_weak(edge)) {
      if (edge.told && !edge.untelling) hide(index);
    } else if (!graph_.is_loose(edge)) {
      ++(edge.child ? dependant.absent : dependant.missing);
      look(dependant);
    }
  }
  if (node.users == 0) stop(node);
}

void Life::stop(Node& node) {
  enter(node, State::stopping);
  if (node.asks) answer_questions_of(node);
  order({.kind = Order::Kind::stop, .node = &node, .expecting = expecting_, .ending = !running_});
}

/// A node that is no more needs its providers no longer.
void Life::release_providers(Node& node) {
  const auto parameters = node.recipe->plan->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Edge& edge = node.edges[i];
    edge.asked = false;
    if (parameters[i].need == Need::required || edge.firm) {
      release(graph_.node(edge.provider));
    } else if (is_for_any(parameters[i].need)) {
      for (const Index each : graph_.watch_of(edge).edges) {
        Edge& seen = graph_.edge(each);
        if (seen.told && !seen.untelling) hidden(seen);
      }
    }
  }
}

void Life::release(Node& provider) {
  assert(provider.users != 0);
  if (--provider.users == 0 && provider.state == State::leaving) look(provider);
}

void Life::handle(Report& report) {
  Node& node = *report.node;
  switch (report.kind) {
    case Report::Kind::started:
      return started(node);
    case Report::Kind::failed:
      return failed(node, report);
    case Report::Kind::stopped:
      release_providers(node);
      enter(node, State::waiting);
      demand_children(node, 0);
      return look(node);
    case Report::Kind::removed:
      return hidden(graph_.edge(report.edge));
    case Report::Kind::asked:
      return asked(report.edge);
    case Report::Kind::opened:
      --on_the_way_;
      node.opening = false;
      if (report.error) note_failure(node, report, false);
      return look(node);
    case Report::Kind::taken:
      --on_the_way_;
      return;
  }
}

// --- routes --------------------------------------------------------------------------------------

void Life::open_routes(Node& node, const Node& old) {
  if (routes_of(node) == nullptr) return;
  node.opening = true;
  ++on_the_way_;
  order({.kind = Order::Kind::open, .node = &node, .object = routes_of(old)});
}

void Life::take_routes(Node& node) {
  http::OwnedRoutes* const routes = routes_of(node);
  if (routes == nullptr) return;
  for (Loop* const each : routes->loops()) {
    ++on_the_way_;
    order_on(each->core(), {.kind = Order::Kind::take, .node = &node});
  }
}

void Life::note_failure(const Node& node, Report& report, bool told) {
  failures_.push_back({.node = node.index,
                       .service = node.recipe->id(node.recipe_index),
                       .name = full_name_of(node),
                       .error = report.error,
                       .why = std::move(report.why),
                       .told = told});
}

void Life::failed(Node& node, Report& report) {
  release_providers(node);
  demand_children(node, 0);
  if (node.cancelling) {
    enter(node, State::waiting);
    return look(node);
  }
  enter(node, State::failed);
  note_failure(node, report, is_for_askers(node));
  if (node.lazy && !node.required) return answer_askers(node);  // they say what comes of it
  if (all_or_nothing_ && running_) end();
}

// --- who comes and goes --------------------------------------------------------------------------

void Life::introduce(Edge& edge) {
  const State state = graph_.node(edge.node).state;
  if (state == State::starting || state == State::up) show(edge, graph_.node(edge.provider));
}

void Life::show(Edge& edge, const Node& provider) {
  if (edge.told) return;
  Node& node = graph_.node(edge.node);
  edge.told = true;
  ++graph_.node(provider.index).users;
  edge.argument = graph_.object_for(edge);
  Providers& providers = graph_.watch_of(node.edges[edge.parameter]);
  order({.kind = Order::Kind::add,
         .node = &node,
         .providers = &providers,
         .object = edge.argument,
         .provider = graph_.need(edge) == Need::some ? nullptr : &provider});
}

void Life::hide(Index index) {
  Edge& edge = graph_.edge(index);
  Node& node = graph_.node(edge.node);
  edge.untelling = true;
  Providers& providers = graph_.watch_of(node.edges[edge.parameter]);
  order({.kind = Order::Kind::remove,
         .node = &node,
         .edge = index,
         .providers = &providers,
         .object = edge.argument,
         .provider = graph_.need(edge) == Need::some ? nullptr : &graph_.node(edge.provider)});
}

void Life::hidden(Edge& edge) {
  edge.told = edge.untelling = false;
  release(graph_.node(edge.provider));
}

}  // namespace weir::wiring
