// Clients that look up names and connect to them, and check every answer against a model.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/simulate/name_model.hpp"
#include "weir/net/dns/connect.hpp"
#include "weir/net/dns/resolver.hpp"
#include "weir/net/stream.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

/// A service that names itself: it sends its label and a line end, and waits for the end of the
/// connection. It runs until the loop drains.
Task<Result<>> serve_label(Scope& scope, std::uint16_t port, std::string label);

/// The ports of services. Only the services on hosts of their own have the second one.
inline constexpr std::uint16_t service_port = 7;
inline constexpr std::uint16_t remote_service_port = 8;

/// Time for a few messages and reads of files; see exact_jitter() of the scenario.
inline constexpr Duration slack = std::chrono::milliseconds(100);

/// A host with an address that names may have.
struct NameTarget {
  Endpoint address;   ///< address with port 0
  std::string label;  ///< label of its service; empty: it refuses connections
};

struct NameClientOptions {
  std::vector<Endpoint> servers;    ///< name servers, with port 0
  std::vector<NameTarget> targets;  ///< hosts; all other addresses never reply
  std::string own_label;            ///< label of the service on the client's own machine
  bool exact = true;  ///< false: the network loses datagrams, and look-ups may time out
  std::size_t steps = 160;
};

/// A NameClient looks up random names, again and again. The test requires these rules:
/// - a look-up returns the addresses of the zone or of the hosts file, or the error of its servers;
/// - the servers get exactly the predicted queries;
/// - a result is cached exactly for its lifetime, and equal look-ups share their queries;
/// - a connect finds the first address that replies, at the predicted moment;
/// - the limits of the cache and of look-ups hold, and the counters agree.
/// If the network loses datagrams, look-ups may time out, and numbers and moments have bounds only.
/// Threads: those of one World.
/// Lifetime: outlives its run; the zone and the log outlive it.
class NameClient {
 public:
  NameClient(const Zone& zone, NameSettings settings, QueryLog& log, NameClientOptions options)
      : zone_(zone), model_(zone, std::move(settings)), log_(log), options_(std::move(options)) {}

  Task<> run(Scope& scope);
  std::string find_violation() const;
  /// Returns the number of correct results.
  std::size_t answered() const noexcept { return answered_; }

 private:
  using Addresses = Result<std::vector<Endpoint>>;
  /// A look-up of one family before it begins.
  struct Expectation {
    Prediction result;
    bool may_hit = false;
    bool may_miss = false;
  };
  struct Attempts {
    Duration duration{};
    std::string label;
    std::error_code error;
  };

  Task<> write_files();
  Task<> write_hosts_file();
  Task<> step();
  Task<> resolve(AskedName name, std::optional<dns::Family> family);
  Task<> resolve_at_expiry();
  Task<> resolve_by_many();
  Task<> resolve_from_hosts();
  Task<> resolve_without_query();
  Task<> connect();
  Task<> check_cache_limit();
  Task<> check_lookup_limit();
  Task<> resolve_patiently(AskedName name, dns::Family family, const Expectation* expected);
  Task<> resolve_impatiently(AskedName name, dns::Family family, const Expectation* expected);
  Task<> count_limited(std::string name, dns::Resolver* resolver, std::size_t* rejected);

  AskedName draw_name();
  std::string spell(const AskedName& name);
  dns::Family draw_family();
  Expectation expect(const AskedName& name, dns::Family family) const;
  void learn(const AskedName& name, dns::Family family, const Expectation& expected, bool queried,
             Instant begun);
  Attempts predict_attempts(const std::vector<Endpoint>& ipv6, const std::vector<Endpoint>& ipv4,
                            Duration ipv6_at, Duration ipv4_at, const tcp::ConnectOptions& options,
                            std::uint16_t port) const;
  std::string label_at(const Endpoint& address, std::uint16_t port, bool& replies) const;
  std::vector<Endpoint> in_hosts(std::size_t number, std::size_t version, dns::Family family) const;
  bool is_permitted(const Addresses& found, const Prediction& expected) const;
  void check_queries(std::string_view what, const std::vector<const Expectation*>& expected);
  void check_time(std::string_view what, Instant begun, Duration expected);
  void check_counters();
  void fail_with(std::string_view what, std::string_view why);

  const Zone& zone_;
  NameModel model_;
  QueryLog& log_;
  NameClientOptions options_;
  loop::Platform* host_ = nullptr;
  sim::Random random_{0};
  dns::Resolver* resolver_ = nullptr;
  std::optional<AskedName> last_;  // last name of step()
  dns::Family last_family_ = dns::Family::ipv6;
  std::vector<Instant> hosts_written_;  // by version of the hosts file
  std::size_t requests_ = 0;
  std::array<std::size_t, dns::resolve_error_count> failures_{};
  std::size_t answered_ = 0;
  std::string violation_;
  bool done_ = false;
};

}  // namespace weir::simulate
