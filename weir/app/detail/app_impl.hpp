// App::Impl: the members of an App and the steps of its changes, for its own sources.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/app/app.hpp"
#include "weir/app/detail/graph/graph.hpp"
#include "weir/app/detail/handler_service.hpp"
#include "weir/app/lifecycle/detail/lifecycle.hpp"
#include "weir/http/router/detail/service_route_registry.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/sync/mutex.hpp"

namespace weir {
namespace inject {

/// The result of a change. The caller that requested the change may no longer exist.
struct ChangeResult {
  ManualResetEvent done;
  Result<> result;
  std::vector<std::string> errors;
  std::exception_ptr exception;
};

/// The changes of a running app. They continue when their callers are cancelled.
struct ChangeTasks {
  explicit ChangeTasks(Loop& loop) : scope({&loop, nullptr}, OnFailure::isolate) {}
  Task<> run(Task<Result<>> body, std::shared_ptr<ChangeResult> outcome,
             std::vector<std::string>& errors) {
    try {
      outcome->result = co_await std::move(body);
    } catch (...) {
      outcome->exception = std::current_exception();
    }
    outcome->errors = std::move(errors);
    outcome->done.set();
    if (--running == 0) idle.set();
  }

  Scope scope;
  std::size_t running = 0;
  ManualResetEvent idle{true};
};

}  // namespace inject

/// The members of an App. Its functions are the steps of start, stop and changes; those of changes
/// run under `change_mutex`.
/// Threads: those of the App.
struct App::Impl {
  std::deque<inject::HandlerService> handler_services;  // of the mounted router
  inject::Graph graph;
  inject::Lifecycle lifecycle{graph};
  std::optional<http::ServiceRouteRegistry> route_registry;
  std::optional<inject::ChangeTasks> changes;  // set while the app is open
  Mutex change_mutex;  // serializes changes of the graph, which take several steps
  Mutex close_mutex;
  std::vector<std::string> errors;            // of the last start or change that has returned
  std::vector<std::string> change_errors;     // of the start or change that runs
  loop::PlatformLog* platform_log = nullptr;  // platform of the last start()
  std::atomic<Loop*> app_loop{nullptr};       // set while the app is open

  bool running() const noexcept { return lifecycle.running(); }

 private:
  friend class App;

  // Start and stop (app.cpp)
  void register_handlers();
  Task<Result<>> start(App& app);
  Task<> stop();
  Task<> close();

  // Changes of a running app (app_changes.cpp)
  Task<Result<>> run_change(Task<Result<>> body);
  Task<Result<>> run_exclusive(Task<Result<>> body);
  Task<Result<>> stop_service(ServiceId id);
  Task<Result<>> start_service(ServiceId id);
  Task<Result<>> apply_pending();
  Task<Result<>> remove_service(ServiceId id);
  Task<Result<>> replace_service(ServiceId old, ServiceId fresh);
  Task<Result<>> replace_side_by_side(ServiceId old, ServiceId fresh);
  Task<Result<>> replace_exclusive(ServiceId old, ServiceId fresh);
  Task<Result<>> start_in_place(ServiceId fresh);
  Task<> restore_old(ServiceId old, ServiceId fresh, std::size_t failures_before);

  // Parts of these steps
  Task<> settle();
  void enqueue_instances_of(ServiceId id);
  std::vector<std::string> errors_of_change(inject::Index old, inject::Index fresh,
                                            inject::Missing missing);
  std::vector<std::string> validation_errors(inject::Missing missing) const;
  /// Logs the errors of a configuration. Returns Errc::bad_configuration.
  Result<> reject(const std::vector<std::string>& found) const;
  Result<> first_failure_since(std::size_t failures_before, ServiceId of = {});
  void report_failures(std::size_t failures_before);
};

}  // namespace weir
