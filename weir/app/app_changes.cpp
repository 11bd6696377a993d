// What happens to an app while it runs: services stop and start, come, go, and are replaced.
#include <algorithm>
#include <cassert>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "weir/app/app.hpp"
#include "weir/app/detail/app_impl.hpp"
#include "weir/app/replacement.hpp"

namespace weir {

/// Only what has settled may be changed.
Task<> App::settle() {
  while (!parts_->life.settled()) co_await parts_->life.settling(&wiring::Life::go_on);
}

void App::look_at_nodes_of(ServiceId id) {
  if (!parts_->life.opened()) return;
  wiring::Graph& graph = parts_->graph;
  wiring::Recipe& recipe = *graph.find(id);
  const auto look = [&](wiring::Node& node) {
    if (node.state == wiring::State::failed && !recipe.held) parts_->life.forgive(node);
    parts_->life.look(node);
  };
  for (const wiring::Index each : graph.slots(recipe)) look(graph.node(each));
  for (wiring::Index each = 0; recipe.by_request && each < graph.node_count(); ++each) {
    if (graph.node(each).recipe == &recipe) look(graph.node(each));
  }
}

/// Of those behind the first `known`, the first that concerns whoever made the change, which `of`
/// always does.
Result<> App::failure_since(std::size_t known, ServiceId of) {
  assert(known <= parts_->life.failures().size());
  const auto failures = std::span(parts_->life.failures()).subspan(known);
  const auto found = std::ranges::find_if(
      failures, [&](const wiring::Life::Failure& each) { return each.concerns(of); });
  if (found == failures.end()) return {};
  parts_->problems.clear();
  tell_failures(known);  // the others, too: one of them may be its cause
  return fail(found->error);
}

Task<Result<>> App::change(Task<Result<>> body) {
  if (!parts_->changes) co_return co_await std::move(body);
  wiring::Changes& changes = *parts_->changes;
  const auto outcome = std::make_shared<wiring::Outcome>();
  ++changes.running;
  changes.none.reset();
  changes.scope.spawn(changes.run(std::move(body), outcome));
  if (auto waited = co_await outcome->known.wait(); !waited) co_return waited;
  if (outcome->thrown != nullptr) std::rethrow_exception(outcome->thrown);
  co_return outcome->result;
}

/// One after the other: also stopping and starting by hand, for what is being replaced is there
/// twice, and failures are counted from the beginning of a change.
Task<Result<>> App::change_alone(Task<Result<>> body) {
  const auto changing = co_await parts_->changing.lock();
  if (!changing) co_return fail(changing.error());
  co_return co_await std::move(body);
}

Task<Result<>> App::stop(ServiceId id) {
  return change(change_alone(stop_one(id)));
}
Task<Result<>> App::start(ServiceId id) {
  return change(change_alone(start_one(id)));
}
Task<Result<>> App::apply() {
  return change(change_alone(apply_alone()));
}
Task<Result<>> App::remove(ServiceId id) {
  return change(change_alone(remove_alone(id)));
}
Task<Result<>> App::replace(ServiceId old, ServiceId fresh) {
  return change(change_alone(replace_alone(old, fresh)));
}

bool App::knows(ServiceId id) const noexcept {
  return parts_->graph.find(id) != nullptr;
}

Task<Result<>> App::stop_one(ServiceId id) {
  wiring::Recipe* const recipe = parts_->graph.find(id);
  if (recipe == nullptr) co_return fail(Errc::not_found);
  recipe->held = true;
  look_at_nodes_of(id);
  if (parts_->life.opened()) parts_->life.run();
  if (!parts_->life.settled()) co_await settle();
  co_return {};
}

Task<Result<>> App::start_one(ServiceId id) {
  wiring::Recipe* const recipe = parts_->graph.find(id);
  if (recipe == nullptr) co_return fail(Errc::not_found);
  recipe->held = false;
  look_at_nodes_of(id);  // which forgives them
  const std::size_t known = parts_->life.failures().size();
  if (parts_->life.opened()) parts_->life.run();
  if (!parts_->life.settled()) co_await settle();
  co_return failure_since(known, id);
}

Task<Result<>> App::apply_alone() {
  co_await settle();
  if (!running()) co_return {};
  wiring::Graph& graph = parts_->graph;
  wiring::Life& life = parts_->life;
  const std::vector<wiring::Index> fresh = graph.extend();
  parts_->problems = problems_now(true);
  if (!parts_->problems.empty()) {
    for (const wiring::Index each : fresh) graph.remove(each);
    graph.take_touched();
    for (const std::string& each : parts_->problems) parts_->host->log("weir: " + each);
    co_return fail(Errc::bad_configuration);
  }
  const std::size_t known = life.failures().size();
  life.look_at_touched();
  life.run();
  co_await settle();
  co_return failure_since(known);
}

Task<Result<>> App::remove_alone(ServiceId id) {
  if (auto stopped = co_await stop_one(id); !stopped) co_return stopped;
  wiring::Graph& graph = parts_->graph;
  graph.remove(id.index());
  parts_->life.look_at_touched();
  parts_->life.run();
  co_await settle();
  co_return {};
}

Task<Result<>> App::replace_alone(ServiceId old, ServiceId fresh) {
  co_await settle();
  const wiring::Recipe* const from = parts_->graph.find(old);
  const wiring::Recipe* const to = parts_->graph.find(fresh);
  if (from == nullptr || to == nullptr) co_return fail(Errc::not_found);
  if (!parts_->graph.is_pending(fresh.index())) co_return fail(Errc::conflict);
  if (!running()) {
    parts_->graph.remove(fresh.index());
    co_return fail(Errc::cancelled);
  }
  if (from->said().replacing == Replacing::side_by_side &&
      to->said().replacing == Replacing::side_by_side) {
    wiring::Replacement replacement(parts_->graph, parts_->life, old.index(), fresh.index());
    if (replacement.possible()) co_return co_await replace_side_by_side(old, fresh);
  }
  co_return co_await replace_exclusively(old, fresh);
}

Task<Result<>> App::replace_side_by_side(ServiceId old, ServiceId fresh) {
  const std::size_t known = parts_->life.failures().size();
  wiring::Replacement replacement(parts_->graph, parts_->life, old.index(), fresh.index());
  replacement.make();
  co_await settle();
  if (replacement.all_up()) {
    replacement.open_routes();
    co_await settle();
  }
  Result<> result = failure_since(known);
  if (result && replacement.all_up()) {
    replacement.take_routes();
    co_await settle();
    replacement.take_over();
  } else {
    if (result) result = fail(running() ? Errc::bad_configuration : Errc::cancelled);
    replacement.drop();
  }
  co_await settle();
  replacement.bury();
  co_await settle();
  co_return result;
}

/// First the old one goes, with all that depend on it; their routes are kept for who comes.
Task<Result<>> App::replace_exclusively(ServiceId old, ServiceId fresh) {
  wiring::Life& life = parts_->life;
  const std::size_t known = life.failures().size();
  life.expect_routes(true);
  static_cast<void>(co_await stop_one(old));
  parts_->graph.withdraw(old.index());
  Result<> started = co_await start_in_place(fresh);
  if (started) {
    parts_->graph.remove(old.index());
  } else {
    co_await put_back(old, fresh, known);
  }
  life.expect_routes(false);
  if (parts_->board) co_await parts_->board->release_kept();
  co_return started;
}

/// A recipe in the place of one that was withdrawn; all that can run must run then.
Task<Result<>> App::start_in_place(ServiceId fresh) {
  wiring::Graph& graph = parts_->graph;
  wiring::Life& life = parts_->life;
  const std::size_t known = life.failures().size();
  graph.extend_by(fresh.index());
  parts_->problems = problems_now(true);
  if (!parts_->problems.empty()) {
    for (const std::string& each : parts_->problems) parts_->host->log("weir: " + each);
    co_return fail(Errc::bad_configuration);
  }
  life.look_at_touched();
  life.run();
  co_await settle();
  if (!running()) co_return fail(Errc::cancelled);
  if (auto started = failure_since(known, fresh); !started) co_return started;
  const auto nodes = graph.slots(graph.recipe(fresh.index()));
  const bool up = std::ranges::all_of(
      nodes, [&](wiring::Index each) { return graph.node(each).state == wiring::State::up; });
  if (!up) co_return fail(Errc::bad_configuration);
  co_return {};
}

/// The old one starts again, with those who failed with the new one.
Task<> App::put_back(ServiceId old, ServiceId fresh, std::size_t known) {
  wiring::Graph& graph = parts_->graph;
  wiring::Life& life = parts_->life;
  static_cast<void>(co_await stop_one(fresh));
  graph.remove(fresh.index());
  graph.recipe(old.index()).held = false;
  graph.extend_by(old.index());
  std::vector<wiring::Index> failed;
  for (std::size_t i = known; i < life.failures().size(); ++i) {
    failed.push_back(life.failures()[i].node);
  }
  for (const wiring::Index each : failed) {
    wiring::Node& node = graph.node(each);
    const bool has_failed = node.recipe != nullptr && node.state == wiring::State::failed;
    if (!running() || !has_failed) continue;
    life.forgive(node);
    life.look(node);
  }
  const std::size_t known_now = life.failures().size();
  life.look_at_touched();
  life.run();
  co_await settle();
  tell_failures(known_now);
}

}  // namespace weir
