// The steps of a client of names, and their checks.
#include "tools/simulate/name_clients.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

using dns::Family;
using dns::ResolveError;

std::string text_of(const std::vector<Endpoint>& addresses) {
  std::string text;
  for (const Endpoint& each : addresses) text += each.to_string() + " ";
  return text;
}

std::string text_of(const Result<std::vector<Endpoint>>& found) {
  return found ? text_of(*found) : found.error().message();
}

std::vector<Endpoint> with_port(std::vector<Endpoint> addresses, std::uint16_t port) {
  for (Endpoint& each : addresses) each = each.with_port(port);
  return addresses;
}

Result<std::vector<Endpoint>> combine(const Prediction& ipv6, const Prediction& ipv4) {
  if (ipv6.error && ipv4.error) return fail(predicted_error(ipv6.error, ipv4.error));
  return alternate(ipv6.addresses, ipv4.addresses);
}

Task<> send_label(tcp::Stream stream, std::string line) {
  std::ignore = co_await stream.write(std::string_view(line));
  std::ignore = co_await stream.read();
}

}  // namespace

Task<Result<>> serve_label(Scope& scope, std::uint16_t port, std::string label) {
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(port)));
  for (;;) {
    auto stream = co_await listener.accept();
    if (!stream) co_return {};
    scope.spawn(send_label(std::move(*stream), label + "\n"));
  }
}

void NameClient::fail_with(std::string_view what, std::string_view why) {
  if (violation_.empty()) violation_ = std::string(what) + ": " + std::string(why);
}

Family NameClient::draw_family() {
  return random_.one_of(families);
}

/// Draws a name that exists or not, also one that is found through the search domains.
AskedName NameClient::draw_name() {
  const bool plain = options_.exact ? random_.bernoulli(0.5) : true;
  const auto& names = plain ? zone_.plain : zone_.faulty;
  AskedName name{names[random_.below(names.size())], random_.bernoulli(0.3)};
  if (random_.bernoulli(0.1)) name.text = "none" + std::to_string(random_.below(3)) + ".example";
  // If a name were tried after others, the family that is looked up last could begin with another
  // server.
  const auto dots = static_cast<unsigned>(std::ranges::count(name.text, '.'));
  if (!plain && dots < model_.settings().ndots) name.absolute = true;
  if (plain && !name.absolute && random_.bernoulli(0.3)) {
    for (const std::string& domain : zone_.domains) {
      if (name.text.ends_with("." + domain)) {
        name.text.resize(name.text.size() - domain.size() - 1);
      }
    }
  }
  return name;
}

std::string NameClient::spell(const AskedName& name) {
  std::string text = name.text;
  for (char& each : text) {
    if (random_.bernoulli(0.2)) each = static_cast<char>(std::toupper(each));
  }
  return name.absolute ? text + "." : text;
}

NameClient::Expectation NameClient::expect(const AskedName& name, Family family) const {
  const NameModel::Cached& cached = model_.cached(name, family);
  const Instant now = host_->now();
  const bool may_hit = now < cached.maybe_until;
  if (may_hit && now < cached.sure_until) return {.result = cached.result, .may_hit = true};
  return {.result = model_.predict(name, family), .may_hit = may_hit, .may_miss = true};
}

/// Updates the model after a look-up that began at `begun` and has ended now.
void NameClient::learn(const AskedName& name, Family family, const Expectation& expected,
                       bool queried, Instant begun) {
  if (expected.may_hit && !queried) return;
  const Prediction& result = expected.result;
  const Duration least = options_.exact ? result.duration : Duration::zero();
  model_.insert(name, family, result, begun + least, host_->now());
  model_.set_preferred(result.preferred);
  for (std::size_t value = 1; value <= failures_.size(); ++value) {
    if (result.error == static_cast<ResolveError>(value)) ++failures_[value - 1];
  }
}

bool NameClient::is_permitted(const Addresses& found, const Prediction& expected) const {
  if (!options_.exact && !found && found.error() == ResolveError::timed_out) return true;
  if (expected.error) return !found && found.error() == expected.error;
  return found && *found == expected.addresses;
}

/// Compares the queries since the log was cleared with those of the look-ups that have missed.
void NameClient::check_queries(std::string_view what,
                               const std::vector<const Expectation*>& expected) {
  QueryLog left = log_;
  QueryLog missing;
  for (const Expectation* const each : expected) {
    // A look-up that may hit or miss has sent all of its queries or none.
    const auto sent = [&](const std::string& query) {
      return std::ranges::find(left, query) != left.end();
    };
    const auto& queries = each->result.queries;
    const bool hit = each->may_hit && (queries.empty() || !sent(queries.front()));
    if (!each->may_miss || hit) continue;
    for (const std::string& query : queries) {
      const auto found = std::ranges::find(left, query);
      if (found == left.end()) {
        missing.push_back(query);
      } else {
        left.erase(found);
      }
    }
  }
  if (options_.exact) {
    if (!missing.empty()) fail_with(what, "query " + missing.front() + " was not sent");
    if (!left.empty()) fail_with(what, "query " + left.front() + " was sent needlessly");
    return;
  }
  // Lost datagrams cause more queries, and copies of datagrams arrive twice.
  std::size_t most = 0;
  for (const Expectation* const each : expected) {
    const NameSettings& settings = model_.settings();
    if (each->may_miss) {
      most += 4 * settings.attempts * settings.servers * (1 + settings.search.size());
    }
  }
  if (log_.size() > most) {
    fail_with(what, std::to_string(log_.size()) + " queries were sent; at most " +
                        std::to_string(most) + " are permitted");
  }
}

void NameClient::check_time(std::string_view what, Instant begun, Duration expected) {
  const Duration took = host_->now() - begun;
  if (!options_.exact || (took >= expected && took <= expected + slack)) return;
  fail_with(what, "took " + std::to_string(took.count()) + " ns instead of " +
                      std::to_string(expected.count()));
}

/// Looks up one family, or both.
Task<> NameClient::resolve(AskedName name, std::optional<Family> family) {
  const std::string spelt = spell(name);
  log_.clear();
  const Instant begun = host_->now();
  const auto port = static_cast<std::uint16_t>(random_.below(65536));
  const Expectation ipv6 = expect(name, Family::ipv6);
  const Expectation ipv4 = expect(name, Family::ipv4);
  if (family) {
    const Expectation& expected = *family == Family::ipv6 ? ipv6 : ipv4;
    ++requests_;
    const auto found = co_await resolver_->resolve(spelt, *family, port);
    Prediction right = expected.result;
    right.addresses = with_port(right.addresses, port);
    if (!is_permitted(found, right)) {
      fail_with(spelt, text_of(found) + " instead of " + right.error.message() + " " +
                           text_of(right.addresses));
    }
    check_queries(spelt, {&expected});
    if (!expected.may_hit) check_time(spelt, begun, expected.result.duration);
    const bool lost = !found && found.error() != expected.result.error;
    if (!lost) learn(name, *family, expected, !log_.empty(), begun);
    if (lost) model_.insert_maybe(name, *family, expected.result, host_->now());
  } else {
    requests_ += 2;
    const auto found = co_await resolver_->resolve(spelt, port);
    Addresses right = combine(ipv6.result, ipv4.result);
    if (right) right = with_port(*right, port);
    if (found.has_value() != right.has_value() ||
        (found ? *found != *right : found.error() != right.error())) {
      fail_with(spelt, text_of(found) + " instead of " + text_of(right));
    }
    check_queries(spelt, {&ipv6, &ipv4});
    if (!ipv6.may_hit && !ipv4.may_hit) {
      check_time(spelt, begun, std::max(ipv6.result.duration, ipv4.result.duration));
    }
    const auto asked = [&](std::string_view type) {
      return std::ranges::any_of(log_, [&](const std::string& each) {
        return each.ends_with(type) || each.ends_with(std::string(type) + " TCP");
      });
    };
    learn(name, Family::ipv6, ipv6, asked(" AAAA"), begun);
    learn(name, Family::ipv4, ipv4, asked(" A"), begun);
  }
  ++answered_;
}

/// Looks up the last name again, just before its entry expires or as soon as it has.
Task<> NameClient::resolve_at_expiry() {
  if (!last_) co_return;
  const NameModel::Cached cached = model_.cached(*last_, last_family_);
  const Instant now = host_->now();
  if (cached.maybe_until <= now) co_return;
  const bool before = random_.bernoulli(0.5) && cached.sure_until > now;
  const Duration wait = before ? cached.sure_until - now - Duration(1) : cached.maybe_until - now;
  const auto slept = co_await sleep(wait);
  if (slept) co_await resolve(*last_, last_family_);
}

Task<> NameClient::resolve_patiently(AskedName name, Family family, const Expectation* expected) {
  ++requests_;
  const auto found = co_await resolver_->resolve(spell(name), family);
  if (!is_permitted(found, expected->result)) fail_with(name.text, text_of(found));
}

Task<> NameClient::resolve_impatiently(AskedName name, Family family, const Expectation* expected) {
  ++requests_;
  const Duration patience =
      random_.between(std::chrono::milliseconds(1), std::chrono::milliseconds(20));
  const auto found = co_await timeout(patience, resolver_->resolve(spell(name), family));
  const bool timed_out = !found && found.error() == Errc::timed_out;
  if (!timed_out && !is_permitted(found, expected->result)) fail_with(name.text, text_of(found));
}

/// Looks up one name by several tasks at the same time; all but one of them may give up.
Task<> NameClient::resolve_by_many() {
  const AskedName name = draw_name();
  const Family family = draw_family();
  log_.clear();
  const Instant begun = host_->now();
  const Expectation expected = expect(name, family);
  const std::size_t count = 2 + random_.below(4);
  const std::size_t patient = random_.below(count);
  const auto all_of_them = [&](Scope& scope) -> Task<Result<>> {
    for (std::size_t each = 0; each < count; ++each) {
      if (each == patient) {
        scope.spawn(resolve_patiently(name, family, &expected));
      } else {
        scope.spawn(resolve_impatiently(name, family, &expected));
      }
    }
    co_return {};
  };
  std::ignore = co_await with_scope(OnFailure::isolate, all_of_them);
  check_queries(name.text, {&expected});
  learn(name, family, expected, !log_.empty(), begun);
  ++answered_;
}

/// Looks up texts that need no server: addresses, localhost, and texts that are no host names.
Task<> NameClient::resolve_without_query() {
  const Family family = draw_family();
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  const std::array<std::string, 14> wrong{label + "a.example",
                                          longest + "b",
                                          "-a.example",
                                          "a-.example",
                                          "a..example",
                                          ".example",
                                          "",
                                          ".",
                                          "1.2.3",
                                          "127.1",
                                          "256.1.1.1",
                                          "a b.example",
                                          "a.example..",
                                          "a.\xc3\xa4"};
  log_.clear();
  const std::string& text = wrong[random_.below(wrong.size())];
  const auto rejected = co_await resolver_->resolve(text, family);
  if (rejected || rejected.error() != Errc::bad_input) fail_with(text, text_of(rejected));
  const Endpoint address = unused_address(family, random_.below(60000));
  std::string literal = address.to_string();
  literal.resize(literal.rfind(':'));  // without the port
  const auto itself = co_await resolver_->resolve(literal, family, 5);
  if (!itself || *itself != std::vector<Endpoint>(1, address.with_port(5))) {
    fail_with(literal, text_of(itself));
  }
  const Family other = family == Family::ipv4 ? Family::ipv6 : Family::ipv4;
  const auto none = co_await resolver_->resolve(literal, other);
  if (none || none.error() != ResolveError::no_address) fail_with(literal, text_of(none));
  requests_ += 2;
  const std::string here = random_.bernoulli(0.5) ? "localhost" : "a.LOCALHOST.";
  const auto own = co_await resolver_->resolve(here, 9);
  const std::vector<Endpoint> loopback{dns::local_host_address(Family::ipv6).with_port(9),
                                       Endpoint::loopback(9)};
  if (!own || *own != loopback) fail_with(here, text_of(own));
  if (!log_.empty()) fail_with(text, "query " + log_.front() + " was sent");
  ++answered_;
}

Task<> NameClient::step() {
  const std::size_t kind = random_.below(16);
  if (kind < 6 || (!options_.exact && kind < 10)) {
    last_ = draw_name();
    last_family_ = draw_family();
    const bool both = options_.exact && random_.bernoulli(0.4);
    std::optional<Family> family;
    if (!both) family = last_family_;
    co_await resolve(*last_, family);
    for (int times = 0; times < 2 && options_.exact; ++times) co_await resolve_at_expiry();
  } else if (kind < 8) {
    co_await resolve_at_expiry();
  } else if (kind < 10) {
    co_await resolve_by_many();
  } else if (kind < 13) {
    co_await connect();
  } else if (kind < 14) {
    co_await resolve_without_query();
  } else {
    if (random_.bernoulli(0.2)) co_await write_hosts_file();
    co_await resolve_from_hosts();
  }
}

Task<> NameClient::run(Scope& scope) {
  host_ = &scope.loop().platform();
  random_ = sim::Random(host_->random());
  auto slept = co_await sleep(std::chrono::milliseconds(500));  // all servers listen by then
  co_await write_files();
  const NameSettings& settings = model_.settings();
  dns::ResolverOptions options;
  options.hosts_file = "/names/hosts";
  options.resolv_conf = "/names/resolv.conf";
  options.ttl_min = settings.ttl_min;
  options.ttl_max = settings.ttl_max;
  options.negative_ttl_max = settings.negative_ttl_max;
  options.failure_ttl = settings.failure_ttl;
  options.hosts_ttl = settings.hosts_ttl;
  options.addresses_max = settings.addresses_max;
  dns::Resolver resolver(options);
  resolver_ = &resolver;
  for (std::size_t left = options_.steps; left > 0 && violation_.empty() && slept; --left) {
    co_await step();
    // Late copies of datagrams must not count as queries of the next step.
    const Duration least = std::chrono::milliseconds(options_.exact ? 10 : 1000);
    slept = co_await sleep(random_.between(least, std::chrono::seconds(2)));
  }
  check_counters();
  resolver_ = nullptr;
  co_await check_cache_limit();
  co_await check_lookup_limit();
  done_ = true;
}

void NameClient::check_counters() {
  const dns::ResolverCounters& counters = resolver_->counters();
  if (counters.in_flight.value() != 0 || counters.querying.value() != 0) {
    fail_with("counters", "look-ups are in flight after the end");
  }
  if (counters.requests.value() != requests_) fail_with("counters", "wrong number of requests");
  if (counters.requests.value() != counters.hits.value() + counters.coalesced.value() +
                                       counters.lookups.value() + counters.rejected.value()) {
    fail_with("counters", "a request was neither a hit, nor coalesced, nor a look-up");
  }
  if (counters.rejected.value() != 0) fail_with("counters", "look-ups were rejected");
  for (std::size_t value = 2; value <= failures_.size() && options_.exact; ++value) {
    if (counters.failures[value - 1].value() == failures_[value - 1]) continue;
    fail_with("counters", "wrong number of failures with error " + std::to_string(value));
  }
}

std::string NameClient::find_violation() const {
  return violation_.empty() && !done_ ? "the client has not ended" : violation_;
}

}  // namespace weir::simulate
