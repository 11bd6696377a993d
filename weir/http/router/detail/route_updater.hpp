// Publishes the routes of a router to the cores that serve them, one table after another.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "weir/base/detail/list.hpp"
#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/http/router/detail/route_store.hpp"
#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/loop/detail/destroy_queue.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {

class RouteUpdate;

/// Collects the changes that are requested at the same time, makes one table of them, and
/// notifies every snapshot. Each snapshot takes the table over in a runnable of its own on its
/// loop. No request of that core is being looked up then, and its waiting requests are counted by
/// their routes (InFlightRequest). When all snapshots have the table, the updater frees the
/// previous table and handles the changes that came meanwhile. A change is done then, or later
/// when its route has no more requests. The updater posts the change's task to the task's loop.
///
/// The updater works in runnables on the loop of a task that requested a change. It moves from
/// loop to loop, so that its loop is always that of a task that still waits. Requests use no part
/// of the updater.
///
/// Threads: any.
/// Lifetime: outlives snapshots and changes, so it ends after the last loop that has one.
class RouteUpdater : loop::Runnable {
 public:
  explicit RouteUpdater(RouteStore& store) noexcept;
  ~RouteUpdater();

  /// Returns true if a snapshot is attached or a change is in progress. The store does not belong
  /// to the caller then.
  bool in_use() const;

  // Snapshots, each on its loop.

  /// Notifies the snapshot of every table from now on.
  /// Returns: the table that the snapshot begins with.
  const RouteTable& attach(RouteSnapshot& snapshot);
  void detach(RouteSnapshot& snapshot);
  /// Makes the snapshot take over the published table. Runs in a runnable of its own.
  void update(RouteSnapshot& snapshot);
  /// Stops the requests that a cancelled change waits for.
  void stop_requests_of_cancelled(RouteSnapshot& snapshot);
  /// Records that the requests that the change waits for have ended on one snapshot.
  void on_last_request_ended(RouteUpdate& change);

  // Changes, each on its loop.

  /// Queues the change, which waits from now on.
  void submit(RouteUpdate& change);
  /// Stops the requests that the change waits for.
  void stop_requests(RouteUpdate& change);
  /// Frees the slot of a route that is about to be destroyed.
  void release_slot(const Route& route) { store_.slots().release(route.slot); }

 private:
  static void step(loop::Runnable& self);
  void publish();
  void finish_publish();
  void apply(weir::detail::List<RouteUpdate>& batch);
  void apply_removal(RouteUpdate& change);
  void apply_add(RouteUpdate& change);
  bool waits_for(const void* route, const void* requesting_route) const;
  std::vector<loop::DestroyQueue::Destroyable*> make_notices(
      void (RouteUpdater::*what)(RouteSnapshot&));
  Loop* mark_up_to_date(RouteSnapshot& snapshot) noexcept;
  void finish(RouteUpdate& change, loop::RunQueue& done);
  static void resume_on_owner(loop::RunQueue& done) noexcept;

  // The thread that runs step() has exclusive use of these members.
  RouteStore& store_;
  std::unique_ptr<RouteTable> old_table_;
  bool publish_under_way_ = false;  // true if the next step is finish_publish()

  // Guards the members below, and the members of snapshots and changes that name it.
  mutable std::mutex mutex_;
  const RouteTable* newest_;
  weir::detail::List<RouteSnapshot> snapshots_;
  std::size_t outdated_snapshots_ = 0;  // snapshots without the newest table
  bool step_queued_ = false;            // true if a step is queued, or waits for snapshots
  Loop* step_loop_ = nullptr;
  weir::detail::List<RouteUpdate> queued_;
  weir::detail::List<RouteUpdate> published_;             // until all snapshots are up to date
  weir::detail::List<RouteUpdate> waiting_for_requests_;  // changes that wait for requests
  std::vector<RouteUpdate*> from_requests_;  // changes of both lists that a request waits for
};

}  // namespace weir::http
