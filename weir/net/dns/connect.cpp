#include "weir/net/dns/connect.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "weir/net/dns/detail/address_order.hpp"
#include "weir/net/dns/detail/host_name.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/timeout.hpp"

namespace weir::tcp {
namespace {

using dns::Family;

/// Returns true if the error is about the route to a host and not about the host.
bool is_route_error(std::error_code error) noexcept {
  if (error.category() != std::system_category()) return false;
  switch (error.value()) {
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
    case EINVAL:  // a link-local address without a scope
      return true;
    default:
      return false;
  }
}

/// The shared state of the tasks of one race, which are the children of one scope. Each task reads
/// and changes it between its own suspension points.
/// Lifetime: outlives the scope.
class Race {
 public:
  Race(std::string name, std::uint16_t port, const ConnectOptions& options, dns::Resolver& resolver)
      : name_(std::move(name)), port_(port), options_(options), resolver_(resolver) {}

  /// The body of the scope.
  static Task<Result<Stream>> run(Scope& scope, Race* race) { return race->run_attempts(scope); }

 private:
  Task<Result<Stream>> run_attempts(Scope& scope);
  Task<> resolve_family(Loop& loop, Family family);
  Task<> attempt(Endpoint peer);
  Instant next_due() const noexcept;
  bool is_exhausted() const noexcept {
    return lookups_pending_ == 0 && attempts_pending_ == 0 && order_.empty();
  }
  void failed_to_connect(std::error_code error) noexcept;
  std::error_code failure() const noexcept {
    return connect_error_ ? connect_error_ : lookup_error_;
  }

  std::string name_;
  std::uint16_t port_;
  ConnectOptions options_;
  dns::Resolver& resolver_;
  dns::AddressOrder order_;
  unsigned lookups_pending_ = 0;      // number of families
  bool ipv6_lookup_pending_ = false;  // one of lookups_pending_
  Instant ipv4_due_ = never;          // end of the time for which IPv4 waits for IPv6
  unsigned attempts_pending_ = 0;
  bool attempt_started_ = false;           // true after the first attempt has begun
  Instant next_attempt_ = Instant::min();  // earliest start of the next attempt
  std::optional<Stream> winner_;
  std::error_code connect_error_;
  std::error_code lookup_error_;
  AutoResetEvent progress_;
};

/// Returns the time at which the next attempt may begin.
Instant Race::next_due() const noexcept {
  if (order_.empty()) return never;
  return ipv6_lookup_pending_ && !attempt_started_ ? ipv4_due_ : next_attempt_;
}

/// Begins attempts as they become due, until one has connected or no attempt is left.
Task<Result<Stream>> Race::run_attempts(Scope& scope) {
  Loop& loop = scope.loop();
  scope.spawn(resolve_family(loop, Family::ipv6));
  scope.spawn(resolve_family(loop, Family::ipv4));
  while (!winner_) {
    if (scope.cancelled()) co_return fail(Errc::cancelled);
    const Instant now = loop.platform().now();
    const Instant next = next_due();
    if (next <= now) {
      attempt_started_ = true;
      next_attempt_ = after(now, options_.attempt_delay);
      scope.spawn(attempt(*order_.next()));
    } else if (is_exhausted()) {
      co_return fail(failure());
    } else if (next == never) {
      std::ignore = co_await progress_.wait();
    } else {
      std::ignore = co_await timeout(next - now, progress_.wait());
    }
  }
  scope.cancel();
  co_return std::move(*winner_);
}

Task<> Race::resolve_family(Loop& loop, Family family) {
  ++lookups_pending_;
  if (family == Family::ipv6) ipv6_lookup_pending_ = true;
  const auto found = co_await resolver_.resolve(name_, family, port_);
  --lookups_pending_;
  if (family == Family::ipv6) {
    ipv6_lookup_pending_ = false;
  } else {
    ipv4_due_ = after(loop.platform().now(), options_.resolution_delay);
  }
  if (found) {
    order_.add(family, *found);
  } else {
    lookup_error_ = dns::more_specific_error(lookup_error_, found.error());
  }
  progress_.set();
}

Task<> Race::attempt(Endpoint peer) {
  ++attempts_pending_;
  auto stream = co_await connect(peer);
  --attempts_pending_;
  if (!stream) {
    failed_to_connect(stream.error());
  } else if (!winner_) {
    winner_.emplace(std::move(*stream));
  }
  progress_.set();
}

void Race::failed_to_connect(std::error_code error) noexcept {
  if (error == Errc::cancelled) return;
  if (!connect_error_ || !is_route_error(error) || is_route_error(connect_error_))
    connect_error_ = error;
  next_attempt_ = Instant::min();
}

}  // namespace

Task<Result<Stream>> connect(std::string name, std::uint16_t port, ConnectOptions options) {
  if (const auto address = dns::parse_ip_address(name, port)) co_return co_await connect(*address);
  const Context context = co_await this_context();
  dns::Resolver& resolver =
      options.resolver != nullptr ? *options.resolver : dns::core_resolver(*context.loop);
  Race race(std::move(name), port, options, resolver);
  co_return co_await with_scope(OnFailure::cancel_siblings, &Race::run, &race);
}

}  // namespace weir::tcp
