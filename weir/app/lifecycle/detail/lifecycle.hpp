// Lifecycle: which service instances run, and in which order they start and stop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/app/detail/graph/graph.hpp"
#include "weir/app/lifecycle/detail/core_agent.hpp"
#include "weir/loop/detail/cross_core_queue.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/context.hpp"

namespace weir::inject {

// BatchQueue: values from one core to another, many at a time with one wake-up.

/// A queue of values to a loop, in order for each sender. The loop calls `receive(batch)`.
/// Threads: send() on any thread; all other functions on the loop's thread.
/// Lifetime: destroyed when the queue is empty and no sender is inside send().
template <class T>
class BatchQueue {
 public:
  using Receive = void (*)(void* receiver, std::vector<T>& batch);
  BatchQueue(Loop& to, Receive receive, void* receiver) noexcept
      : to_(to),
        receive_(receive),
        receiver_(receiver),
        batches_([](void* self, Loop&) { static_cast<BatchQueue*>(self)->run(); }, this) {}
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;
  ~BatchQueue() {
    batches_.collect();
    static_cast<void>(take());
  }

  /// Sends all values of `batch` and leaves it empty.
  void send(std::vector<T>& batch) {
    if (batch.empty()) return;
    auto sent = std::make_unique<Batch>();
    sent->values.swap(batch);
    static_cast<void>(batches_.push(*sent.release(), to_));  // never closed
  }

 private:
  struct Batch {
    std::vector<T> values;
    Batch* next = nullptr;
  };

  void run() {
    std::vector<T> values = take();
    receive_(receiver_, values);
  }
  /// Returns the values of all batches that have arrived.
  std::vector<T> take() {
    std::vector<T> values;
    while (const std::unique_ptr<Batch> batch{batches_.pop()}) {
      if (values.empty()) {
        values.swap(batch->values);
      } else {
        std::ranges::move(batch->values, std::back_inserter(values));
      }
    }
    return values;
  }

  Loop& to_;
  Receive receive_;
  void* receiver_;
  loop::CrossCoreQueue<Batch, &Batch::next> batches_;
};

/// Runs each instance of a graph while it is wanted and all its required providers run. An
/// instance stops only after its dependants. Each change enqueues only the neighbours of the
/// changed instance. Instances change state on the app's core only, by commands to their own cores
/// and by events from these.
/// Threads: the app's core.
/// Lifetime: the loops outlive it from open() to close().
class Lifecycle {
 public:
  /// The failed start of an instance.
  struct Failure {
    Index instance;
    ServiceId service;  ///< service of the instance, whose slot may have another instance by now
    std::string name;   ///< full name of that service, see full_name_of()
    std::error_code error;
    std::string why;
    /// True if only Lazy parameters requested the instance: their waiters get the error.
    bool seen_by_requester = false;
    /// Returns true if the failure concerns the caller of a change of `changed`.
    bool affects(ServiceId changed) const noexcept {
      return !seen_by_requester || service == changed;
    }
  };

  explicit Lifecycle(Graph& graph) noexcept : graph_(graph) {}
  Lifecycle(const Lifecycle&) = delete;
  Lifecycle& operator=(const Lifecycle&) = delete;

  /// Sets the loops on which instances live, before the first start_all(). No instance runs.
  void open(Loop& app_loop, std::span<Loop* const> loops, App& app,
            http::ServiceRouteRegistry* route_registry);
  /// Clears the loops after the last stop_all(), when no instance uses them any more.
  void close() noexcept { app_loop_ = nullptr; }
  /// Starts all instances that can run. If one fails and `all_or_nothing`, all stop again.
  void start_all(bool all_or_nothing);
  /// Ends the effect of `all_or_nothing`: a failure then concerns one instance only.
  void startup_complete() noexcept { all_or_nothing_ = false; }
  /// Stops all instances, dependants first.
  void stop_all();
  /// Cancels each start() and stop() that runs.
  void cancel_running();
  /// Does nothing; for wait_settled() calls whose cancellation has no effect.
  void ignore_cancel() noexcept {}
  /// Clears the failure of an instance, which may then start again.
  void clear_failure(Instance& instance);
  /// Drops the failures of instances that are no longer failed, when a change begins.
  void drop_past_failures();
  /// Gives an instance a provider that is running already.
  void add_provider(Dependency& dependency);
  /// Opens the routes of a running instance beside those of `old`, which it replaces. A failure is
  /// added to failures(). Does nothing if the instance has no routes.
  void open_routes(Instance& instance, const Instance& old);
  /// Lets the instance take over the routes of the instance that it replaces, on each core.
  void take_routes(Instance& instance);
  /// Sets whether instances that stop leave their routes to a replacement that will follow.
  void keep_routes(bool keep) noexcept { keep_routes_ = keep; }
  /// Enqueues an instance after a change from outside.
  void enqueue(Instance& instance) {
    if (instance.queued) return;
    instance.queued = true;
    queue_.push_back(instance.index);
  }
  /// Enqueues all instances that the graph has created or bound again.
  void enqueue_touched();
  /// Processes all events and the queue, and sends the commands.
  void run();

  bool running() const noexcept { return running_; }
  bool is_open() const noexcept { return app_loop_ != nullptr; }
  /// Returns true if no instance is changing its state.
  bool settled() const noexcept { return !busy_ && transitions_ == 0; }
  const std::vector<Failure>& failures() const noexcept { return failures_; }
  Loop& app_loop() const noexcept { return *app_loop_; }

  /// `co_await lifecycle.wait_settled(&Lifecycle::stop_all)` returns when settled() is true.
  /// Cancel: calls that function and continues to wait.
  class SettledAwaiter : CancellableWaiter {
   public:
    using OnCancel = void (Lifecycle::*)();
    SettledAwaiter(Lifecycle& lifecycle, OnCancel on_cancel) noexcept
        : CancellableWaiter(settled_kind),
          lifecycle_(lifecycle),
          on_cancel_(on_cancel),
          entry_(*this) {}
    bool await_ready() const noexcept { return false; }
    template <HasContext Promise>
    bool await_suspend(std::coroutine_handle<Promise> handle) {
      set_coroutine(handle);
      return begin();
    }
    void await_resume() const noexcept {}

   private:
    friend class Lifecycle;
    struct Entry : weir::detail::ListNode {
      explicit Entry(SettledAwaiter& awaiter) noexcept : of(awaiter) {}
      SettledAwaiter& of;
    };
    static void cancel(CancelNode& cancel_node);
    static constexpr Kind settled_kind = waiting_kind(&cancel, "services");
    bool begin();
    void on_settled();

    Lifecycle& lifecycle_;
    OnCancel on_cancel_;
    Entry entry_;
  };
  SettledAwaiter wait_settled(SettledAwaiter::OnCancel on_cancel) noexcept {
    return SettledAwaiter(*this, on_cancel);
  }

 private:
  /// A core other than the app's core: its agent, and the queues to it and from it.
  struct RemoteAgent {
    RemoteAgent(Loop& loop, App& app, http::ServiceRouteRegistry* route_registry,
                Lifecycle& lifecycle);
    static void receive(void* self, std::vector<Command>& commands);
    static void on_event(void* self, AgentEvent event);

    CoreAgent agent;
    BatchQueue<Command> command_queue;
    BatchQueue<AgentEvent>& agent_events;
    std::vector<Command> commands;   // owned by the app's core; not sent yet
    std::vector<AgentEvent> events;  // owned by this core; not sent yet
    bool receiving = false;
  };

  static void on_event(void* self, AgentEvent event);
  static void receive(void* self, std::vector<AgentEvent>& events);
  /// Sends a command to the core of its instance.
  template <class C>
  void send(C command) {
    send_to(command.instance->core, command);
  }
  void send_to(std::size_t core, const Command& command);

  bool should_run(const Instance& instance) const noexcept;
  bool can_keep_running(const Instance& instance) const noexcept {
    return should_run(instance) && instance.missing_children == 0;
  }
  void set_state(Instance& instance, State state);
  /// Returns true if each instance of a settled lifecycle is in a legal state that fits its needs.
  bool is_consistent() const noexcept;
  void update(Instance& instance);
  void request_children(Instance& instance);
  void set_children_wanted(Instance& instance, bool wanted);
  void start(Instance& instance);
  void begin_stop(Instance& instance);
  void stop(Instance& instance);
  void release_providers(Instance& instance);
  void release(Instance& provider);

  // Functions for Lazy parameters; the dependencies are given by index.
  void reset_lazy(Index dependency);
  void answer_lazy(Index dependency);
  void answer_own_lazy_requests(Instance& instance);
  void answer_lazy_dependants(const Instance& provider);
  void resolve_lazy(Index dependency);
  void fail_lazy(Index dependency, std::error_code error);
  std::error_code failure_of(const Instance& instance) const;
  bool is_lazy_only(const Instance& instance) const;

  void handle(InstanceStarted& event);
  void handle(StartFailed& event);
  void handle(InstanceStopped& event);
  void handle(ProviderRemoved& event);
  void handle(LazyRequested& event);
  void handle(RoutesOpened& event);
  void handle(RoutesTaken& event);
  void record_failure(const Instance& instance, StartError& error, bool seen_by_requester);
  void deliver(Dependency& dependency, const Instance& provider);
  void withdraw(Index dependency);
  void on_provider_removed(Dependency& dependency);

  Graph& graph_;
  Loop* app_loop_ = nullptr;
  std::optional<CoreAgent> local_agent_;
  std::optional<BatchQueue<AgentEvent>> event_queue_;
  std::vector<std::unique_ptr<RemoteAgent>> remote_agents_;  // by core; nullptr for the app's core
  std::vector<Index> queue_;
  std::size_t queue_head_ = 0;
  std::vector<AgentEvent> events_;
  std::vector<AgentEvent> handled_events_;  // kept for its memory
  std::vector<Failure> failures_;
  weir::detail::List<SettledAwaiter::Entry> settled_awaiters_;
  std::size_t transitions_ = 0;
  bool running_ = false;
  bool all_or_nothing_ = false;
  bool keep_routes_ = false;
  bool busy_ = false;
};

}  // namespace weir::inject
