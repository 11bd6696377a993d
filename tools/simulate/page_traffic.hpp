// Simulates clients that request pages while these appear, disappear and change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "weir/base/result.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

inline constexpr unsigned page_count = 3;

/// Returns the path of a page, for example "/page/2".
std::string page_path(unsigned page);
/// Returns the text of a page. Versions grow with each change of any page.
std::string page_text(unsigned page, unsigned version);

/// The state of the pages, which their server updates.
struct ServedPages {
  struct State {
    bool exists = false;
    unsigned version = 0;       ///< version that is served, if the page exists
    std::uint64_t changes = 1;  ///< starts and ends of changes; odd during a change
  };
  std::array<State, page_count> states = {};
  std::string violation = {};  ///< a violation that the server has found; empty: none
};

struct PageTrafficOptions {
  Endpoint server = {};
  std::size_t connections = 4;
  std::size_t requests = 25;  ///< requests per connection
  bool may_be_missing = true;
  bool may_be_stopped = true;  ///< true: a response may be 503
  bool may_fail = false;       ///< true: a connection may end without a response
  /// The pages of the server; nullptr: not known.
  const ServedPages* served = nullptr;
};

/// The test requires that each request gets one response, and that it is the whole requested page.
/// A connection, which stays on its core, never gets an older version after a newer one. If a page
/// did not change during the request, the response is 404 or the version that the server knows.
/// Threads: those of one World.
/// Lifetime: outlives the tasks that run() spawns.
class PageTraffic {
 public:
  explicit PageTraffic(const PageTrafficOptions& options) : options_(options) {}

  /// Runs the clients.
  /// Cancel: closes their connections.
  Task<> run(Scope& scope);
  /// Returns the violation; empty if all rules held.
  const std::string& violation() const noexcept { return violation_; }
  std::size_t answered() const noexcept { return answered_; }

 private:
  using Versions = std::array<unsigned, page_count>;
  Task<> run_connection(Scope& scope);
  Task<Result<>> send_requests(Stream& stream, loop::PlatformClock& clock, std::size_t& left);
  void check_answer(unsigned page, const sim::HttpResponse& answer, Versions& newest);
  ServedPages::State state_of(unsigned page) const;
  void check_state(unsigned page, const ServedPages::State& before,
                   const sim::HttpResponse& answer);

  PageTrafficOptions options_;
  std::string violation_;
  std::size_t answered_ = 0;
};

}  // namespace weir::simulate
