// The members of an App, for its own sources.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/app/app.hpp"
#include "weir/app/detail/graph/graph.hpp"
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

struct App::Impl {
  inject::Graph graph;
  inject::Lifecycle lifecycle{graph};
  std::optional<http::ServiceRouteRegistry> route_registry;
  std::optional<inject::ChangeTasks> changes;  // set while the app is open
  Mutex change_mutex;  // serializes changes of the graph, which take several steps
  Mutex close_mutex;
  std::vector<std::string> errors;         // of the last start or change that has returned
  std::vector<std::string> change_errors;  // of the start or change that runs
  Platform* platform = nullptr;            // platform of the last start()
  std::atomic<Loop*> app_loop{nullptr};    // set while the app is open
};

}  // namespace weir
