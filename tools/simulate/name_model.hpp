// Predicts the results and the queries of a resolver, independently of its code.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "tools/simulate/name_server.hpp"
#include "tools/simulate/name_zone.hpp"
#include "weir/base/time.hpp"

namespace weir::simulate {

/// The configuration of a resolver: that of its files and of its options.
struct NameSettings {
  std::size_t servers = 2;
  unsigned ndots = 1;
  Duration timeout = std::chrono::seconds(3);
  unsigned attempts = 2;
  std::vector<std::string> search = {};
  std::size_t addresses_max = 32;
  Duration ttl_min{};
  Duration ttl_max = std::chrono::hours(1);
  Duration negative_ttl_max = std::chrono::seconds(10);
  Duration failure_ttl = std::chrono::seconds(1);
  Duration hosts_ttl = std::chrono::seconds(5);

  /// Draws settings. The servers have longer to answer than the slowest answer takes.
  static NameSettings draw(sim::Random& random);
};

/// A name without a trailing dot, in lower case.
struct AskedName {
  std::string text;
  bool absolute = false;  ///< true if the client asks with a trailing dot

  auto operator<=>(const AskedName&) const = default;
};

/// The predicted result of a look-up of one name and family.
struct Prediction {
  std::error_code error;
  std::vector<Endpoint> addresses = {};
  Duration lifetime{};        ///< time for which the result is cached
  QueryLog queries = {};      ///< queries that the servers receive, in order
  Duration duration{};        ///< time of the timeouts and delays on the way
  std::size_t preferred = 0;  ///< index of the server that is asked first next time
};

/// Returns the predicted error of two failed look-ups: the more specific one.
std::error_code predicted_error(std::error_code first, std::error_code second);

/// Returns the addresses in the order of a resolver: IPv6 first, then alternating.
std::vector<Endpoint> alternate(const std::vector<Endpoint>& ipv6,
                                const std::vector<Endpoint>& ipv4);

/// A NameModel predicts look-ups from the zone, and knows which results are cached.
/// Threads: one.
/// Lifetime: the zone outlives it.
class NameModel {
 public:
  NameModel(const Zone& zone, NameSettings settings)
      : zone_(zone), settings_(std::move(settings)) {}

  const NameSettings& settings() const noexcept { return settings_; }

  /// Predicts a look-up that is not in the cache, by servers without faults of the network.
  Prediction predict(const AskedName& name, dns::Family family) const;

  /// A cached result. A look-up is a hit before `sure_until` and a miss from `maybe_until` on.
  struct Cached {
    Prediction result;
    Instant sure_until = Instant::min();
    Instant maybe_until = Instant::min();
  };
  /// Returns the entry of the last look-up; an expired one if there was none.
  const Cached& cached(const AskedName& name, dns::Family family) const;
  /// Stores the result of a look-up that has ended between two moments.
  void insert(const AskedName& name, dns::Family family, const Prediction& result, Instant earliest,
              Instant latest);
  /// Marks the entry as unknown until `latest`, plus its lifetime.
  void insert_maybe(const AskedName& name, dns::Family family, const Prediction& result,
                    Instant latest);
  void set_preferred(std::size_t server) noexcept { preferred_ = server; }

 private:
  using Key = std::tuple<AskedName, dns::Family>;

  std::vector<std::string> candidates(const AskedName& name) const;
  Prediction predict_query(const std::string& name, dns::Family family,
                           std::size_t preferred) const;
  Prediction right_answer(const ZoneName& entry, dns::Family family) const;

  const Zone& zone_;
  NameSettings settings_;
  std::size_t preferred_ = 0;
  std::map<Key, Cached> cached_;
};

}  // namespace weir::simulate
