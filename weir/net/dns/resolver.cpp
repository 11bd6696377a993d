#include "weir/net/dns/resolver.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "weir/net/dns/detail/address_order.hpp"
#include "weir/task/combinators.hpp"

namespace weir::dns {
namespace {

// Maximum ratio of look-ups that wait for the files, which are usually fast, to those that may
// query servers.
constexpr std::size_t at_files_factor = 16;

dns::RecordType type_of(Family family) noexcept {
  return family == Family::ipv6 ? dns::RecordType::aaaa : dns::RecordType::a;
}

Family family_of(const Endpoint& address) noexcept {
  return address.family() == os::AddressFamily::ipv6 ? Family::ipv6 : Family::ipv4;
}

LookupResult failed(std::error_code error, Duration lifetime = {}) {
  return {.error = error, .addresses = {}, .lifetime = lifetime};
}

/// Returns the result if it needs neither the files nor a server.
std::optional<LookupResult> resolve_local(const Question& question) {
  if (!is_local_host(question.name.text)) return std::nullopt;
  return LookupResult{.error = {}, .addresses = {local_host_address(question.family)}};
}

Result<std::vector<Endpoint>> single(const Endpoint& address) {
  return std::vector<Endpoint>(1, address);
}

Result<std::vector<Endpoint>> with_port(AddressOrder& order, std::uint16_t port) {
  std::vector<Endpoint> addresses;
  while (const auto next = order.next()) addresses.push_back(next->with_port(port));
  return addresses;
}

/// Counts an operation as pending during its own lifetime.
class InFlightCount {
 public:
  explicit InFlightCount(detail::Counter& counter) noexcept : counter_(counter) { counter_.add(); }
  InFlightCount(const InFlightCount&) = delete;
  InFlightCount& operator=(const InFlightCount&) = delete;
  ~InFlightCount() { counter_.subtract(); }

 private:
  detail::Counter& counter_;
};

}  // namespace

Resolver::Resolver(ResolverOptions options)
    : options_(std::move(options)),
      system_config_(options_.hosts_file, options_.resolv_conf),
      cache_(options_.cache_max) {
  options_.addresses_max = std::max<std::size_t>(options_.addresses_max, 1);
  for (Endpoint& server : options_.servers) {
    if (server.port() == 0) server = server.with_port(name_server_port);
  }
}

Resolver::~Resolver() {
  assert(counters_.in_flight.value() == 0);
  detach();
}

/// Threads: any; see MetricSource.
void Resolver::collect(MetricSnapshot& sum) const {
  static constexpr MetricInfo requests{
      .name = "weir.dns.requests", .unit = "{request}", .help = "Questions sent to name servers."};
  static constexpr MetricInfo lookups{
      .name = "weir.dns.lookups", .unit = "{lookup}", .help = "Look-ups of names."};
  static constexpr MetricInfo lookups_failed{.name = "weir.dns.lookups.failed",
                                             .unit = "{lookup}",
                                             .help = "Look-ups of names that failed."};
  static constexpr MetricInfo lookups_rejected{
      .name = "weir.dns.lookups.rejected",
      .unit = "{lookup}",
      .help = "Look-ups rejected because too many were running."};
  std::uint64_t failed = counters_.failed_locally.value();
  for (const detail::Counter& each : counters_.failures) failed += each.value();
  sum.add({"dns requests", counters_.requests.value(), Metric::Kind::counter, &requests});
  sum.add({"dns look-ups", counters_.lookups.value(), Metric::Kind::counter, &lookups});
  sum.add({"dns look-ups failed", failed, Metric::Kind::counter, &lookups_failed});
  sum.add({"dns look-ups rejected", counters_.rejected.value(), Metric::Kind::counter,
           &lookups_rejected});
}

Task<Result<std::vector<Endpoint>>> Resolver::resolve(std::string name, std::uint16_t port) {
  if (const auto address = parse_ip_address(name, port)) co_return single(*address);
  WEIR_CO_TRY(const auto parsed, parse_host_name(name));
  auto ipv6_lookup = lookup(Question{parsed, Family::ipv6});
  auto ipv4_lookup = lookup(Question{parsed, Family::ipv4});
  const auto both = co_await all(std::move(ipv6_lookup), std::move(ipv4_lookup));
  const LookupResult& ipv6 = *std::get<0>(*both);
  const LookupResult& ipv4 = *std::get<1>(*both);
  if (ipv6.error == Errc::cancelled || ipv4.error == Errc::cancelled) {
    co_return fail(Errc::cancelled);  // half of a result would look complete
  }
  if (ipv6.error && ipv4.error) co_return fail(more_specific_error(ipv6.error, ipv4.error));
  AddressOrder order;
  order.add(Family::ipv6, ipv6.addresses);
  order.add(Family::ipv4, ipv4.addresses);
  co_return with_port(order, port);
}

Task<Result<std::vector<Endpoint>>> Resolver::resolve(std::string name, Family family,
                                                      std::uint16_t port) {
  if (const auto address = parse_ip_address(name, port)) {
    if (family_of(*address) != family) co_return fail(ResolveError::no_address);
    co_return single(*address);
  }
  WEIR_CO_TRY(auto parsed, parse_host_name(name));
  auto asking = lookup(Question{std::move(parsed), family});
  const ResultPtr answer = co_await std::move(asking);
  if (answer->error) co_return fail(answer->error);
  AddressOrder order;
  order.add(family, answer->addresses);
  co_return with_port(order, port);
}

Task<Resolver::ResultPtr> Resolver::lookup(Question question) {
  counters_.requests.add();
  const Context context = co_await this_context();
  Loop& loop = *context.loop;
  loop.metrics().add(*this);
  if (auto known = resolve_local(question)) {
    counters_.hits.add();
    co_return std::make_shared<const LookupResult>(std::move(*known));
  }
  if (auto known = cache_.find(question, loop.now())) {
    counters_.hits.add();
    co_return known;
  }
  if (context.cancelled()) co_return std::make_shared<const LookupResult>(failed(Errc::cancelled));
  if (const auto found = in_flight_.find(question); found != in_flight_.end()) {
    counters_.coalesced.add();
    auto waiting = SharedLookup::wait(found->second.lock());
    co_return co_await std::move(waiting);
  }
  if (counters_.in_flight.value() - counters_.querying.value() >= at_files_max()) {
    counters_.rejected.add();
    co_return std::make_shared<const LookupResult>(failed(Errc::limit_reached));
  }
  SharedLookup::Owner& owner = *this;
  const auto lookup = std::make_shared<SharedLookup>(owner, question, run_lookup(question));
  auto waiting = SharedLookup::wait(lookup);
  in_flight_.emplace(std::move(question), lookup);
  lookup->start(loop);
  co_return co_await std::move(waiting);
}

void Resolver::on_finished(SharedLookup& lookup) noexcept {
  in_flight_.erase(lookup.question());
}

Task<Resolver::ResultPtr> Resolver::run_lookup(Question question) {
  counters_.lookups.add();
  const InFlightCount here(counters_.in_flight);
  const Context context = co_await this_context();
  LookupResult result = co_await lookup_uncached(question);
  count(result.error);
  auto answer = std::make_shared<const LookupResult>(std::move(result));
  cache_.insert(question, answer, context.loop->now());
  co_return answer;
}

Task<LookupResult> Resolver::lookup_uncached(const Question& question) {
  const auto refreshed = co_await system_config_.refresh();
  if (!refreshed) co_return failed(refreshed.error());
  if (const auto* const known = system_config_.hosts().find(question.name.text)) {
    co_return from_hosts(*known, question.family);
  }
  if (counters_.querying.value() >= options_.lookups_max) {
    counters_.rejected.add();
    co_return failed(Errc::limit_reached);
  }
  const InFlightCount here(counters_.querying);
  configure();
  LookupResult answer = failed(ResolveError::not_found, options_.negative_ttl_max);
  // The result for a later name is valid only while the earlier names do not exist.
  Duration none_before = Duration::max();
  const std::vector<std::string> names = candidates(question.name);
  for (const std::string& name : names) {
    auto result = co_await client_.query(name, type_of(question.family));
    answer = from_response(std::move(result));
    answer.lifetime = std::min(answer.lifetime, none_before);
    if (answer.error != ResolveError::not_found) break;
    none_before = answer.lifetime;
  }
  co_return answer;
}

std::size_t Resolver::at_files_max() const noexcept {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / at_files_factor;
  // A look-up may use the files even if the options allow no server query.
  return at_files_factor * std::clamp<std::size_t>(options_.lookups_max, 1, most);
}

/// Passes the current servers and their options to the client.
void Resolver::configure() {
  const ResolvConf& conf = system_config_.conf();
  client_.configure(
      {.servers = options_.servers.empty() ? conf.servers : options_.servers,
       .timeout = options_.timeout > Duration::zero() ? options_.timeout : conf.timeout,
       .attempts = options_.attempts > 0 ? options_.attempts : conf.attempts,
       .addresses_max = options_.addresses_max});
}

/// Returns the full names that `name` may stand for, in the order in which they are queried.
std::vector<std::string> Resolver::candidates(const HostName& name) const {
  std::vector<std::string> names;
  const auto dots = static_cast<unsigned>(std::ranges::count(name.text, '.'));
  const bool as_it_is_first = dots >= options_.ndots.value_or(system_config_.conf().ndots);
  if (name.absolute || as_it_is_first) names.push_back(name.text);
  if (name.absolute) return names;
  const auto& search = options_.search ? *options_.search : system_config_.conf().search;
  for (const std::string& domain : search) {
    // Names that are too long, and invalid search domains, are skipped.
    if (auto whole = parse_host_name(name.text + "." + domain)) {
      names.push_back(std::move(whole->text));
    }
  }
  if (!as_it_is_first) names.push_back(name.text);
  return names;
}

LookupResult Resolver::from_hosts(const std::vector<Endpoint>& known, Family family) const {
  LookupResult answer = failed(ResolveError::no_address, options_.hosts_ttl);
  for (const Endpoint& address : known) {
    if (family_of(address) != family || answer.addresses.size() == options_.addresses_max) continue;
    answer.addresses.push_back(address);
    answer.error.clear();
  }
  return answer;
}

LookupResult Resolver::from_response(Result<dns::Response> result) const {
  if (!result) {
    // Missing local resources may be available again immediately.
    const bool theirs = result.error().category() == resolve_error_category();
    return failed(result.error(), theirs ? options_.failure_ttl : Duration::zero());
  }
  if (result->addresses.empty()) {
    const bool exists = result->code == dns::ResponseCode::no_error;
    return failed(
        exists ? ResolveError::no_address : ResolveError::not_found,
        std::min(result->lifetime.value_or(options_.failure_ttl), options_.negative_ttl_max));
  }
  const Duration lifetime = std::max(
      std::min(result->lifetime.value_or(Duration::zero()), options_.ttl_max), options_.ttl_min);
  return {.error = {}, .addresses = std::move(result->addresses), .lifetime = lifetime};
}

void Resolver::count(std::error_code error) noexcept {
  if (!error || error == Errc::cancelled || error == Errc::limit_reached) return;
  if (error.category() == resolve_error_category()) {
    counters_.failures[static_cast<std::size_t>(error.value()) - 1].add();
  } else {
    counters_.failed_locally.add();
  }
}

}  // namespace weir::dns
