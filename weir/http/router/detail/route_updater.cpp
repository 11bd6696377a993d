#include "weir/http/router/detail/route_updater.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "weir/http/router/detail/route_update.hpp"

namespace weir::http {

RouteUpdater::RouteUpdater(RouteStore& store) noexcept
    : loop::Runnable(&step), store_(store), newest_(&store.table()) {}

RouteUpdater::~RouteUpdater() {
  assert(!in_use() && "a router outlives its servers and the tasks that change it");
}

bool RouteUpdater::in_use() const {
  const std::lock_guard lock(mutex_);
  return !snapshots_.empty() || step_queued_ || !waiting_for_requests_.empty();
}

// ---- Snapshots ----------------------------------------------------------------------------------

const RouteTable& RouteUpdater::attach(RouteSnapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  snapshots_.push_back(snapshot);
  return *newest_;
}

/// Needs the mutex. Returns the loop for the next step if all snapshots are up to date, else
/// nullptr.
Loop* RouteUpdater::mark_up_to_date(RouteSnapshot& snapshot) noexcept {
  snapshot.up_to_date_ = true;
  return --outdated_snapshots_ == 0 ? step_loop_ : nullptr;
}

void RouteUpdater::detach(RouteSnapshot& snapshot) {
  Loop* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    snapshot.unlink();
    if (snapshot.up_to_date_) return;
    // The requests of this snapshot have ended.
    for (RouteUpdate* each = published_.front(); each != nullptr; each = published_.next(*each)) {
      if (each->retires_) --each->snapshots_pending_;
    }
    next = mark_up_to_date(snapshot);
  }
  if (next != nullptr) next->post_from_foreign_thread(*this);
}

void RouteUpdater::update(RouteSnapshot& snapshot) {
  Loop* next = nullptr;
  bool late = false;
  {
    const std::lock_guard lock(mutex_);
    if (snapshot.up_to_date_) return;
    snapshot.table_ = newest_;
    for (RouteUpdate* each = published_.front(); each != nullptr; each = published_.next(*each)) {
      if (!each->retires_) continue;
      if (RouteInFlight* const in_flight = snapshot.in_flight_of(*each)) {
        in_flight->retiring = each;
        late = late || each->stop_requested_;
      } else {
        --each->snapshots_pending_;
      }
    }
    next = mark_up_to_date(snapshot);
  }
  // No change ends before the next step.
  if (next != nullptr) next->post_from_foreign_thread(*this);
  for (RouteInFlight& each : snapshot.in_flight_) {
    if (each.retiring == nullptr) continue;
    InFlightRequest::stop_all(each.requests, InFlightRequest::StopReason::removal_begins);
  }
  if (late) stop_requests_of_cancelled(snapshot);
}

void RouteUpdater::stop_requests_of_cancelled(RouteSnapshot& snapshot) {
  std::vector<RouteInFlight*> late;
  {
    const std::lock_guard lock(mutex_);
    for (weir::detail::List<RouteUpdate>* const list : {&published_, &waiting_for_requests_}) {
      for (RouteUpdate* each = list->front(); each != nullptr; each = list->next(*each)) {
        RouteInFlight* const in_flight =
            each->stop_requested_ ? snapshot.in_flight_of(*each) : nullptr;
        if (in_flight != nullptr) late.push_back(in_flight);
      }
    }
  }
  // Stop them without the mutex, because a stopped request may itself request a change.
  for (RouteInFlight* const each : late) {
    InFlightRequest::stop_all(each->requests, InFlightRequest::StopReason::removal_waits);
  }
}

void RouteUpdater::on_last_request_ended(RouteUpdate& change) {
  loop::RunQueue done;
  {
    const std::lock_guard lock(mutex_);
    // The next step finishes a change that is still in stage published.
    if (--change.snapshots_pending_ == 0 &&
        change.stage_ == RouteUpdate::Stage::waiting_for_requests) {
      finish(change, done);
    }
  }
  resume_on_owner(done);
}

// ---- Changes ------------------------------------------------------------------------------------

void RouteUpdater::submit(RouteUpdate& change) {
  {
    const std::lock_guard lock(mutex_);
    queued_.push_back(change);
    if (std::exchange(step_queued_, true)) return;
    step_loop_ = change.loop_;
  }
  // Run the step later: the requesting request may be in the middle of its turn.
  change.loop_->ready(*this);
}

void RouteUpdater::stop_requests(RouteUpdate& change) {
  std::vector<loop::DestroyQueue::Destroyable*> notices;
  {
    const std::lock_guard lock(mutex_);
    change.stop_requested_ = true;  // snapshots see it when they take over an unpublished change
    using Stage = RouteUpdate::Stage;
    if (change.stage_ == Stage::queued || change.stage_ == Stage::done) return;
    notices = make_notices(&RouteUpdater::stop_requests_of_cancelled);
  }
  for (loop::DestroyQueue::Destroyable* const each : notices) each->destroy_on_owner();
}

/// Needs the mutex, which keeps the snapshots and their loops alive. The caller releases the
/// notices without the mutex.
std::vector<loop::DestroyQueue::Destroyable*> RouteUpdater::make_notices(
    void (RouteUpdater::*what)(RouteSnapshot&)) {
  std::vector<loop::DestroyQueue::Destroyable*> notices;
  for (RouteSnapshot* each = snapshots_.front(); each != nullptr; each = snapshots_.next(*each)) {
    notices.push_back(&each->make_notice(what));
  }
  return notices;
}

void RouteUpdater::step(loop::Runnable& self) {
  auto& updater = static_cast<RouteUpdater&>(self);
  updater.publish_under_way_ ? updater.finish_publish() : updater.publish();
}

void RouteUpdater::publish() {
  weir::detail::List<RouteUpdate> batch;
  {
    const std::lock_guard lock(mutex_);
    batch.splice_back(queued_);
  }
  apply(batch);
  publish_under_way_ = true;
  std::vector<loop::DestroyQueue::Destroyable*> notices;
  {
    const std::lock_guard lock(mutex_);
    newest_ = &store_.table();
    notices = make_notices(&RouteUpdater::update);
    outdated_snapshots_ = notices.size();
    for (RouteSnapshot* each = snapshots_.front(); each != nullptr; each = snapshots_.next(*each)) {
      each->up_to_date_ = false;
    }
    for (RouteUpdate* each = batch.front(); each != nullptr; each = batch.next(*each)) {
      each->stage_ = RouteUpdate::Stage::published;
      if (each->retires_) each->snapshots_pending_ = notices.size();
    }
    published_.splice_back(batch);
  }
  if (notices.empty()) return finish_publish();
  for (loop::DestroyQueue::Destroyable* const each : notices) each->destroy_on_owner();
}

/// Runs when every snapshot has the new table.
void RouteUpdater::finish_publish() {
  old_table_.reset();
  publish_under_way_ = false;
  loop::RunQueue done;
  Loop* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    while (RouteUpdate* const change = published_.pop_front()) {
      if (change->snapshots_pending_ == 0) {
        finish(*change, done);
      } else {
        change->stage_ = RouteUpdate::Stage::waiting_for_requests;
        waiting_for_requests_.push_back(*change);
      }
    }
    if (const RouteUpdate* const first = queued_.front()) {
      next = first->loop_;
    } else {
      step_queued_ = false;
    }
    step_loop_ = next;
  }
  // A queued change keeps the updater and its loop alive. Both may be gone now if there is none.
  if (next != nullptr) next->post_from_foreign_thread(*this);
  resume_on_owner(done);
}

/// Needs the mutex.
void RouteUpdater::finish(RouteUpdate& change, loop::RunQueue& done) {
  change.unlink();
  change.stage_ = RouteUpdate::Stage::done;
  std::erase(from_requests_, &change);
  done.push(change);
}

/// Runs without the mutex, because waking a loop may be a system call.
void RouteUpdater::resume_on_owner(loop::RunQueue& done) noexcept {
  while (loop::Runnable* const next = done.pop()) {
    auto& change = static_cast<RouteUpdate&>(*next);
    change.loop_->post_from_foreign_thread(change);
  }
}

/// Applies the changes, which have no order among each other. Removals make room for additions.
void RouteUpdater::apply(weir::detail::List<RouteUpdate>& batch) {
  for (RouteUpdate* each = batch.front(); each != nullptr; each = batch.next(*each)) {
    if (each->kind_ != RouteUpdate::Kind::add) apply_removal(*each);
  }
  old_table_ = store_.rebuild();
  for (RouteUpdate* each = batch.front(); each != nullptr; each = batch.next(*each)) {
    if (each->kind_ == RouteUpdate::Kind::add) apply_add(*each);
  }
}

void RouteUpdater::apply_add(RouteUpdate& change) {
  const auto added = store_.add(change.route_);
  if (!added) {
    change.error_ = added.error();
  } else if (added->conflict != nullptr) {
    change.error_ = Errc::conflict;
  } else {
    change.id_ = added->id;
  }
}

void RouteUpdater::apply_removal(RouteUpdate& change) {
  const Route* const route = store_.find(change.id_);
  if (route == nullptr) {
    change.error_ = Errc::not_found;
    return;
  }
  if (change.replacement_) {
    const PatternError error = check_shapes(route->pattern.shape(), change.replacement_->shape);
    if (error != PatternError::none) {
      change.error_ = make_error_code(error);
      return;
    }
  }
  if (change.requesting_route_ != nullptr) {
    const std::lock_guard lock(mutex_);
    if (waits_for(route, change.requesting_route_)) {
      change.error_ = Errc::conflict;
      return;
    }
    from_requests_.push_back(&change);
  }
  change.route_ = change.replacement_
                      ? store_.replace(change.id_, std::move(change.replacement_->handler),
                                       change.replacement_->options)
                      : store_.extract(change.id_);
  change.retires_ = true;
}

/// Needs the mutex. Returns true if the requests of `route` end only after a request of
/// `requesting_route`. They do if the routes are the same. They also do if a request of `route`
/// waits for a change of a route whose requests end only after it.
bool RouteUpdater::waits_for(const void* route, const void* requesting_route) const {
  if (route == requesting_route) return true;
  return std::ranges::any_of(from_requests_, [&](const RouteUpdate* each) {
    return each->requesting_route_ == route && waits_for(each->route_.get(), requesting_route);
  });
}

}  // namespace weir::http
