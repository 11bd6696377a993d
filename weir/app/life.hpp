// The life of services: which of them run, in what order they start and stop.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "weir/app/batches.hpp"
#include "weir/app/core_services.hpp"
#include "weir/app/graph.hpp"
#include "weir/task/context.hpp"

namespace weir::wiring {

/// Lets each node of a graph run whenever it is wanted and has everything that it requires, and
/// none a moment longer than what depends on it. Each change makes its neighbours be looked at
/// again; nobody else is touched. Nodes change on the home core only, by orders to and reports from
/// the cores that they live on.
/// Threads: the home core's. Lifetime: of open() to the end, the loops'.
class Life {
 public:
  /// Why a node could not be started.
  struct Failure {
    Index node;
    ServiceId service;  ///< whose node it was: by now it may be another's, or nobody's
    std::string name;   ///< of that service, see full_name_of()
    std::error_code error;
    std::string why;
    bool told = false;  ///< to those who asked for it by a Lazy: it concerns nobody else
    /// Whether it does who made a change of that service.
    bool concerns(ServiceId changed) const noexcept { return !told || service == changed; }
  };

  explicit Life(Graph& graph) noexcept : graph_(graph) {}
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  /// Before the first begin(): where nodes live. Nothing runs.
  void open(Loop& home, std::span<Loop* const> loops, App& app, http::RouteBoard* board);
  /// After the last end(): forgets the loops, which nothing is on any more.
  void close() noexcept {
    home_ = nullptr;
    loops_ = {};
  }
  /// Lets all run that can. When one fails and `all_or_nothing`, all stop again.
  void begin(bool all_or_nothing);
  /// From now on a failure is that node's own.
  void begun() noexcept { all_or_nothing_ = false; }
  /// Stops all, dependants first.
  void end();
  /// Cancels each start() and stop() that runs.
  void hurry();
  /// For settling(): a cancellation changes nothing.
  void go_on() noexcept {}
  /// Gives a node that failed another chance.
  void forgive(Node& node);
  /// Tells a node of a provider that is there already.
  void introduce(Edge& edge);
  /// Opens the routes of a node that is up, beside `old`, which it replaces; a failure is one of
  /// failures(). Nothing where it has none.
  void open_routes(Node& node, const Node& old);
  /// From now on, on each core, they are this node's, in the place of the old one's.
  void take_routes(Node& node);
  /// Whether those that stop now leave their routes for somebody who comes soon.
  void expect_routes(bool expecting) noexcept { expecting_ = expecting; }
  /// Looks at a node again after something about it was changed from outside.
  void look(Node& node) {
    if (node.queued) return;
    node.queued = true;
    queue_.push_back(node.index);
  }
  /// The same for all that the graph has made or bound anew.
  void look_at_touched();
  /// Does what is to be done now.
  void run();

  bool running() const noexcept { return running_; }
  bool opened() const noexcept { return home_ != nullptr; }
  /// Whether nothing is on its way from one state to another.
  bool settled() const noexcept { return !busy_ && on_the_way_ == 0; }
  const std::vector<Failure>& failures() const noexcept { return failures_; }
  Loop& home() const noexcept { return *home_; }
  std::span<Loop* const> loops() const noexcept { return loops_; }

  /// `co_await life.settling(&Life::end)`: returns when settled().
  /// Cancel: calls that function and goes on waiting.
  class Settling : Waiter, CancelNode {
   public:
    using OnCancel = void (Life::*)();
    Settling(Life& life, OnCancel on_cancel) noexcept
        : CancelNode(&cancel), life_(life), on_cancel_(on_cancel), place_(*this) {}
    bool await_ready() const noexcept { return false; }
    template <HasContext Promise>
    bool await_suspend(std::coroutine_handle<Promise> handle) {
      wait_in(handle);
      return begin();
    }
    void await_resume() const noexcept {}

   private:
    friend class Life;
    struct Place : ListNode {
      explicit Place(Settling& settling) noexcept : of(settling) {}
      Settling& of;
    };
    static void cancel(CancelNode& node);
    bool begin();
    void settled();

    Life& life_;
    OnCancel on_cancel_;
    Place place_;
  };
  Settling settling(Settling::OnCancel on_cancel) noexcept { return Settling(*this, on_cancel); }

 private:
  /// A core other than home: its services, and what goes there and back.
  struct Outpost {
    Outpost(Loop& loop, App& app, http::RouteBoard* board, Life& life);
    static void receive(void* self, std::vector<Order>& orders);
    static void tell(void* self, Report report);

    CoreServices services;
    Batches<Order> in;
    Batches<Report>& home;
    std::vector<Order> orders;    // the home core's: not sent yet
    std::vector<Report> reports;  // this core's: likewise
    bool receiving = false;
  };

  static void tell(void* self, Report report);
  static void receive(void* self, std::vector<Report>& reports);
  void order(const Order& order) { order_on(order.node->core, order); }
  void order_on(std::size_t core, const Order& order);

  bool wanted(const Node& node) const noexcept;
  bool may_stay(const Node& node) const noexcept { return wanted(node) && node.absent == 0; }
  void enter(Node& node, State state);
  void step(Node& node);
  void call(Node& node);
  void demand_children(Node& node, std::uint32_t demand);
  void start(Node& node);
  void leave(Node& node);
  void stop(Node& node);
  void release_providers(Node& node);
  void release(Node& provider);

  // For what is taken as Lazy; edges by index.
  void renew(Index edge);
  void asked(Index edge);
  void answer(Index edge);
  void answer_questions_of(Node& node);
  void answer_askers(const Node& provider);
  void give(Index edge);
  void refuse(Index edge, std::error_code error);
  std::error_code failure_of(const Node& node) const;
  bool is_for_askers(const Node& node) const;

  void handle(Report& report);
  void started(Node& node);
  void failed(Node& node, Report& report);
  void note_failure(const Node& node, Report& report, bool told);
  void show(Edge& edge, const Node& provider);
  void hide(Index edge);
  void hidden(Edge& edge);

  Graph& graph_;
  Loop* home_ = nullptr;
  std::span<Loop* const> loops_;
  std::optional<CoreServices> here_;
  std::optional<Batches<Report>> inbox_;
  std::vector<std::unique_ptr<Outpost>> outposts_;  // by core; nullptr for home
  std::vector<Index> queue_;
  std::size_t queue_head_ = 0;
  std::vector<Report> reports_;
  std::vector<Report> handling_;  // kept for its memory
  std::vector<Failure> failures_;
  List<Settling::Place> settling_;
  std::size_t on_the_way_ = 0;
  bool running_ = false;
  bool all_or_nothing_ = false;
  bool expecting_ = false;
  bool busy_ = false;
};

}  // namespace weir::wiring
