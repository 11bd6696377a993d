// The services that live on one core: made, started, stopped and destroyed there, as ordered.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "weir/app/handles/detail/lazy.hpp"
#include "weir/app/node.hpp"
#include "weir/app/handles/handles.hpp"
#include "weir/http/owned_routes.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/task.hpp"

namespace weir::wiring {

/// What the home core wants done on a service's core.
struct Order {
  enum class Kind : std::uint8_t {
    make,    ///< and start
    stop,    ///< and destroy
    cancel,  ///< the start() or stop() that runs
    clear,   ///< what was left in `providers` of an earlier life
    add,     ///< `object` to what the node has been given for `edge`
    remove,  ///< `object` from it
    renew,   ///< the Lazy of `edge`, which was given `object` before, if anything
    give,    ///< `object` to that
    refuse,  ///< it, for the reason that it holds
    open,    ///< the routes of a node beside another one, whose routes `object` may be
    take,    ///< on each core that they are served on: the routes of that other one
  };
  Kind kind;
  Node* node;
  Index edge = none;
  Providers* providers = nullptr;
  void* object = nullptr;
  const Node* provider = nullptr;  ///< whose it is, for who tells when its uses have ended
  bool expecting = false;          ///< of `stop`: another one comes soon for the node's routes
  bool ending = false;             ///< and: with everything else
};

/// What has come of it.
struct Report {
  enum class Kind : std::uint8_t {
    started,
    failed,
    stopped,
    removed,  ///< what an order to remove was about
    asked,    ///< for the provider of `edge`, a Lazy
    opened,   ///< what an order to open was about
    taken,    ///< what an order to take was about
  };
  Report(Kind of, Node* about) noexcept : kind(of), node(about) {}

  Kind kind;
  Node* node;
  Index edge = none;  ///< of `removed` and `asked`
  std::error_code error;
  std::string why;  ///< of `failed`, and of `opened` with an error: that or the exception in words
};

/// The edge of the node's parameter for a Scope& or for Routes&, of which it has one at most; or
/// nullptr.
Edge* find_edge(const Node& node, Need need) noexcept;
/// The routes of a node that is there, or nullptr for one that has none.
http::OwnedRoutes* routes_of(const Node& node) noexcept;

/// Threads: its loop's. Lifetime: until nothing of it runs any more.
class CoreServices {
 public:
  using Tell = void (*)(void* listener, Report report);
  /// `tell` is called for each report, maybe inside execute(). `app` is what App& asks for, `board`
  /// is where routes go, if there is one.
  CoreServices(Loop& loop, App& app, http::RouteBoard* board, Tell tell, void* listener) noexcept
      : loop_(loop), app_(app), board_(board), tell_(tell), listener_(listener) {}
  CoreServices(const CoreServices&) = delete;
  CoreServices& operator=(const CoreServices&) = delete;

  void execute(const Order& order);
  bool is_on(const Loop& loop) const noexcept { return &loop == &loop_; }

 private:
  friend class Operation;
  void make(Node& node);
  void stop(const Order& order);
  void change(const Order& order);
  bool take_out(const Order& order);
  static void gone(UsedProvider& provider, const UsedProvider::Farewell& farewell);
  void answer(const Order& order);
  static void ask(Deferred& deferred);
  void find_arguments(Node& node, void** arguments, void* asking);
  void run(Node& node, Task<Report> task);
  void* make_routes(const Node& node);
  Task<Report> start_task(Node* node);
  Task<Report> open_task(Node* node, const http::OwnedRoutes* beside);
  Task<> stop_service(Node* node);
  Task<Report> stop_task(Node* node, http::Leaving how);
  Task<Report> give_up_task(Node* node, Report report);
  Task<> close_scope(Node* node);
  void destroy(Node& node) noexcept;
  void clean(Node& node) noexcept;

  Loop& loop_;
  App& app_;
  http::RouteBoard* board_;
  Tell tell_;
  void* listener_;
};

}  // namespace weir::wiring
