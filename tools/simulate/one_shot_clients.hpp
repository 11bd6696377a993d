// Clients of whom each visit is a connection of its own.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/http/router/router.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"
#include "weir/sim/detail/random.hpp"

namespace weir::simulate {

/// The resource that visitors ask for: `GET /who/{id}/{ms}` is answered by "who {process} {id}\n"
/// after so many milliseconds.
void add_visited_route(http::Router& routes, std::size_t process);

struct VisitorsOptions {
  Endpoint server = {};
  std::size_t count = 6;  ///< at a time
};

/// One connection, and what came of it.
struct Visit {
  Instant begun{};
  Instant ended{};
  Endpoint local = {};  ///< this side, once it was connected
  std::string fault = {};
};

/// They come one after the other. What must hold for each visit: it is connected; its first request
/// is answered, and so are the others, unless the server ends the connection behind an answer that
/// says so; all answers are right, and come from one process.
/// Threads: those of one World. Lifetime: outlives what run() spawns.
class Visitors {
 public:
  explicit Visitors(const VisitorsOptions& options) : options_(options) {}

  /// The body of a client. Cancel: closes its connections.
  Task<> run(Scope& scope);
  /// No more visits.
  void stop() noexcept { stopping_ = true; }
  /// The first visit that has gone wrong, in words, but for those that are excused.
  std::string find_fault(const std::function<bool(const Visit&)>& is_excused) const;
  std::size_t answered() const noexcept { return answered_; }
  /// Answers of other processes than the first one.
  std::size_t answered_by_newer() const noexcept { return answered_by_newer_; }

 private:
  Task<> visit_often(Scope& scope);
  Task<> visit(Visit& visit, WorldDraw& draw);
  std::string judge(std::string_view received, std::size_t requests);

  VisitorsOptions options_;
  std::deque<Visit> visits_;
  std::size_t answered_ = 0;
  std::size_t answered_by_newer_ = 0;
  bool stopping_ = false;
};

}  // namespace weir::simulate
