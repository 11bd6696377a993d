// Resolution of host names to addresses. The loop never waits for a file or a name server.
//
// Weir is its own DNS client. It queries the name servers of /etc/resolv.conf from its own sockets,
// on the loop of the caller. A look-up can therefore be cancelled like any task, and thousands of
// them need no thread. A faulty server affects only the tasks that query it, and all code runs in
// the simulated World too. The pool that the cores of a runtime share, or io_uring, reads the two
// files.
//
// A resolver tries several sources in a fixed order. An IP address is its own result, and localhost
// is this machine. The cache holds the results of earlier look-ups until they expire. The hosts
// file comes next, and the name servers come last. The search domains come first if the name has
// few dots (resolv.conf(5)). The first of these names that exists decides, for both families. A
// failure of the servers ends the search, because the name may exist. Weir does not use the
// system's other sources (nsswitch: mDNS, LDAP).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/detail/counter.hpp"
#include "weir/base/result.hpp"
#include "weir/loop/metrics.hpp"
#include "weir/net/dns/detail/dns_client.hpp"
#include "weir/net/dns/detail/name_cache.hpp"
#include "weir/net/dns/detail/shared_lookup.hpp"
#include "weir/net/dns/detail/system_dns_config.hpp"
#include "weir/os/address.hpp"
#include "weir/task/task.hpp"

namespace weir::dns {

/// ResolverOptions sets the servers, the timeouts and the limits of a Resolver.
struct ResolverOptions {
  std::string hosts_file = "/etc/hosts";         ///< path of the hosts file; empty: none
  std::string resolv_conf = "/etc/resolv.conf";  ///< path of resolv.conf; empty: none
  // The next five members override resolv_conf. An empty or zero value takes the file's value.
  std::vector<Endpoint> servers = {};  ///< name servers; port 0 means 53
  /// Search domains. nullopt takes those of the file; an empty list means no search domains.
  std::optional<std::vector<std::string>> search = {};
  std::optional<unsigned> ndots = {};  ///< minimum number of dots to try a name as is first
  /// Time limit of each query to one server. Later responses are dropped, because each query has
  /// its own socket.
  Duration timeout = {};
  unsigned attempts = 0;  ///< number of passes through the list of servers

  // The server's TTL (RFC 1035) says how long the cache keeps a result, within these limits.
  Duration ttl_min = {};
  Duration ttl_max = std::chrono::hours(1);
  Duration hosts_ttl = std::chrono::seconds(5);          ///< TTL of results from the hosts file
  Duration negative_ttl_max = std::chrono::seconds(10);  ///< TTL limit of absent names or addresses
  /// TTL of a failure (RFC 9520 §3.2: 1 s), and of an absent name or address if its server does not
  /// send a TTL.
  Duration failure_ttl = std::chrono::seconds(1);

  std::size_t cache_max = 1024;  ///< maximum number of cached results; one per name and family
  /// Maximum number of look-ups that query servers at the same time. A look-up beyond it fails with
  /// Errc::limit_reached if it needs a server; other look-ups succeed. The files may hang, so at
  /// most 16 times this number (at least 16) wait for them. Others fail with the same error.
  std::size_t lookups_max = 1024;
  std::size_t addresses_max = 32;  ///< maximum per name and family; the rest is dropped
};

/// Counters of a resolver. One core writes them; any thread may read them. Each request counts once
/// for each family.
struct ResolverCounters {
  detail::Counter requests;
  detail::Counter hits;       ///< requests answered from the cache or without a look-up
  detail::Counter coalesced;  ///< requests that joined a pending look-up of the same name
  detail::Counter lookups;    ///< look-ups started
  detail::Counter in_flight;  ///< look-ups pending now
  detail::Counter querying;   ///< look-ups in `in_flight` that query servers now
  detail::Counter rejected;   ///< requests or look-ups that exceeded a limit
  /// Failed look-ups, by ResolveError.
  std::array<detail::Counter, resolve_error_count> failures;
  detail::Counter failed_locally;  ///< look-ups that failed for lack of local descriptors or memory
};

/// A Resolver looks up names with its own cache and server list. Programs mostly use the resolver
/// of their core through resolve() below and tcp::connect(name, port). Its counters are in the
/// report of its core (Runtime::report()).
/// Threads: the thread of one loop, which is the loop of the first caller.
/// Lifetime: no look-up is pending when it is destroyed (asserted); it may outlive its loop.
class Resolver final : SharedLookup::Owner, MetricSource {
 public:
  explicit Resolver(ResolverOptions options = {});
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();

  /// Looks up the addresses of `name` and sets their port to `port`. The addresses are in the order
  /// in which the caller should try them. IPv6 and IPv4 alternate (RFC 8305 §4); each family keeps
  /// the server's order. If the look-up of one family fails, only the other family is returned.
  /// Returns: at least one address.
  /// Errors: Errc::bad_input if `name` is no host name, dns::ResolveError, Errc::limit_reached, the
  /// kernel's if no socket is available; Errc::cancelled.
  /// Cancel: returns immediately if other tasks wait for the same look-up. The last waiting task
  /// returns when the look-up has ended. This takes one turn of the loop, or as long as a pending
  /// read of a file.
  Task<Result<std::vector<Endpoint>>> resolve(std::string name, std::uint16_t port = 0);
  /// Looks up the addresses of one family.
  /// Returns: at least one address.
  /// Errors: those of resolve() of both families.
  /// Cancel: returns immediately if other tasks wait for the same look-up. The last waiting task
  /// returns when the look-up has ended, as in resolve() of both families.
  Task<Result<std::vector<Endpoint>>> resolve(std::string name, Family family,
                                              std::uint16_t port = 0);

  /// Removes all cached results. Pending look-ups continue.
  void clear_cache() noexcept { cache_.clear(); }
  const ResolverCounters& counters() const noexcept { return counters_; }
  const DnsClientCounters& client_counters() const noexcept { return client_.counters(); }

 private:
  using ResultPtr = SharedLookup::ResultPtr;
  Task<ResultPtr> lookup(Question question);
  Task<ResultPtr> run_lookup(Question question);
  Task<LookupResult> lookup_uncached(const Question& question);
  std::vector<std::string> candidates(const HostName& name) const;
  std::size_t at_files_max() const noexcept;
  void configure();
  LookupResult from_hosts(const std::vector<Endpoint>& known, Family family) const;
  LookupResult from_response(Result<dns::Response> result) const;
  void on_finished(SharedLookup& lookup) noexcept override;
  void collect(MetricSnapshot& sum) const override;
  void count(std::error_code error) noexcept;

  ResolverOptions options_;
  SystemDnsConfig system_config_;
  DnsClient client_;
  NameCache cache_;
  std::map<Question, std::weak_ptr<SharedLookup>> in_flight_;
  ResolverCounters counters_;
};

/// Returns the resolver of a core. The first call creates it with default options.
/// Threads: the loop's.
/// Lifetime: that of the loop's group.
Resolver& core_resolver(Loop& loop);

/// Calls `core_resolver(loop).resolve(name, port)` for the loop of the awaiting task.
/// Returns: at least one address.
/// Errors: those of Resolver::resolve().
/// Cancel: returns immediately if other tasks wait for the same look-up. The last waiting task
/// returns when the look-up has ended.
Task<Result<std::vector<Endpoint>>> resolve(std::string name, std::uint16_t port = 0);

}  // namespace weir::dns
