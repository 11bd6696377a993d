// Publishes the routes of a router to the cores that serve them: one new table after the other.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "weir/base/detail/list.hpp"
#include "weir/http/router/detail/route_store.hpp"
#include "weir/http/route_reader.hpp"
#include "weir/loop/homecoming.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/contract/detail/runnable.hpp"

namespace weir::http {

class RouteChange;

/// Takes all changes that are asked for at a time, makes one table of them, and tells every reader.
/// Each takes it over in a runnable of its own on its loop: then no request of that core is in the
/// middle of being looked up, and those that wait are counted by their routes (RouteUse). When all
/// have it, the table before is freed, and what was asked for meanwhile has its turn. A change is
/// done then, or when its route has no requests any more; its task is posted home.
///
/// This work is done in runnables of the loop of one who asked; it goes from loop to loop, so that
/// it is always one whose task still waits. Requests touch nothing here.
///
/// Threads: any. Lifetime: outlives readers and changes, so ends after the last loop with one.
class RoutePublisher : Runnable {
 public:
  explicit RoutePublisher(RouteBook& book) noexcept;
  ~RoutePublisher();

  /// Whether anybody reads, or a change is under way: the book is not the caller's then.
  bool serving() const;

  // Readers, each on its loop.

  /// From now on it hears of all that is published; gives what it begins with.
  const RouteTable& attach(RouteReader& reader);
  void detach(RouteReader& reader);
  /// In a runnable of its own: takes over what has been published.
  void update(RouteReader& reader);
  /// Stops the requests that somebody has no patience with.
  void stop_late(RouteReader& reader);
  /// Of those that the change waits for on one reader.
  void last_request_ended(RouteChange& change);

  // Changes, each on its loop.

  /// It waits from now on.
  void submit(RouteChange& change);
  /// Asks the requests that it waits for to stop.
  void hurry(RouteChange& change);
  /// The route is about to be destroyed.
  void forget(const Route& route) { book_.slots().give_back(route.slot); }

 private:
  static void step(Runnable& self);
  void publish();
  void settle();
  void apply(List<RouteChange>& batch);
  void take_out(RouteChange& change);
  void put_in(RouteChange& change);
  bool waits_for(const void* route, const void* unit) const;
  std::vector<Homecoming::Guest*> notices_to_all(void (RoutePublisher::*what)(RouteReader&));
  Loop* caught_up(RouteReader& reader) noexcept;
  void finish(RouteChange& change, RunQueue& done);
  static void send_home(RunQueue& done) noexcept;

  // Whoever runs step() has these for itself.
  RouteBook& book_;
  std::unique_ptr<RouteTable> old_table_;
  bool publishing_ = false;  // the next step is to settle()

  mutable std::mutex mutex_;  // guards what follows, and what readers and changes say of it
  const RouteTable* newest_;
  List<RouteReader> readers_;
  std::size_t behind_ = 0;  // readers that are not up to date
  bool busy_ = false;       // a step is queued on step_loop_, or waits for readers
  Loop* step_loop_ = nullptr;
  List<RouteChange> asked_;
  List<RouteChange> published_;         // until all readers are up to date
  List<RouteChange> settled_;           // wait for requests
  std::vector<RouteChange*> of_units_;  // all of these two that a unit of work waits for
};

}  // namespace weir::http
