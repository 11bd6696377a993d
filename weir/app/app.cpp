#include "weir/app/app.hpp"

#include <cassert>
#include <limits>
#include <stdexcept>
#include <utility>

#include "weir/app/drain.hpp"
#include "weir/app/explain.hpp"
#include "weir/app/life.hpp"
#include "weir/app/problems.hpp"
#include "weir/app/replacement.hpp"
#include "weir/cores/on_core.hpp"
#include "weir/cores/runtime.hpp"
#include "weir/task/mutex.hpp"

namespace weir {

struct App::Parts {
  wiring::Graph graph;
  wiring::Life life{graph};
  CoreMutex changing;  // who changes the graph, which takes several steps
  std::vector<std::string> problems;
  Host* host = nullptr;  // of the last start()
};

App::App() : parts_(std::make_unique<Parts>()) {}
App::~App() {
  assert(!parts_->life.opened() && "destroyed while it runs");
}

ServiceId App::add(wiring::Blueprint blueprint, Place place, unsigned core,
                   const ServiceOptions& options) {
  if (core > std::numeric_limits<std::uint16_t>::max()) {
    throw std::out_of_range("App::on_core(" + std::to_string(core) + "): there is none");
  }
  return parts_->graph.add(std::move(blueprint), place, static_cast<std::uint16_t>(core), options);
}

bool App::running() const noexcept {
  return parts_->life.running();
}

const std::vector<std::string>& App::problems() const noexcept {
  return parts_->problems;
}

Explanation App::explain() const {
  return wiring::explain(parts_->graph, parts_->life);
}

Task<Result<>> App::start() {
  const Context context = co_await this_context();
  if (parts_->life.opened()) co_return fail(Errc::conflict);  // also while it stops
  const auto changing = co_await parts_->changing.lock();
  if (!changing) co_return fail(changing.error());
  parts_->host = &context.loop->host();
  const auto loops = context.loop->group().loops();
  wiring::Graph& graph = parts_->graph;
  wiring::Life& life = parts_->life;
  graph.build(loops.size(), context.loop->core());
  parts_->problems = wiring::find_problems(graph, false);
  if (!parts_->problems.empty()) {
    for (const std::string& each : parts_->problems) parts_->host->log("weir: " + each);
    co_return fail(Errc::bad_configuration);
  }
  life.open(*context.loop, loops, *this);
  life.begin(true);
  while (!life.settled()) co_await life.settling(&wiring::Life::end);
  if (life.running() && !context.cancelled()) {
    life.begun();
    co_return {};
  }
  if (life.running()) life.end();
  while (!life.settled()) co_await life.settling(&wiring::Life::hurry);
  tell_failures(0);
  co_await close();
  if (life.failures().empty()) co_return fail(Errc::cancelled);
  co_return fail(life.failures().front().error);
}

Task<> App::stop() {
  wiring::Life& life = parts_->life;
  if (!life.opened()) co_return;
  life.end();
  while (!life.settled()) co_await life.settling(&wiring::Life::hurry);
  co_await close();
}

namespace {
void nothing() {}
}  // namespace

/// Returns when no core is in this app's code any more.
Task<> App::close() {
  const Context context = co_await this_context();
  for (Loop* const each : context.loop->group().loops()) {
    if (each != context.loop) co_await weir::on_core(each->core(), &nothing);
  }
  parts_->life.close();
}

/// Those behind the first `known`, each with the way from it to a service that nobody requires.
void App::tell_failures(std::size_t known) {
  const wiring::Life& life = parts_->life;
  for (std::size_t i = known; i < life.failures().size(); ++i) {
    parts_->problems.push_back(wiring::tell_failure(parts_->graph, life.failures()[i]));
    parts_->host->log("weir: " + parts_->problems.back());
  }
}

// --- while it runs -------------------------------------------------------------------------------

/// Only what has settled may be changed.
Task<> App::settle() {
  while (!parts_->life.settled()) co_await parts_->life.settling(&wiring::Life::go_on);
}

void App::look_at_nodes_of(ServiceId id) {
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

Result<> App::failure_since(std::size_t known) {
  const auto& failures = parts_->life.failures();
  if (failures.size() <= known) return {};
  parts_->problems.clear();
  tell_failures(known);
  return fail(failures[known].error);
}

Task<Result<>> App::stop(ServiceId id) {
  wiring::Recipe* const recipe = parts_->graph.find(id);
  if (recipe == nullptr) co_return fail(Errc::not_found);
  recipe->held = true;
  look_at_nodes_of(id);
  parts_->life.run();
  if (!parts_->life.settled()) co_await settle();
  co_return {};
}

Task<Result<>> App::start(ServiceId id) {
  wiring::Recipe* const recipe = parts_->graph.find(id);
  if (recipe == nullptr) co_return fail(Errc::not_found);
  recipe->held = false;
  look_at_nodes_of(id);  // which forgives them
  const std::size_t known = parts_->life.failures().size();
  parts_->life.run();
  if (!parts_->life.settled()) co_await settle();
  co_return failure_since(known);
}

Task<Result<>> App::apply() {
  const auto changing = co_await parts_->changing.lock();
  if (!changing) co_return fail(changing.error());
  co_return co_await apply_alone();
}

Task<Result<>> App::apply_alone() {
  co_await settle();
  if (!running()) co_return {};
  wiring::Graph& graph = parts_->graph;
  wiring::Life& life = parts_->life;
  const std::vector<wiring::Index> fresh = graph.extend();
  parts_->problems = wiring::find_problems(graph, true);
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

Task<Result<>> App::remove(ServiceId id) {
  const auto changing = co_await parts_->changing.lock();
  if (!changing) co_return fail(changing.error());
  co_return co_await remove_alone(id);
}

Task<Result<>> App::remove_alone(ServiceId id) {
  if (auto stopped = co_await stop(id); !stopped) co_return stopped;
  wiring::Graph& graph = parts_->graph;
  graph.remove(id.index());
  parts_->life.look_at_touched();
  parts_->life.run();
  co_await settle();
  co_return {};
}

Task<Result<>> App::replace(ServiceId old, ServiceId fresh) {
  const auto changing = co_await parts_->changing.lock();
  if (!changing) co_return fail(changing.error());
  co_await settle();
  const wiring::Recipe* const from = parts_->graph.find(old);
  const wiring::Recipe* const to = parts_->graph.find(fresh);
  if (from == nullptr || to == nullptr) co_return fail(Errc::not_found);
  if (!running() || !parts_->graph.is_pending(fresh.index())) co_return fail(Errc::conflict);
  if (from->said().replacing == Replacing::side_by_side &&
      to->said().replacing == Replacing::side_by_side) {
    wiring::Replacement replacement(parts_->graph, parts_->life, old.index(), fresh.index());
    if (replacement.possible()) co_return co_await replace_side_by_side(old, fresh);
  }
  if (auto removed = co_await remove_alone(old); !removed) co_return removed;
  co_return co_await apply_alone();
}

Task<Result<>> App::replace_side_by_side(ServiceId old, ServiceId fresh) {
  const std::size_t known = parts_->life.failures().size();
  wiring::Replacement replacement(parts_->graph, parts_->life, old.index(), fresh.index());
  replacement.make();
  co_await settle();
  Result<> result = failure_since(known);
  const bool good = replacement.all_up();
  if (good) {
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

namespace {

/// Cancels what is under it when its loop drains.
class EndedByDrain : DrainWatcher {
 public:
  explicit EndedByDrain(const Context& context) : DrainWatcher(&asked), source_(context.cancel) {
    if (context.loop->draining()) {
      source_.cancel();
    } else {
      context.loop->watch_drain(*this);
    }
  }
  CancelSource* source() noexcept { return &source_; }

 private:
  static void asked(DrainWatcher& self) { static_cast<EndedByDrain&>(self).source_.cancel(); }

  CancelSource source_;
};

Task<Result<>> serve(Scope&, App* app) {
  const Context context = co_await this_context();
  if (context.loop->core() != 0) {
    co_await wiring::Drain();
    co_return {};
  }
  EndedByDrain draining(context);
  const Context until_drain{context.loop, draining.source()};
  auto starting = in_context(until_drain, app->start());
  const Result<> started = co_await std::move(starting);
  if (!started && context.loop->draining()) co_return {};
  if (!started) co_return started;
  co_await wiring::Drain();
  co_await app->stop();
  co_return {};
}

}  // namespace

int App::run(Runtime& runtime) {
  return runtime.run_on_each_core(serve, this);
}

int App::run(const RuntimeOptions& options) {
  Runtime runtime(options);
  return run(runtime);
}

}  // namespace weir
