// What an App is made of: for its own sources.
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
#include "weir/app/graph.hpp"
#include "weir/app/life.hpp"
#include "weir/http/route_board.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/mutex.hpp"
#include "weir/task/scope.hpp"

namespace weir {
namespace wiring {

/// What becomes of a change; whoever asked for it may have gone.
struct Outcome {
  CoreManualResetEvent known;
  Result<> result;
  std::exception_ptr thrown;
};

/// The changes of a running app, which go on whatever becomes of who asked for them.
struct Changes {
  explicit Changes(Loop& home) : scope({&home, nullptr}, OnFailure::supervise) {}
  Task<> run(Task<Result<>> body, std::shared_ptr<Outcome> outcome) {
    try {
      outcome->result = co_await std::move(body);
    } catch (...) {
      outcome->thrown = std::current_exception();
    }
    outcome->known.set();
    if (--running == 0) none.set();
  }

  Scope scope;
  std::size_t running = 0;
  CoreManualResetEvent none{true};
};

}  // namespace wiring

struct App::Parts {
  wiring::Graph graph;
  wiring::Life life{graph};
  std::optional<http::RouteBoard> board;
  std::optional<wiring::Changes> changes;  // while it is open
  CoreMutex changing;                      // who changes the graph, which takes several steps
  CoreMutex closing;
  std::vector<std::string> problems;
  Host* host = nullptr;              // of the last start()
  std::atomic<Loop*> home{nullptr};  // while it is open
};

}  // namespace weir
