// Clients that ask again and again for pages that come, go and change meanwhile.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "weir/base/result.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"
#include "weir/testing/http_answers.hpp"

namespace weir::simulate {

inline constexpr unsigned page_count = 3;

/// "/page/2"
std::string page_path(unsigned page);
/// What a page says; versions grow with each change of any page.
std::string page_text(unsigned page, unsigned version);

struct PageTrafficOptions {
  Endpoint server = {};
  std::size_t connections = 4;
  std::size_t requests = 25;  ///< of each
  bool may_be_missing = true;
  bool may_be_stopped = true;  ///< by 503
};

/// What must hold: each answer is that page, whole, and one connection, which stays on its core,
/// never sees an older version after a newer one.
/// Threads: those of one World. Lifetime: outlives what run() spawns.
class PageTraffic {
 public:
  explicit PageTraffic(const PageTrafficOptions& options) : options_(options) {}

  /// The body of a client. Cancel: closes its connections.
  Task<> run(Scope& scope);
  /// What did not hold; empty if all did.
  const std::string& fault() const noexcept { return fault_; }
  std::size_t answered() const noexcept { return answered_; }

 private:
  using Versions = std::array<unsigned, page_count>;
  Task<> converse(Scope& scope);
  Task<Result<>> ask_often(Stream& stream, Host& host, std::size_t& left);
  void judge(unsigned page, const HttpAnswer& answer, Versions& newest);

  PageTrafficOptions options_;
  std::string fault_;
  std::size_t answered_ = 0;
};

}  // namespace weir::simulate
