#include "weir/net/resolver.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "weir/net/dns/detail/address_order.hpp"
#include "weir/task/combinators.hpp"

namespace weir::names {
namespace {

// So many times as many as may ask servers may wait for the files, which are quick as a rule.
constexpr std::size_t at_files_factor = 16;

dns::RecordType type_of(Family family) noexcept {
  return family == Family::ipv6 ? dns::RecordType::aaaa : dns::RecordType::a;
}

Family family_of(const Endpoint& address) noexcept {
  return address.family() == os::AddressFamily::ipv6 ? Family::ipv6 : Family::ipv4;
}

NameAnswer failed(std::error_code error, Duration lifetime = {}) {
  return {.error = error, .addresses = {}, .lifetime = lifetime};
}

/// What can be told without asking anybody.
std::optional<NameAnswer> known_at_once(const NameQuestion& question) {
  if (!is_local_host(question.name.text)) return std::nullopt;
  return NameAnswer{.error = {}, .addresses = {local_host_address(question.family)}};
}

Result<std::vector<Endpoint>> alone(const Endpoint& address) {
  return std::vector<Endpoint>(1, address);
}

Result<std::vector<Endpoint>> with_port(AddressOrder& order, std::uint16_t port) {
  std::vector<Endpoint> addresses;
  while (const auto next = order.next()) addresses.push_back(next->with_port(port));
  return addresses;
}

/// Counts what is under way from its beginning to its end, however it ends.
class UnderWay {
 public:
  explicit UnderWay(Counter& counter) noexcept : counter_(counter) { counter_.add(); }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() { counter_.subtract(); }

 private:
  Counter& counter_;
};

}  // namespace

Resolver::Resolver(ResolverOptions options)
    : options_(std::move(options)),
      files_(options_.hosts_file, options_.resolv_conf),
      cache_(options_.cache_max) {
  options_.addresses_max = std::max<std::size_t>(options_.addresses_max, 1);
  for (Endpoint& server : options_.servers) {
    if (server.port() == 0) server = server.with_port(name_server_port);
  }
}

Resolver::~Resolver() {
  assert(counters_.under_way.value() == 0);
  leave();
}

/// Any thread: see FigureSource.
void Resolver::tell(FigureSum& sum) const {
  std::uint64_t failed = counters_.failed_otherwise.value();
  for (const Counter& each : counters_.failures) failed += each.value();
  sum.add({"names asked for", counters_.asked.value()});
  sum.add({"name look-ups", counters_.lookups.value()});
  sum.add({"name look-ups failed", failed});
  sum.add({"name look-ups refused", counters_.refused.value()});
}

Task<Result<std::vector<Endpoint>>> Resolver::resolve(std::string name, std::uint16_t port) {
  if (const auto address = parse_ip_address(name, port)) co_return alone(*address);
  const auto parsed = parse_host_name(name);
  if (!parsed) co_return fail(parsed.error());
  auto asking_ipv6 = find(NameQuestion{*parsed, Family::ipv6});
  auto asking_ipv4 = find(NameQuestion{*parsed, Family::ipv4});
  const auto both = co_await all(std::move(asking_ipv6), std::move(asking_ipv4));
  const NameAnswer& ipv6 = *std::get<0>(*both);
  const NameAnswer& ipv4 = *std::get<1>(*both);
  if (ipv6.error == Errc::cancelled || ipv4.error == Errc::cancelled) {
    co_return fail(Errc::cancelled);  // half of an answer would look whole
  }
  if (ipv6.error && ipv4.error) co_return fail(more_telling(ipv6.error, ipv4.error));
  AddressOrder order;
  order.add(Family::ipv6, ipv6.addresses);
  order.add(Family::ipv4, ipv4.addresses);
  co_return with_port(order, port);
}

Task<Result<std::vector<Endpoint>>> Resolver::resolve(std::string name, Family family,
                                                      std::uint16_t port) {
  if (const auto address = parse_ip_address(name, port)) {
    if (family_of(*address) != family) co_return fail(Failure::no_address);
    co_return alone(*address);
  }
  auto parsed = parse_host_name(name);
  if (!parsed) co_return fail(parsed.error());
  auto asking = find(NameQuestion{std::move(*parsed), family});
  const Answer answer = co_await std::move(asking);
  if (answer->error) co_return fail(answer->error);
  AddressOrder order;
  order.add(family, answer->addresses);
  co_return with_port(order, port);
}

Task<Resolver::Answer> Resolver::find(NameQuestion question) {
  counters_.asked.add();
  const Context context = co_await this_context();
  Loop& loop = *context.loop;
  loop.figures().add(*this);
  if (auto known = known_at_once(question)) {
    counters_.hits.add();
    co_return std::make_shared<const NameAnswer>(std::move(*known));
  }
  if (auto known = cache_.find(question, loop.now())) {
    counters_.hits.add();
    co_return known;
  }
  if (context.cancelled()) co_return std::make_shared<const NameAnswer>(failed(Errc::cancelled));
  if (const auto found = under_way_.find(question); found != under_way_.end()) {
    counters_.joined.add();
    auto waiting = SharedLookup::wait_for(found->second.lock());
    co_return co_await std::move(waiting);
  }
  if (counters_.under_way.value() - counters_.at_servers.value() >= at_files_max()) {
    counters_.refused.add();
    co_return std::make_shared<const NameAnswer>(failed(Errc::limit_reached));
  }
  SharedLookup::Owner& owner = *this;
  const auto lookup = std::make_shared<SharedLookup>(owner, question, look_up(question));
  auto waiting = SharedLookup::wait_for(lookup);
  under_way_.emplace(std::move(question), lookup);
  lookup->start(loop);
  co_return co_await std::move(waiting);
}

void Resolver::over(SharedLookup& lookup) noexcept {
  under_way_.erase(lookup.question());
}

Task<Resolver::Answer> Resolver::look_up(NameQuestion question) {
  counters_.lookups.add();
  const UnderWay here(counters_.under_way);
  const Context context = co_await this_context();
  NameAnswer told = co_await look_elsewhere(question);
  count(told.error);
  auto answer = std::make_shared<const NameAnswer>(std::move(told));
  cache_.keep(question, answer, context.loop->now());
  co_return answer;
}

Task<NameAnswer> Resolver::look_elsewhere(const NameQuestion& question) {
  const auto refreshed = co_await files_.refresh();
  if (!refreshed) co_return failed(refreshed.error());
  if (const auto* const known = files_.hosts().find(question.name.text)) {
    co_return from_hosts(*known, question.family);
  }
  if (counters_.at_servers.value() >= options_.lookups_max) {
    counters_.refused.add();
    co_return failed(Errc::limit_reached);
  }
  const UnderWay here(counters_.at_servers);
  configure();
  NameAnswer answer = failed(Failure::not_found, options_.negative_ttl_max);
  // Whatever a later name is said to be is true as long as there is none of the earlier ones.
  Duration none_before = Duration::max();
  const std::vector<std::string> names = candidates(question.name);
  for (const std::string& name : names) {
    auto told = co_await servers_.ask(name, type_of(question.family));
    answer = from_servers(std::move(told));
    answer.lifetime = std::min(answer.lifetime, none_before);
    if (answer.error != Failure::not_found) break;
    none_before = answer.lifetime;
  }
  co_return answer;
}

std::size_t Resolver::at_files_max() const noexcept {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / at_files_factor;
  // Also where no server is to be asked there are the files.
  return at_files_factor * std::clamp<std::size_t>(options_.lookups_max, 1, most);
}

/// The servers as they are to be asked from now on.
void Resolver::configure() {
  const ResolvConf& conf = files_.conf();
  servers_.configure(
      {.servers = options_.servers.empty() ? conf.servers : options_.servers,
       .timeout = options_.timeout > Duration::zero() ? options_.timeout : conf.timeout,
       .attempts = options_.attempts > 0 ? options_.attempts : conf.attempts,
       .addresses_max = options_.addresses_max});
}

/// The whole names that `name` may stand for, in the order in which they are asked for.
std::vector<std::string> Resolver::candidates(const HostName& name) const {
  std::vector<std::string> names;
  const auto dots = static_cast<unsigned>(std::ranges::count(name.text, '.'));
  const bool as_it_is_first = dots >= options_.ndots.value_or(files_.conf().ndots);
  if (name.absolute || as_it_is_first) names.push_back(name.text);
  if (name.absolute) return names;
  const auto& search = options_.search ? *options_.search : files_.conf().search;
  for (const std::string& domain : search) {
    // What gets too long, or was no domain, is no name.
    if (auto whole = parse_host_name(name.text + "." + domain)) {
      names.push_back(std::move(whole->text));
    }
  }
  if (!as_it_is_first) names.push_back(name.text);
  return names;
}

NameAnswer Resolver::from_hosts(const std::vector<Endpoint>& known, Family family) const {
  NameAnswer answer = failed(Failure::no_address, options_.hosts_ttl);
  for (const Endpoint& address : known) {
    if (family_of(address) != family || answer.addresses.size() == options_.addresses_max) continue;
    answer.addresses.push_back(address);
    answer.error.clear();
  }
  return answer;
}

NameAnswer Resolver::from_servers(Result<dns::Answer> told) const {
  if (!told) {
    // What this machine lacks may be there again at once.
    const bool theirs = told.error().category() == failure_category();
    return failed(told.error(), theirs ? options_.failure_ttl : Duration::zero());
  }
  if (told->addresses.empty()) {
    const bool exists = told->code == dns::ResponseCode::none;
    return failed(
        exists ? Failure::no_address : Failure::not_found,
        std::min(told->lifetime.value_or(options_.failure_ttl), options_.negative_ttl_max));
  }
  const Duration lifetime = std::max(
      std::min(told->lifetime.value_or(Duration::zero()), options_.ttl_max), options_.ttl_min);
  return {.error = {}, .addresses = std::move(told->addresses), .lifetime = lifetime};
}

void Resolver::count(std::error_code error) noexcept {
  if (!error || error == Errc::cancelled || error == Errc::limit_reached) return;
  if (error.category() == failure_category()) {
    counters_.failures[static_cast<std::size_t>(error.value()) - 1].add();
  } else {
    counters_.failed_otherwise.add();
  }
}

}  // namespace weir::names
