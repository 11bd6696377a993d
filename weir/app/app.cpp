#include "weir/app/app.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "weir/app/detail/app_impl.hpp"
#include "weir/task/drain.hpp"
#include "weir/app/explain.hpp"
#include "weir/app/problems.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir {

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

ServiceId App::add_fake(const wiring::Type& type, wiring::Blueprint blueprint) {
  assert(!parts_->life.opened() && "before the start");
  wiring::Graph& graph = parts_->graph;
  std::optional<Place> place;
  std::uint16_t core = 0;
  ServiceOptions options;
  for (wiring::Index index = 0; index < graph.recipe_count(); ++index) {
    const wiring::Recipe& each = graph.recipe(index);
    if (each.plan == nullptr) continue;
    const auto provided = each.plan->provided;
    if (std::ranges::find(provided, &type, &wiring::Provided::type) == provided.end()) continue;
    if (!place) {
      place = each.place;
      core = each.core;
      options = each.said();
    }
    graph.remove(index);
  }
  if (!place) throw std::invalid_argument("App::fake(): nobody provides " + std::string(type.name));
  return graph.add(std::move(blueprint), *place, core, options);
}

void App::mount(http::Router& router, const http::RouteBoardOptions& options) {
  assert(!parts_->life.opened() && "before the start");
  parts_->board.emplace(router, options);
}

http::RouteBoard* App::route_board() const noexcept {
  return parts_->board ? &*parts_->board : nullptr;
}

std::vector<std::string> App::problems_now(bool missing_may_come) const {
  return wiring::find_problems(parts_->graph, missing_may_come, parts_->board.has_value());
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

Task<Explanation> App::explained() const {
  // acquire, with the release in start() and close().
  const Loop* const home = parts_->home.load(std::memory_order_acquire);
  if (home == nullptr) co_return Explanation();
  co_return co_await weir::on_core(home->core(), &App::explain, this);
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
  parts_->problems = problems_now(false);
  if (!parts_->problems.empty()) {
    for (const std::string& each : parts_->problems) parts_->host->log("weir: " + each);
    co_return fail(Errc::bad_configuration);
  }
  if (parts_->board) parts_->board->open(*context.loop, loops);
  parts_->changes.emplace(*context.loop);
  life.open(*context.loop, loops, *this, route_board());
  parts_->home.store(context.loop, std::memory_order_release);
  life.begin(true);
  while (!life.settled()) co_await life.settling(&wiring::Life::end);
  if (life.running() && !context.cancelled()) {
    life.begun();
    if (parts_->board) co_await parts_->board->let_serve();
    if (life.running()) co_return {};
    co_return fail(Errc::cancelled);  // whoever stopped it closes it, too
  }
  if (life.running()) life.end();
  while (!life.settled()) co_await life.settling(&wiring::Life::hurry);
  const Result<> started = failure_since(0);
  co_await close();
  if (started) co_return fail(Errc::cancelled);
  co_return started;
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

/// Returns when no core is in this app's code any more. What still changes sees that all has ended.
Task<> App::close() {
  const Context context = co_await this_context();
  const Context shield{context.loop, nullptr};
  auto locking = in_context(shield, as_task(parts_->closing.lock()));
  const auto alone = co_await std::move(locking);
  if (!parts_->life.opened() || running()) co_return;  // somebody else has closed it
  parts_->home.store(nullptr, std::memory_order_release);
  do {
    auto quiet = in_context(shield, as_task(parts_->changes->none.wait()));
    static_cast<void>(co_await std::move(quiet));
    for (Loop* const each : context.loop->group().loops()) {
      if (each != context.loop) co_await weir::on_core(each->core(), &nothing);
    }
  } while (parts_->changes->running != 0);
  parts_->life.close();
  parts_->changes.reset();
  if (parts_->board) parts_->board->close();
}

/// Those behind the first `known`, each with the way from it to a service that nobody requires.
void App::tell_failures(std::size_t known) {
  const wiring::Life& life = parts_->life;
  for (std::size_t i = known; i < life.failures().size(); ++i) {
    parts_->problems.push_back(wiring::tell_failure(parts_->graph, life.failures()[i]));
    parts_->host->log("weir: " + parts_->problems.back());
  }
}

namespace {

Task<Result<>> serve(Scope&, App* app) {
  const Context context = co_await this_context();
  if (context.loop->core() != 0) {
    co_await wiring::Drain();
    co_return {};
  }
  wiring::UntilDrain until_drain(context);
  auto starting = in_context(until_drain.context(), app->start());
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
