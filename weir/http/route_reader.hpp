// What one core's server sees of a router's routes, and the requests of that core that keep them.
#pragma once

#include <deque>
#include <memory>

#include "weir/base/detail/list.hpp"
#include "weir/http/matching/detail/route_table.hpp"
#include "weir/loop/homecoming.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {

class RouteChange;
class RoutePublisher;
class RouteReader;
struct RouteTenancy;
struct RouteUses;

/// A request that waits keeps its route until this ends. It lives in what serves the connection;
/// what is answered within one turn needs none. Threads: its loop's.
class RouteUse : public ListNode {
 public:
  /// Asks the request to end soon: whoever removes its route does not want to wait for it any
  /// longer. May be called again and again; resumes nobody itself.
  using Stop = void (*)(RouteUse&);
  /// Of `route`, or of none when it is nullptr. Throws std::bad_alloc where nobody has made room.
  RouteUse(RouteReader& reader, const Route* route, Stop stop);
  ~RouteUse();

  /// Asks all of them.
  static void stop_all(List<RouteUse>& requests);

 private:
  RouteReader& reader_;
  RouteUses* uses_ = nullptr;
  RouteTenancy* tenancy_ = nullptr;
  Stop stop_;
};

/// The requests of one route that wait on one core.
struct RouteUses {
  List<RouteUse> requests;
  RouteChange* retiring = nullptr;  ///< waits for the last of them
};

/// The routes as one server on one core serves them: the newest that have been published, taken
/// over between two of its loop's runnables, so that nothing changes while a request is looked up
/// and answered at once.
/// Threads: its loop's, or any while that does not run. Lifetime: its loop and its router outlive
/// it; it outlives its server's requests.
class RouteReader : public ListNode {
 public:
  RouteReader(Loop& loop, RoutePublisher& publisher);
  ~RouteReader();
  const RouteTable& table() const noexcept { return *table_; }
  /// So that a RouteUse of `route` needs no memory.
  void make_room(const Route& route) {
    if (route.tenancies == nullptr) static_cast<void>(uses_of(route));
  }

 private:
  friend class RoutePublisher;
  friend class RouteUse;
  struct Door;
  class Notice;

  /// Calls the publisher's function with this on this one's loop when it is let go, on any thread;
  /// not at all when this is no more. Made while this is known to live.
  Homecoming::Guest& make_notice(void (RoutePublisher::*what)(RouteReader&));
  RouteUses& uses_of(const Route& route);
  RouteUses* uses_of(const RouteChange& change) noexcept;
  void left(RouteUses& uses);

  const RouteTable* table_;
  Loop& loop_;
  RoutePublisher& publisher_;
  std::shared_ptr<Door> door_;
  std::deque<RouteUses> uses_;  // by the slots of routes
  bool up_to_date_ = true;      // guarded by the publisher's mutex
};

}  // namespace weir::http
