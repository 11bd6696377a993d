// The steps of a client of names that write files, connect, and reach limits.
#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <utility>

#include "tools/simulate/name_clients.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/files.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

using dns::Family;

constexpr std::size_t hosts_names = 4;
// Longest time between two checks of the files.
constexpr Duration files_period = std::chrono::seconds(5);
constexpr Duration connect_timeout = std::chrono::minutes(10);

std::string ip_text(const Endpoint& address) {
  std::string text = address.with_port(0).to_string();
  text.resize(text.size() - 2);
  if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
  return text;
}

std::string hosts_name(std::size_t number) {
  return "h" + std::to_string(number) + ".hosts.example";
}

Task<Result<std::string>> read_line(Stream& stream) {
  std::string line;
  while (!line.ends_with('\n')) {
    WEIR_CO_TRY(const auto bytes, co_await stream.read());
    line += bytes.text();
  }
  line.pop_back();
  co_return line;
}

}  // namespace

/// Returns the addresses of a name in a version of the hosts file, at most `addresses_max`.
std::vector<Endpoint> NameClient::in_hosts(std::size_t number, std::size_t version,
                                           Family family) const {
  constexpr std::array<std::array<std::size_t, 2>, hosts_names> counts{
      {{0, 1}, {1, 0}, {2, 2}, {1, 3}}};  // IPv6 and IPv4
  const std::size_t count =
      std::min(counts[number][index_of(family)], model_.settings().addresses_max);
  std::vector<Endpoint> addresses;
  for (std::size_t each = 0; each < count; ++each) {
    addresses.push_back(unused_address(family, 16 * (number + 4 * version) + each));
  }
  return addresses;
}

/// Writes the next version of the hosts file, with lines that do not count.
Task<> NameClient::write_hosts_file() {
  const std::size_t version = hosts_written_.size();
  std::string text = "# hosts of version " + std::to_string(version) + "\n\n10.1.1.1\n";
  const NameSettings& settings = model_.settings();
  for (std::size_t number = 0; number < hosts_names; ++number) {
    text += "no-address " + hosts_name(number) + "\n10.1.1.2 -" + hosts_name(number) + "\n";
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      for (const Endpoint& each : in_hosts(number, version, family)) {
        text += ip_text(each) + "\tother" + std::to_string(number) + "  " +
                spell({hosts_name(number)}) + (random_.bernoulli(0.5) ? "\n" : " # comment x\n");
        if (random_.bernoulli(0.3)) text += ip_text(each) + " " + hosts_name(number) + "\n";
      }
      // Addresses beyond the limit are dropped.
      if (in_hosts(number, version, family).size() == settings.addresses_max) {
        text += ip_text(unused_address(family, 59999)) + " " + hosts_name(number) + "\n";
      }
    }
  }
  text += "10.1.1.3 last.hosts.example";
  const auto written = co_await files::write_file("/names/hosts", std::move(text));
  if (!written) fail_with("hosts file", written.error().message());
  hosts_written_.push_back(host_->now());
}

Task<> NameClient::write_files() {
  std::ignore = co_await files::make_directory("/names");
  co_await write_hosts_file();
  const NameSettings& settings = model_.settings();
  std::string text = "; servers of a run\ndomain ignored.example other.example\n";
  for (const Endpoint& each : options_.servers) {
    text += "nameserver \t" + ip_text(each) + (random_.bernoulli(0.5) ? "\n" : "  # comment\n");
    if (random_.bernoulli(0.3)) text += "nameserver no-address\nnameservers 10.1.1.1\n";
  }
  if (options_.servers.size() == name_servers_max) text += "nameserver 10.200.1.1\n";
  text += "search";
  for (const std::string& domain : settings.search) text += " -not-valid- " + domain;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(settings.timeout).count();
  text += "\noptions rotate ndots:x ndots:" + std::to_string(settings.ndots) + " timeouts:9";
  text += "\noptions timeout:" + std::to_string(seconds) +
          "\tattempts:" + std::to_string(settings.attempts);
  const auto written = co_await files::write_file("/names/resolv.conf", std::move(text));
  if (!written) fail_with("resolv.conf", written.error().message());
}

/// Looks up a name of the hosts file. Its result may come from an earlier version until the file
/// has been checked again and the cached result has expired.
Task<> NameClient::resolve_from_hosts() {
  const std::size_t number = random_.below(hosts_names);
  const Family family = draw_family();
  const Duration old = files_period + model_.settings().hosts_ttl;
  std::size_t version = hosts_written_.size() - 1;
  while (version > 0 && hosts_written_[version] + old > host_->now()) --version;
  log_.clear();
  ++requests_;
  const AskedName name{hosts_name(number), random_.bernoulli(0.3)};
  const auto found = co_await resolver_->resolve(spell(name), family, 3);
  bool known = false;
  for (; version < hosts_written_.size(); ++version) {
    std::vector<Endpoint> right = in_hosts(number, version, family);
    for (Endpoint& each : right) each = each.with_port(3);
    const bool none = !found && found.error() == dns::ResolveError::no_address;
    if (right.empty() ? none : found && *found == right) known = true;
  }
  if (!known) fail_with(hosts_name(number), "wrong addresses of the hosts file");
  if (!log_.empty()) fail_with(hosts_name(number), "query " + log_.front() + " was sent");
  ++answered_;
}

/// Returns the label of the service at an address; empty if it refuses or never replies.
std::string NameClient::label_at(const Endpoint& address, std::uint16_t port, bool& replies) const {
  replies = true;
  if (address == dns::local_host_address(Family::ipv6)) {
    return port == service_port ? options_.own_label : "";
  }
  for (const NameTarget& target : options_.targets) {
    if (target.address.with_port(0) == address) return target.label;
  }
  replies = false;
  return {};
}

/// Predicts the attempts of a connect. The addresses of a family are known at a moment after the
/// beginning.
NameClient::Attempts NameClient::predict_attempts(const std::vector<Endpoint>& ipv6,
                                                  const std::vector<Endpoint>& ipv4,
                                                  Duration ipv6_at, Duration ipv4_at,
                                                  const tcp::ConnectOptions& options,
                                                  std::uint16_t port) const {
  Attempts all;
  Duration& now = all.duration;
  std::size_t ipv6_taken = 0;
  std::size_t ipv4_taken = 0;
  bool ipv6_is_next = true;
  bool started = false;
  Duration next{};
  for (;;) {
    const bool has_ipv6 = now >= ipv6_at && ipv6_taken < ipv6.size();
    const bool has_ipv4 = now >= ipv4_at && ipv4_taken < ipv4.size();
    if (!has_ipv6 && !has_ipv4) {
      if (now >= ipv6_at && now >= ipv4_at) return all;
      now = now >= ipv6_at ? ipv4_at : now >= ipv4_at ? ipv6_at : std::min(ipv6_at, ipv4_at);
      continue;
    }
    if (!started && now < ipv6_at && now < ipv4_at + options.resolution_delay) {
      now = std::min(ipv6_at, ipv4_at + options.resolution_delay);
      continue;
    }
    if (started && now < next) {
      now = next;
      continue;
    }
    const bool takes_ipv6 = has_ipv6 && (ipv6_is_next || !has_ipv4);
    ipv6_is_next = !takes_ipv6;
    const Endpoint address = takes_ipv6 ? ipv6[ipv6_taken++] : ipv4[ipv4_taken++];
    bool replies = false;
    all.label = label_at(address, port, replies);
    if (!all.label.empty()) return all;
    started = true;
    next = replies ? now : now + options.attempt_delay;
    // An attempt without a reply fails long after all others.
    if (!replies) all.error = system_error(ETIMEDOUT);
    if (replies && !all.error) all.error = system_error(ECONNREFUSED);
  }
}

/// Connects to a name whose addresses reply, refuse or stay silent.
Task<> NameClient::connect() {
  const AskedName name{zone_.connectable[random_.below(zone_.connectable.size())], true};
  const std::uint16_t port = random_.bernoulli(0.5) ? service_port : remote_service_port;
  tcp::ConnectOptions options;
  options.resolver = resolver_;
  options.attempt_delay = std::chrono::milliseconds(250 + random_.below(250));
  options.resolution_delay = std::chrono::milliseconds(150 + random_.below(100));
  log_.clear();
  requests_ += 2;
  const Expectation ipv6 = expect(name, Family::ipv6);
  const Expectation ipv4 = expect(name, Family::ipv4);
  const auto moment = [](const Expectation& of) {
    return of.may_hit ? Duration::zero() : of.result.duration;
  };
  Attempts right = predict_attempts(ipv6.result.addresses, ipv4.result.addresses, moment(ipv6),
                                    moment(ipv4), options, port);
  if (ipv6.result.error && ipv4.result.error) {
    right.error = predicted_error(ipv6.result.error, ipv4.result.error);
  }
  // If an IPv6 address refuses, the next attempt depends on the family that is known by then.
  const auto& known = ipv6.result.addresses;
  const bool refuses = port == remote_service_port && known.size() > 1 &&
                       std::ranges::count(known, dns::local_host_address(Family::ipv6)) > 0;
  const bool races = refuses && (ipv6.may_miss || ipv4.may_miss);
  const bool vague = races || (ipv6.may_hit && ipv6.may_miss) || (ipv4.may_hit && ipv4.may_miss);
  const Instant begun = host_->now();
  auto stream = co_await timeout(connect_timeout, tcp::connect(spell(name), port, options));
  const Instant ended = host_->now();
  std::string label;
  if (stream) {
    const auto line = co_await timeout(connect_timeout, read_line(*stream));
    label = line ? *line : line.error().message();
  }
  const std::string what = "connect to " + name.text + " port " + std::to_string(port);
  // A look-up of one family may have timed out, so that the other addresses are all.
  const bool lost =
      !options_.exact && !stream &&
      (stream.error() == dns::ResolveError::timed_out ||
       stream.error() == system_error(ECONNREFUSED) || stream.error() == system_error(ETIMEDOUT));
  const bool exact = options_.exact && !vague;
  if (!stream && !lost && (!right.label.empty() || stream.error() != right.error)) {
    fail_with(what, stream.error().message());
  } else if (stream && (exact ? label != right.label : right.label.empty())) {
    fail_with(what, "reached " + label + " instead of " + right.label);
  }
  if (exact && stream) {
    const Duration took = ended - begun;
    if (took < right.duration || took > right.duration + slack) {
      fail_with(what, "took " + std::to_string(took.count()) + " ns instead of " +
                          std::to_string(right.duration.count()));
    }
  }
  // The first connection cancels a look-up that is still pending.
  for (const auto& [family, each] :
       {std::pair{Family::ipv6, &ipv6}, std::pair{Family::ipv4, &ipv4}}) {
    if (each->may_miss) model_.insert_maybe(name, family, each->result, host_->now());
  }
  if (options_.exact) {
    for (const std::string& query : log_) {
      const auto sends = [&](const Expectation& of) {
        return of.may_miss && std::ranges::count(of.result.queries, query) > 0;
      };
      if (!sends(ipv6) && !sends(ipv4)) fail_with(what, "query " + query + " was sent");
    }
  }
  ++answered_;
}

/// Checks that the cache keeps the results that were used last.
Task<> NameClient::check_cache_limit() {
  if (!options_.exact) co_return;
  dns::ResolverOptions options;
  options.hosts_file = options.resolv_conf = "";
  options.servers = options_.servers;
  options.cache_max = 1 + random_.below(4);
  options.ttl_min = std::chrono::hours(1);
  dns::Resolver resolver(options);
  std::list<std::string> kept;  // names, the last used first
  for (int left = 16; left > 0; --left) {
    const std::string& name = zone_.stable[random_.below(zone_.stable.size())];
    const auto known = std::ranges::find(kept, name);
    const bool hit = known != kept.end();
    if (hit) kept.erase(known);
    kept.push_front(name);
    if (kept.size() > options.cache_max) kept.pop_back();
    log_.clear();
    const auto found = co_await resolver.resolve(name + ".", Family::ipv4);
    if (!found) fail_with(name, found.error().message());
    if (log_.empty() != hit) {
      fail_with(name, hit ? "a cached result was queried again" : "a dropped result was found");
    }
  }
  ++answered_;
}

Task<> NameClient::count_limited(std::string name, dns::Resolver* resolver, std::size_t* rejected) {
  const auto found = co_await resolver->resolve(name + ".", Family::ipv4);
  const auto& right = zone_.find(name).addresses[index_of(Family::ipv4)];
  if (!found && found.error() == Errc::limit_reached) {
    ++*rejected;
  } else if (!found || found->size() != 1 || found->front() != right.front().address) {
    fail_with(name, "wrong result beside look-ups that were rejected");
  }
}

/// Checks that the look-ups beyond the limit are rejected, and only these.
Task<> NameClient::check_lookup_limit() {
  if (!options_.exact) co_return;
  dns::ResolverOptions options;
  options.hosts_file = options.resolv_conf = "";
  options.servers = options_.servers;
  options.cache_max = 0;
  options.lookups_max = random_.below(zone_.stable.size());
  dns::Resolver resolver(options);
  for (int times = 0; times < 2; ++times) {
    std::size_t rejected = 0;
    log_.clear();
    const auto all_of_them = [&](Scope& scope) -> Task<Result<>> {
      for (const std::string& name : zone_.stable) {
        scope.spawn(count_limited(name, &resolver, &rejected));
      }
      co_return {};
    };
    std::ignore = co_await with_scope(OnFailure::isolate, all_of_them);
    if (rejected != zone_.stable.size() - options.lookups_max) {
      fail_with("limit of look-ups", std::to_string(rejected) + " were rejected");
    }
    if (log_.size() != options.lookups_max) {
      fail_with("limit of look-ups", std::to_string(log_.size()) + " queries were sent");
    }
  }
  ++answered_;
}

}  // namespace weir::simulate
