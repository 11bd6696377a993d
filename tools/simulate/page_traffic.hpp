// Simulates clients that request pages while these appear, disappear and change.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "weir/base/result.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"
#include "weir/sim/http/detail/http_answers.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

inline constexpr unsigned page_count = 3;

/// Returns the path of a page, for example "/page/2".
std::string page_path(unsigned page);
/// Returns the text of a page. Versions grow with each change of any page.
std::string page_text(unsigned page, unsigned version);

struct PageTrafficOptions {
  Endpoint server = {};
  std::size_t connections = 4;
  std::size_t requests = 25;  ///< requests per connection
  bool may_be_missing = true;
  bool may_be_stopped = true;  ///< true: a response may be 503
};

/// The test requires that each response is the whole requested page. A connection, which stays on
/// its core, never gets an older version after a newer one.
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
  Task<Result<>> send_requests(Stream& stream, Platform& host, std::size_t& left);
  void check_answer(unsigned page, const sim::HttpResponse& answer, Versions& newest);

  PageTrafficOptions options_;
  std::string violation_;
  std::size_t answered_ = 0;
};

}  // namespace weir::simulate
