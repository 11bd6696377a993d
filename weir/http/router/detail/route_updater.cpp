#include "weir/http/route_publisher.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "weir/http/router/detail/route_update.hpp"

namespace weir::http {

RoutePublisher::RoutePublisher(RouteBook& book) noexcept
    : Runnable(&step), book_(book), newest_(&book.table()) {}

RoutePublisher::~RoutePublisher() {
  assert(!serving() && "a router outlives its servers and whoever changes it");
}

bool RoutePublisher::serving() const {
  const std::lock_guard lock(mutex_);
  return !readers_.empty() || busy_ || !settled_.empty();
}

// ---- Readers ------------------------------------------------------------------------------------

const RouteTable& RoutePublisher::attach(RouteReader& reader) {
  const std::lock_guard lock(mutex_);
  readers_.push_back(reader);
  return *newest_;
}

/// Under the mutex. Gives the loop that the next step is for when no reader is behind any more.
Loop* RoutePublisher::caught_up(RouteReader& reader) noexcept {
  reader.up_to_date_ = true;
  return --behind_ == 0 ? step_loop_ : nullptr;
}

void RoutePublisher::detach(RouteReader& reader) {
  Loop* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    reader.unlink();
    if (reader.up_to_date_) return;
    // Its requests have ended.
    for (RouteChange* each = published_.front(); each != nullptr; each = published_.next(*each)) {
      if (each->retires_) --each->unfinished_;
    }
    next = caught_up(reader);
  }
  if (next != nullptr) next->post_from_outside(*this);
}

void RoutePublisher::update(RouteReader& reader) {
  Loop* next = nullptr;
  bool late = false;
  {
    const std::lock_guard lock(mutex_);
    if (reader.up_to_date_) return;
    reader.table_ = newest_;
    for (RouteChange* each = published_.front(); each != nullptr; each = published_.next(*each)) {
      if (!each->retires_) continue;
      if (RouteUses* const uses = reader.uses_of(*each)) {
        uses->retiring = each;
        late = late || each->impatient_;
      } else {
        --each->unfinished_;
      }
    }
    next = caught_up(reader);
  }
  // No change ends before that step has been taken.
  if (next != nullptr) next->post_from_outside(*this);
  if (late) stop_late(reader);
}

void RoutePublisher::stop_late(RouteReader& reader) {
  std::vector<RouteUses*> late;
  {
    const std::lock_guard lock(mutex_);
    for (List<RouteChange>* const list : {&published_, &settled_}) {
      for (RouteChange* each = list->front(); each != nullptr; each = list->next(*each)) {
        RouteUses* const uses = each->impatient_ ? reader.uses_of(*each) : nullptr;
        if (uses != nullptr) late.push_back(uses);
      }
    }
  }
  // A request that is stopped may have asked for a change itself, so not under the mutex.
  for (RouteUses* const each : late) RouteUse::stop_all(each->requests);
}

void RoutePublisher::last_request_ended(RouteChange& change) {
  RunQueue done;
  {
    const std::lock_guard lock(mutex_);
    // One that is not settled yet ends with that step.
    if (--change.unfinished_ == 0 && change.stage_ == RouteChange::Stage::settled) {
      finish(change, done);
    }
  }
  send_home(done);
}

// ---- Changes ------------------------------------------------------------------------------------

void RoutePublisher::submit(RouteChange& change) {
  {
    const std::lock_guard lock(mutex_);
    asked_.push_back(change);
    if (std::exchange(busy_, true)) return;
    step_loop_ = change.loop_;
  }
  // Not at once: a request that asks for it may be in the middle of its turn.
  change.loop_->ready(*this);
}

void RoutePublisher::hurry(RouteChange& change) {
  std::vector<Homecoming::Guest*> notices;
  {
    const std::lock_guard lock(mutex_);
    change.impatient_ = true;  // where it is not published yet, readers see it then
    using Stage = RouteChange::Stage;
    if (change.stage_ == Stage::asked || change.stage_ == Stage::done) return;
    notices = notices_to_all(&RoutePublisher::stop_late);
  }
  for (Homecoming::Guest* const each : notices) each->let_go();
}

/// Under the mutex, which keeps readers and their loops. They are let go without it.
std::vector<Homecoming::Guest*> RoutePublisher::notices_to_all(
    void (RoutePublisher::*what)(RouteReader&)) {
  std::vector<Homecoming::Guest*> notices;
  for (RouteReader* each = readers_.front(); each != nullptr; each = readers_.next(*each)) {
    notices.push_back(&each->make_notice(what));
  }
  return notices;
}

void RoutePublisher::step(Runnable& self) {
  auto& publisher = static_cast<RoutePublisher&>(self);
  publisher.publishing_ ? publisher.settle() : publisher.publish();
}

void RoutePublisher::publish() {
  List<RouteChange> batch;
  {
    const std::lock_guard lock(mutex_);
    batch.splice_back(asked_);
  }
  apply(batch);
  publishing_ = true;
  std::vector<Homecoming::Guest*> notices;
  {
    const std::lock_guard lock(mutex_);
    newest_ = &book_.table();
    notices = notices_to_all(&RoutePublisher::update);
    behind_ = notices.size();
    for (RouteReader* each = readers_.front(); each != nullptr; each = readers_.next(*each)) {
      each->up_to_date_ = false;
    }
    for (RouteChange* each = batch.front(); each != nullptr; each = batch.next(*each)) {
      each->stage_ = RouteChange::Stage::published;
      if (each->retires_) each->unfinished_ = notices.size();
    }
    published_.splice_back(batch);
  }
  if (notices.empty()) return settle();
  for (Homecoming::Guest* const each : notices) each->let_go();
}

/// Every reader has the new table.
void RoutePublisher::settle() {
  old_table_.reset();
  publishing_ = false;
  RunQueue done;
  Loop* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    while (RouteChange* const change = published_.pop_front()) {
      if (change->unfinished_ == 0) {
        finish(*change, done);
      } else {
        change->stage_ = RouteChange::Stage::settled;
        settled_.push_back(*change);
      }
    }
    if (const RouteChange* const first = asked_.front()) {
      next = first->loop_;
    } else {
      busy_ = false;
    }
    step_loop_ = next;
  }
  // Who waits to be published keeps this alive, and its loop. Else nobody may any more.
  if (next != nullptr) next->post_from_outside(*this);
  send_home(done);
}

/// Under the mutex.
void RoutePublisher::finish(RouteChange& change, RunQueue& done) {
  change.unlink();
  change.stage_ = RouteChange::Stage::done;
  std::erase(of_units_, &change);
  done.push(change);
}

/// Without the mutex: waking a loop may be a system call.
void RoutePublisher::send_home(RunQueue& done) noexcept {
  while (Runnable* const next = done.pop()) {
    auto& change = static_cast<RouteChange&>(*next);
    change.loop_->post_from_outside(change);
  }
}

/// Changes that are asked for at the same time have no order. What goes makes room for what comes.
void RoutePublisher::apply(List<RouteChange>& batch) {
  for (RouteChange* each = batch.front(); each != nullptr; each = batch.next(*each)) {
    if (each->kind_ != RouteChange::Kind::add) take_out(*each);
  }
  old_table_ = book_.rebuild();
  for (RouteChange* each = batch.front(); each != nullptr; each = batch.next(*each)) {
    if (each->kind_ == RouteChange::Kind::add) put_in(*each);
  }
}

void RoutePublisher::put_in(RouteChange& change) {
  const auto added = book_.add(change.route_);
  if (!added) {
    change.error_ = added.error();
  } else if (added->conflict != nullptr) {
    change.error_ = Errc::conflict;
  } else {
    change.id_ = added->id;
  }
}

void RoutePublisher::take_out(RouteChange& change) {
  const Route* const route = book_.find(change.id_);
  if (route == nullptr) {
    change.error_ = Errc::not_found;
    return;
  }
  if (change.replacement_) {
    const PatternFault fault = check_shapes(route->pattern.shape(), change.replacement_->shape);
    if (fault != PatternFault::none) {
      change.error_ = make_error_code(fault);
      return;
    }
  }
  if (change.unit_ != nullptr) {
    const std::lock_guard lock(mutex_);
    if (waits_for(route, change.unit_)) {
      change.error_ = Errc::conflict;
      return;
    }
    of_units_.push_back(&change);
  }
  change.route_ = change.replacement_
                      ? book_.replace(change.id_, std::move(change.replacement_->handler),
                                      change.replacement_->options)
                      : book_.take_out(change.id_);
  change.retires_ = true;
}

/// Under the mutex: whether the requests of `route` end only after the unit of work `unit`, because
/// they are of it or wait themselves, directly or not, for a change that waits for it.
bool RoutePublisher::waits_for(const void* route, const void* unit) const {
  if (route == unit) return true;
  return std::ranges::any_of(of_units_, [&](const RouteChange* each) {
    return each->unit_ == route && waits_for(each->route_.get(), unit);
  });
}

}  // namespace weir::http
