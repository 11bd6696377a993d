// The waits of requests for a connection: their order and their limits. client_pool.cpp opens,
// keeps and closes the connections.
#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/client/detail/h2_client_connection.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/context.hpp"
#include "weir/task/select.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
namespace {

bool try_take(Semaphore& permits, SemaphorePermit& permit) noexcept {
  if (permit.count() > 0) return true;
  std::optional<SemaphorePermit> free = permits.try_acquire();
  if (free) permit = std::move(*free);
  return free.has_value();
}

/// Counts a waiting request until the end of its block, also if an exception ends it.
class CountedWait {
 public:
  explicit CountedWait(std::size_t& count) noexcept : count_(count) { ++count_; }
  CountedWait(const CountedWait&) = delete;
  CountedWait& operator=(const CountedWait&) = delete;
  ~CountedWait() { --count_; }

 private:
  std::size_t& count_;
};

}  // namespace

/// A request that waits in the queue of its origin. Only the first one looks at the connections and
/// the rights of the origin, so it is the only one that is told of a change.
class ClientPool::Waiting : public QueueNode {
 public:
  Waiting(ClientPool& pool, Origin& origin, Loop& loop, Instant deadline) noexcept
      : pool_(pool), origin_(origin), loop_(loop), deadline_(deadline), counted_(pool.waiting_) {
    origin.waiting.push_back(*this);
  }
  ~Waiting() { leave_queue(); }

  Origin& origin() const noexcept { return origin_; }
  Loop& loop() const noexcept { return loop_; }
  Instant deadline() const noexcept { return deadline_; }
  /// Returns true if no other request has to be served before.
  bool may_look() const noexcept { return !linked() || origin_.waiting.front() == this; }
  /// Lets the next request look, if it may find something.
  void leave_queue() noexcept {
    if (!linked()) return;
    unlink();
    const bool free = origin_.permits.available() > 0 || pool_.http2_of(origin_, 0) != nullptr;
    if (free) pool_.notify_first(origin_);
  }

  Instant connect_until = never;  // while another request opens the first connection
  Instant queue_until = never;    // later

 private:
  ClientPool& pool_;
  Origin& origin_;
  Loop& loop_;
  Instant deadline_;
  CountedWait counted_;
};

void ClientPool::notify_first(Origin& origin) noexcept {
  if (QueueNode* const first = origin.waiting.front()) first->changed.set();
}

void ClientPool::on_http2_changed(const Lease& lease) noexcept {
  notify_first(*lease.origin_);
}

H2ClientConnection* ClientPool::http2_for(const Url& url, std::uint64_t after) noexcept {
  if (http2_.empty()) return nullptr;
  const Origin* const origin = known_origin(key_of(url));
  if (origin == nullptr || !origin->waiting.empty()) return nullptr;
  return http2_of(*origin, after);
}

H2ClientConnection* ClientPool::http2_of(const Origin& origin, std::uint64_t after) noexcept {
  for (Http2Node* each = origin.http2.front(); each != nullptr; each = origin.http2.next(*each)) {
    const bool usable = each->connection.number() > after && each->connection.may_open();
    if (usable) return &each->connection;
  }
  return nullptr;
}

bool ClientPool::try_take_of_pool(SemaphorePermit& permit) noexcept {
  if (try_take(permits_, permit)) return true;
  if (http2_idle_count_ == 0) return false;
  // The first idle connection is the oldest one.
  for (Http2Node* each = http2_.front(); each != nullptr; each = http2_.next(*each)) {
    if (!each->connection.is_idle()) continue;
    each->connection.close(make_error_code(Errc::closed));
    return try_take(permits_, permit);
  }
  return false;
}

std::optional<ClientPool::Lease> ClientPool::try_acquire(const Url& url) {
  Lease lease(*this, origin_of(url));
  Origin& origin = *lease.origin_;
  if (is_opening(origin) || !origin.waiting.empty()) return std::nullopt;
  const bool free = try_take(origin.permits, lease.of_origin_) && try_take_of_pool(lease.of_pool_);
  if (!free) return std::nullopt;
  return lease;
}

Task<Result<ClientPool::Place>> ClientPool::acquire(const Url& url, Instant deadline,
                                                    std::uint64_t after) {
  if (waiting_ >= options_->limits.waiting_max) co_return fail(ClientError::queue_full);
  const Context own = co_await this_context();
  Place place;
  Lease lease(*this, origin_of(url));
  Origin& origin = *lease.origin_;
  Waiting waiting(*this, origin, *own.loop, deadline);
  while (true) {
    SemaphorePermit* room = nullptr;
    if (waiting.may_look()) {
      place.http2 = http2_of(origin, after);
      if (place.http2 != nullptr) co_return std::move(place);
      if (!is_opening(origin) && try_take(origin.permits, lease.of_origin_)) {
        if (try_take_of_pool(lease.of_pool_)) break;
        room = &lease.of_pool_;
        const bool shares = may_speak_http2(url) && !origin.is_http1;
        if (!shares) waiting.leave_queue();
      }
    }
    const Result<> waited = co_await wait(waiting, room);
    if (!waited) co_return fail(waited.error());
  }
  lease.connect_until_ = waiting.connect_until;
  place.lease = std::move(lease);
  co_return std::move(place);
}

/// Waits until the request may find what it needs, or the wait reaches a limit. `room` also wants
/// the right to a connection of any origin. The time for which another request opens the first
/// connection counts as time of an own attempt.
/// Errors: those of acquire(), if the limit was reached before.
Task<Result<>> ClientPool::wait(Waiting& waiting, SemaphorePermit* room) {
  const Instant now = waiting.loop().platform().now();
  const Origin& origin = waiting.origin();
  const bool connecting = is_opening(origin) && origin.http2.empty();
  Instant& until = connecting ? waiting.connect_until : waiting.queue_until;
  const ClientLimits& limits = options_->limits;
  if (until == never) {
    until = after(now, connecting ? limits.connect_timeout : limits.queue_timeout);
    (connecting ? waiting.queue_until : waiting.connect_until) = never;
  }
  const Instant end = std::min(until, waiting.deadline());
  if (end <= now) {
    if (end == waiting.deadline()) co_return fail(ClientError::timed_out);
    co_return fail(connecting ? ClientError::connect_timed_out : ClientError::queue_timed_out);
  }
  const Duration left = end == never ? Duration::max() : end - now;
  Result<> waited;
  if (room == nullptr) {
    auto changing = timeout(left, waiting.changed.wait());
    waited = co_await std::move(changing);
  } else {
    const CountedWait counted(waiting_for_room_);
    auto either = timeout(left, select(permits_.acquire(), waiting.changed.wait()));
    auto first = co_await std::move(either);
    if (!first) {
      waited = fail(first.error());
    } else if (auto* const permit = std::get_if<0>(&*first)) {
      *room = std::move(**permit);
    }
  }
  if (!waited && waited.error() == Errc::timed_out) co_return {};
  co_return waited;
}

}  // namespace weir::http
