// Changes of a running app: services are stopped, started, added, removed and replaced.
#include <algorithm>
#include <cassert>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/app/app.hpp"
#include "weir/app/detail/app_impl.hpp"
#include "weir/app/lifecycle/detail/explain.hpp"
#include "weir/app/lifecycle/detail/replacement.hpp"

namespace weir {
namespace {

/// Returns true if the instance runs, or if no service has requested it yet.
bool is_up(const inject::Instance& instance) noexcept {
  return instance.is_available() || instance.is_dormant();
}

/// Returns one line for each of these instances that waits.
std::vector<std::string> waiting_errors(const inject::Graph& graph,
                                        const inject::Lifecycle& lifecycle,
                                        std::span<const inject::Index> instances) {
  std::vector<std::string> errors;
  for (const inject::Index each : instances) {
    if (is_up(graph.instance(each))) continue;
    errors.push_back(inject::waiting_text(graph, lifecycle, graph.instance(each)));
  }
  return errors;
}

/// Returns the errors that a change has added.
std::vector<std::string> new_errors(const std::vector<std::string>& before,
                                    std::vector<std::string> after) {
  std::erase_if(after, [&](const std::string& each) {
    return std::ranges::find(before, each) != before.end();
  });
  return after;
}

}  // namespace

/// Returns when all state changes have ended; only a settled graph may be changed.
Task<> App::Impl::settle() {
  while (!lifecycle.settled()) co_await lifecycle.wait_settled(&inject::Lifecycle::ignore_cancel);
}

/// Returns the errors that the graph would have in addition if `fresh` took the place of `old`, or
/// if `old` were removed and `fresh` is no_index.
std::vector<std::string> App::Impl::errors_of_change(inject::Index old, inject::Index fresh,
                                                     inject::Missing missing) {
  const std::vector<std::string> before = validation_errors(missing);
  graph.replace(old, fresh);
  std::vector<std::string> after = validation_errors(missing);
  graph.replace(fresh, old);
  return new_errors(before, std::move(after));
}

void App::Impl::enqueue_instances_of(ServiceId id) {
  if (!lifecycle.is_open()) return;
  inject::Registration& registration = *graph.find(id);
  const auto enqueue = [&](inject::Instance& instance) {
    if (instance.state == inject::State::failed && !registration.stopped_manually)
      lifecycle.clear_failure(instance);
    lifecycle.enqueue(instance);
  };
  for (const inject::Index each : graph.slots(registration)) enqueue(graph.instance(each));
  for (inject::Index each = 0; registration.per_requester && each < graph.instance_count();
       ++each) {
    if (graph.instance(each).registration == &registration) enqueue(graph.instance(each));
  }
}

/// Returns the first failure from index `failures_before` on that concerns the caller of the
/// change. A failure of the service `of` always does.
Result<> App::Impl::first_failure_since(std::size_t failures_before, ServiceId of) {
  assert(failures_before <= lifecycle.failures().size());
  const auto failures = std::span(lifecycle.failures()).subspan(failures_before);
  const auto found = std::ranges::find_if(
      failures, [&](const inject::Lifecycle::Failure& each) { return each.affects(of); });
  if (found == failures.end()) return {};
  change_errors.clear();
  report_failures(failures_before);  // all failures, because one of them may be the cause
  return fail(found->error);
}

Task<Result<>> App::Impl::run_change(Task<Result<>> body) {
  if (!changes) {
    auto result = co_await std::move(body);
    errors = std::move(change_errors);
    co_return result;
  }
  inject::ChangeTasks& tasks = *changes;
  const auto outcome = std::make_shared<inject::ChangeResult>();
  ++tasks.running;
  tasks.idle.reset();
  tasks.scope.spawn(tasks.run(std::move(body), outcome, change_errors));
  if (auto waited = co_await outcome->done.wait(); !waited) co_return waited;
  errors = std::move(outcome->errors);
  if (outcome->exception != nullptr) std::rethrow_exception(outcome->exception);
  co_return outcome->result;
}

/// Runs one change at a time, including App::stop(id) and App::start(id). A service that is being
/// replaced exists twice, and failures are counted from the beginning of a change.
Task<Result<>> App::Impl::run_exclusive(Task<Result<>> body) {
  WEIR_CO_TRY(const auto change_lock, co_await change_mutex.lock());
  lifecycle.drop_past_failures();
  change_errors.clear();
  co_return co_await std::move(body);
}

Task<Result<>> App::stop(ServiceId id) {
  return impl_->run_change(impl_->run_exclusive(impl_->stop_service(id)));
}
Task<Result<>> App::start(ServiceId id) {
  return impl_->run_change(impl_->run_exclusive(impl_->start_service(id)));
}
Task<Result<>> App::apply() {
  return impl_->run_change(impl_->run_exclusive(impl_->apply_pending()));
}
Task<Result<>> App::remove(ServiceId id) {
  return impl_->run_change(impl_->run_exclusive(impl_->remove_service(id)));
}
Task<Result<>> App::replace(ServiceId old, ServiceId fresh) {
  return impl_->run_change(impl_->run_exclusive(impl_->replace_service(old, fresh)));
}

bool App::contains(ServiceId id) const noexcept {
  return impl_->graph.find(id) != nullptr;
}

Task<Result<>> App::Impl::stop_service(ServiceId id) {
  inject::Registration* const registration = graph.find(id);
  if (registration == nullptr) co_return fail(Errc::not_found);
  registration->stopped_manually = true;
  enqueue_instances_of(id);
  if (lifecycle.is_open()) lifecycle.run();
  if (!lifecycle.settled()) co_await settle();
  co_return {};
}

Task<Result<>> App::Impl::start_service(ServiceId id) {
  inject::Registration* const registration = graph.find(id);
  if (registration == nullptr) co_return fail(Errc::not_found);
  registration->stopped_manually = false;
  enqueue_instances_of(id);  // clears their failures
  const std::size_t failures_before = lifecycle.failures().size();
  if (lifecycle.is_open()) lifecycle.run();
  if (!lifecycle.settled()) co_await settle();
  co_return first_failure_since(failures_before, id);
}

Task<Result<>> App::Impl::apply_pending() {
  co_await settle();
  if (!running()) co_return {};
  const std::vector<std::string> errors_before = validation_errors(inject::Missing::unregistered);
  const std::vector<inject::Index> fresh = graph.extend();
  change_errors = new_errors(errors_before, validation_errors(inject::Missing::unregistered));
  if (!change_errors.empty()) {
    for (const inject::Index each : fresh) graph.remove(each);
    graph.take_touched();
    co_return reject(change_errors);
  }
  const std::size_t failures_before = lifecycle.failures().size();
  lifecycle.enqueue_touched();
  lifecycle.run();
  co_await settle();
  co_return first_failure_since(failures_before);
}

Task<Result<>> App::Impl::remove_service(ServiceId id) {
  const inject::Registration* const registration = graph.find(id);
  if (registration == nullptr) co_return fail(Errc::not_found);
  if (running() && registration->active) {
    change_errors = errors_of_change(id.index(), inject::no_index, inject::Missing::all);
    if (!change_errors.empty()) co_return reject(change_errors);
  }
  std::ignore = co_await stop_service(id);
  graph.remove(id.index());
  lifecycle.enqueue_touched();
  lifecycle.run();
  co_await settle();
  co_return {};
}

Task<Result<>> App::Impl::replace_service(ServiceId old, ServiceId fresh) {
  co_await settle();
  const inject::Registration* const from = graph.find(old);
  const inject::Registration* const to = graph.find(fresh);
  if (from == nullptr || to == nullptr) co_return fail(Errc::not_found);
  if (old == fresh) co_return fail(Errc::conflict);
  if (!graph.is_pending(fresh.index())) co_return fail(Errc::conflict);
  if (!running()) {
    graph.remove(fresh.index());
    co_return fail(Errc::cancelled);
  }
  if (from->effective_options().replace_policy == ReplacePolicy::side_by_side &&
      to->effective_options().replace_policy == ReplacePolicy::side_by_side) {
    inject::Replacement replacement(graph, lifecycle, old.index(), fresh.index());
    if (replacement.is_possible()) co_return co_await replace_side_by_side(old, fresh);
  }
  co_return co_await replace_exclusive(old, fresh);
}

Task<Result<>> App::Impl::replace_side_by_side(ServiceId old, ServiceId fresh) {
  const std::size_t failures_before = lifecycle.failures().size();
  inject::Replacement replacement(graph, lifecycle, old.index(), fresh.index());
  replacement.create_instances();
  change_errors = errors_of_change(old.index(), fresh.index(), inject::Missing::unregistered);
  if (!change_errors.empty()) {
    replacement.remove_stopped();  // none has started
    co_return reject(change_errors);
  }
  replacement.start();
  co_await settle();
  if (replacement.all_running()) {
    replacement.open_routes();
    co_await settle();
  }
  Result<> result = first_failure_since(failures_before);
  std::size_t failures_at_commit = 0;
  if (result && replacement.all_running()) {
    replacement.take_routes();
    co_await settle();
    failures_at_commit = lifecycle.failures().size();
    replacement.commit();
  } else {
    if (result) {
      result = fail(Errc::cancelled);
      if (running()) {
        const std::vector<inject::Index> waiting = replacement.waiting();
        change_errors = waiting_errors(graph, lifecycle, waiting);
        result = reject(change_errors);
      }
    }
    replacement.roll_back();
  }
  co_await settle();
  replacement.remove_stopped();
  co_await settle();
  // A service that waited for the new one may have failed: this is reported, but is no error.
  if (result) static_cast<void>(first_failure_since(failures_at_commit));
  co_return result;
}

/// Stops the old service and all its dependants first; their routes are kept for the new one.
Task<Result<>> App::Impl::replace_exclusive(ServiceId old, ServiceId fresh) {
  const std::size_t failures_before = lifecycle.failures().size();
  lifecycle.keep_routes(true);
  if (!graph.is_pending(old.index())) {
    std::ignore = co_await stop_service(old);
    graph.withdraw(old.index());
  }
  Result<> started = co_await start_in_place(fresh);
  if (started) {
    graph.remove(old.index());
  } else {
    co_await restore_old(old, fresh, failures_before);
  }
  lifecycle.keep_routes(false);
  if (route_registry) co_await route_registry->release_retained();
  co_return started;
}

/// Starts a registration in place of a withdrawn one. It is an error if an instance does not run,
/// unless no service has requested it yet.
Task<Result<>> App::Impl::start_in_place(ServiceId fresh) {
  const std::size_t failures_before = lifecycle.failures().size();
  graph.extend_by(fresh.index());
  change_errors = validation_errors(inject::Missing::unregistered);
  if (!change_errors.empty()) {
    co_return reject(change_errors);
  }
  lifecycle.enqueue_touched();
  lifecycle.run();
  co_await settle();
  if (!running()) co_return fail(Errc::cancelled);
  if (auto started = first_failure_since(failures_before, fresh); !started) co_return started;
  const auto instances = graph.slots(graph.registration(fresh.index()));
  change_errors = waiting_errors(graph, lifecycle, instances);
  if (change_errors.empty()) co_return {};
  co_return reject(change_errors);
}

/// Starts the old service again, with the services that failed together with the new one. An old
/// service that was not added yet is left to apply().
Task<> App::Impl::restore_old(ServiceId old, ServiceId fresh, std::size_t failures_before) {
  std::ignore = co_await stop_service(fresh);
  graph.remove(fresh.index());
  if (!graph.is_pending(old.index())) {
    graph.registration(old.index()).stopped_manually = false;
    graph.extend_by(old.index());
  }
  std::vector<inject::Index> failed;
  for (std::size_t i = failures_before; i < lifecycle.failures().size(); ++i) {
    failed.push_back(lifecycle.failures()[i].instance);
  }
  for (const inject::Index each : failed) {
    inject::Instance& instance = graph.instance(each);
    const bool has_failed =
        instance.registration != nullptr && instance.state == inject::State::failed;
    if (!running() || !has_failed) continue;
    lifecycle.clear_failure(instance);
    lifecycle.enqueue(instance);
  }
  const std::size_t failures_now = lifecycle.failures().size();
  lifecycle.enqueue_touched();
  lifecycle.run();
  co_await settle();
  report_failures(failures_now);
}

}  // namespace weir
