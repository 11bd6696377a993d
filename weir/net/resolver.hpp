// Host names to addresses, without a loop ever waiting for a file or a name server.
//
// Weir asks by itself: from its own sockets, on the loop of who wants to know, as a client of the
// name servers of /etc/resolv.conf. So a look-up is cancelled like everything else, thousands cost
// no thread, what a server does harms nobody but who asked it, and all of it runs in the World. The
// two files are read as all files are: by the pool that a runtime's cores share, or by io_uring.
//
// In this order a name is looked for: an IP address stands for itself; localhost is this machine;
// what was found before, while it is true; /etc/hosts; the name servers, in the search domains
// first if the name has few dots (resolv.conf(5)). The first of these names that exists decides,
// for both families. The system's other ways (nsswitch: mDNS, LDAP) are not gone.
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
#include "weir/loop/figures.hpp"
#include "weir/net/dns/detail/name_cache.hpp"
#include "weir/net/name_error.hpp"
#include "weir/net/name_files.hpp"
#include "weir/net/name_servers.hpp"
#include "weir/net/dns/detail/shared_lookup.hpp"
#include "weir/os/address.hpp"
#include "weir/task/task.hpp"

namespace weir::names {

struct ResolverOptions {
  std::string hosts_file = "/etc/hosts";         ///< empty: none
  std::string resolv_conf = "/etc/resolv.conf";  ///< empty: none
  // Instead of what that file says; empty or zero: as it says.
  std::vector<Endpoint> servers = {};  ///< port 0: 53
  /// Domains to be tried. An empty list: none.
  std::optional<std::vector<std::string>> search = {};
  std::optional<unsigned> ndots = {};  ///< a name with so many dots is tried as it is first
  /// For each question to one server. One that is slower counts as dead: what comes later is heard
  /// by nobody, as each question has a socket of its own.
  Duration timeout = {};
  unsigned attempts = 0;  ///< how often all servers are gone through

  // How long an answer is kept: as its server says (RFC 1035: its TTL), within these limits.
  Duration ttl_min = {};
  Duration ttl_max = std::chrono::hours(1);
  Duration hosts_ttl = std::chrono::seconds(5);          ///< of what the hosts file says
  Duration negative_ttl_max = std::chrono::seconds(10);  ///< of a name or address that is not there
  /// Of a failure (RFC 9520 §3.2: 1 s), and of a name or address that is not there when its server
  /// does not say for how long.
  Duration failure_ttl = std::chrono::seconds(1);

  std::size_t cache_max = 1024;  ///< answers that are kept, one for each name and family
  /// Look-ups that ask servers at once; beyond: Errc::limit_reached. What can be told without
  /// servers is, however many wait for them; but no more than 16 times as many wait for the files,
  /// which may hang.
  std::size_t lookups_max = 1024;
  std::size_t addresses_max = 32;  ///< of one family of a name; the rest is dropped
};

/// One core writes, anybody may read. Each name counts once for each family asked for.
struct ResolverCounters {
  Counter asked;
  Counter hits;        ///< known already
  Counter joined;      ///< another was asking for the same
  Counter lookups;     ///< begun
  Counter under_way;   ///< now
  Counter at_servers;  ///< of these: asking servers, now
  Counter refused;     ///< because too many were
  /// Look-ups that failed, by Failure.
  std::array<Counter, failure_count> failures;
  Counter failed_otherwise;  ///< by what this machine lacks: descriptors, memory
};

/// Who looks names up, with a cache and servers of its own. Programs mostly use that of their core:
/// resolve() below, tcp::connect(name, port).
/// Its names are in the report of its core (Runtime::report()).
/// Threads: one loop's, that of the first who asks. Lifetime: no look-up is under way when it is
/// destroyed (asserted); it may outlive its loop.
class Resolver final : SharedLookup::Owner, FigureSource {
 public:
  explicit Resolver(ResolverOptions options = {});
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();

  /// The addresses of `name`, at least one, in the order in which they should be tried: IPv6 and
  /// IPv4 in turn (RFC 8305 §4), those of one family as the server ordered them. A family that
  /// cannot be found out about is left out if the other can.
  /// Errors: Errc::bad_input for what is no host name, names::Failure, Errc::limit_reached, the
  /// kernel's where no socket is to be had.
  /// Cancel: at once for all but the last of those who wait for the same name; that one returns
  /// when nothing is under way any more, which takes a round of the loop, or as long as a file that
  /// is being read.
  Task<Result<std::vector<Endpoint>>> resolve(std::string name, std::uint16_t port = 0);
  /// Those of one family alone. Cancel: as above.
  Task<Result<std::vector<Endpoint>>> resolve(std::string name, Family family,
                                              std::uint16_t port = 0);

  /// Forgets what it has found; what is under way goes on.
  void forget() noexcept { cache_.clear(); }
  const ResolverCounters& counters() const noexcept { return counters_; }
  const NameServersCounters& server_counters() const noexcept { return servers_.counters(); }

 private:
  using Answer = SharedLookup::Answer;
  Task<Answer> find(NameQuestion question);
  Task<Answer> look_up(NameQuestion question);
  Task<NameAnswer> look_elsewhere(const NameQuestion& question);
  std::vector<std::string> candidates(const HostName& name) const;
  std::size_t at_files_max() const noexcept;
  void configure();
  NameAnswer from_hosts(const std::vector<Endpoint>& known, Family family) const;
  NameAnswer from_servers(Result<dns::Answer> told) const;
  void over(SharedLookup& lookup) noexcept override;
  void tell(FigureSum& sum) const override;
  void count(std::error_code error) noexcept;

  ResolverOptions options_;
  NameFiles files_;
  NameServers servers_;
  NameCache cache_;
  std::map<NameQuestion, std::weak_ptr<SharedLookup>> under_way_;
  ResolverCounters counters_;
};

/// The resolver of a core, made when it is first asked for, with the options' defaults.
/// Threads: the loop's. Lifetime: that of the loop's group.
Resolver& core_resolver(Loop& loop);

/// `core_resolver(loop).resolve(name, port)` for the loop of the awaiting task.
/// Cancel: as there.
Task<Result<std::vector<Endpoint>>> resolve(std::string name, std::uint16_t port = 0);

}  // namespace weir::names
