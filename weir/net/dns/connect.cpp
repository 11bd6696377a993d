#include "weir/net/dns/connect.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "weir/net/dns/detail/address_order.hpp"
#include "weir/net/dns/detail/host_name.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/timeout.hpp"

namespace weir::tcp {
namespace {

using names::Family;

/// Whether it says that there was no way, and nothing of who is at its end.
bool is_of_the_way(std::error_code error) noexcept {
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

/// Its tasks are the children of one scope; all of them look at it and change it between their own
/// steps. Lives until the scope has been left.
class Race {
 public:
  Race(std::string name, std::uint16_t port, const ConnectOptions& options,
       names::Resolver& resolver)
      : name_(std::move(name)), port_(port), options_(options), resolver_(resolver) {}

  /// The body of the scope.
  static Task<Result<Stream>> run(Scope& scope, Race* race) { return race->begin_all(scope); }

 private:
  Task<Result<Stream>> begin_all(Scope& scope);
  Task<> find(Loop& loop, Family family);
  Task<> attempt(Endpoint peer);
  Instant due() const noexcept;
  bool hopeless() const noexcept { return finding_ == 0 && trying_ == 0 && order_.empty(); }
  void failed_to_connect(std::error_code error) noexcept;
  std::error_code failure() const noexcept { return failure_ ? failure_ : finding_failure_; }

  std::string name_;
  std::uint16_t port_;
  ConnectOptions options_;
  names::Resolver& resolver_;
  names::AddressOrder order_;
  unsigned finding_ = 0;       // families,
  bool finding_ipv6_ = false;  // of which one may be this
  Instant ipv4_due_ = never;   // then IPv4 waits no longer for it
  unsigned trying_ = 0;
  bool begun_ = false;             // some attempt
  Instant next_ = Instant::min();  // before it no other begins
  std::optional<Stream> winner_;
  std::error_code failure_;          // of attempts
  std::error_code finding_failure_;  // of look-ups
  CoreAutoResetEvent changed_;
};

/// When the next attempt may begin.
Instant Race::due() const noexcept {
  if (order_.empty()) return never;
  return finding_ipv6_ && !begun_ ? ipv4_due_ : next_;
}

/// Begins attempts as they become due, until one has connected or nothing is left.
Task<Result<Stream>> Race::begin_all(Scope& scope) {
  Loop& loop = scope.loop();
  scope.spawn(find(loop, Family::ipv6));
  scope.spawn(find(loop, Family::ipv4));
  while (!winner_) {
    if (scope.cancelled()) co_return fail(Errc::cancelled);
    const Instant now = loop.host().now();
    const Instant next = due();
    if (next <= now) {
      begun_ = true;
      next_ = after(now, options_.attempt_delay);
      scope.spawn(attempt(*order_.next()));
    } else if (hopeless()) {
      co_return fail(failure());
    } else if (next == never) {
      static_cast<void>(co_await changed_.wait());
    } else {
      static_cast<void>(co_await timeout(next - now, changed_.wait()));
    }
  }
  scope.cancel();
  co_return std::move(*winner_);
}

Task<> Race::find(Loop& loop, Family family) {
  ++finding_;
  if (family == Family::ipv6) finding_ipv6_ = true;
  const auto found = co_await resolver_.resolve(name_, family, port_);
  --finding_;
  if (family == Family::ipv6) {
    finding_ipv6_ = false;
  } else {
    ipv4_due_ = after(loop.host().now(), options_.resolution_delay);
  }
  if (found) {
    order_.add(family, *found);
  } else {
    finding_failure_ = names::more_telling(finding_failure_, found.error());
  }
  changed_.set();
}

Task<> Race::attempt(Endpoint peer) {
  ++trying_;
  auto stream = co_await connect(peer);
  --trying_;
  if (!stream) {
    failed_to_connect(stream.error());
  } else if (!winner_) {
    winner_.emplace(std::move(*stream));
  }
  changed_.set();
}

void Race::failed_to_connect(std::error_code error) noexcept {
  if (error == Errc::cancelled) return;
  if (!failure_ || !is_of_the_way(error) || is_of_the_way(failure_)) failure_ = error;
  next_ = Instant::min();
}

}  // namespace

Task<Result<Stream>> connect(std::string name, std::uint16_t port, ConnectOptions options) {
  if (const auto address = names::parse_ip_address(name, port))
    co_return co_await connect(*address);
  const Context context = co_await this_context();
  names::Resolver& resolver =
      options.resolver != nullptr ? *options.resolver : names::core_resolver(*context.loop);
  Race race(std::move(name), port, options, resolver);
  co_return co_await with_scope(OnFailure::fail_together, &Race::run, &race);
}

}  // namespace weir::tcp
