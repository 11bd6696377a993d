// The rules of a resolver, as its documentation states them.
#include "tools/simulate/name_model.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/net/dns/resolver.hpp"

namespace weir::simulate {
namespace {

using dns::Family;
using dns::ResolveError;

constexpr std::size_t aliases_max = 16;
constexpr std::size_t name_bytes_max = 253;

/// Returns the time of a TTL; one with more than 31 bits counts as zero.
Duration time_of(std::uint32_t ttl) {
  return std::chrono::seconds(ttl >= 0x80000000U ? 0U : ttl);
}

/// Returns the error that a server's mode causes; no error if the server answers.
std::error_code error_of(AnswerMode mode) {
  switch (mode) {
    case AnswerMode::correct:
    case AnswerMode::truncated:
      return {};
    case AnswerMode::silent:
    case AnswerMode::strays:
      return ResolveError::timed_out;
    case AnswerMode::refused:
      return ResolveError::refused;
    case AnswerMode::failed:
    case AnswerMode::tcp_cut:
    case AnswerMode::tcp_closed:
      return ResolveError::server_failed;
    case AnswerMode::malformed:
    case AnswerMode::tcp_wrong:
    case AnswerMode::tcp_truncated:
      return ResolveError::malformed;
  }
  return {};
}

bool uses_tcp(AnswerMode mode) {
  return mode == AnswerMode::truncated || mode >= AnswerMode::tcp_cut;
}

int rank(std::error_code error) {
  constexpr std::array order{ResolveError::no_address,   ResolveError::not_found,
                             ResolveError::unreachable,  ResolveError::timed_out,
                             ResolveError::malformed,    ResolveError::refused,
                             ResolveError::server_failed};
  if (!error) return -1;
  const auto found = std::ranges::find_if(order, [&](ResolveError each) { return error == each; });
  return static_cast<int>(found - order.begin());
}

}  // namespace

NameSettings NameSettings::draw(sim::Random& random) {
  NameSettings settings;
  settings.servers = 1 + random.below(name_servers_max);
  settings.ndots = static_cast<unsigned>(random.below(4));
  settings.timeout = std::chrono::seconds(3 + random.below(3));
  settings.attempts = 1 + static_cast<unsigned>(random.below(3));
  constexpr std::array<std::size_t, 4> maxima{1, 2, 31, 32};
  settings.addresses_max = random.one_of(maxima);
  settings.ttl_min = std::chrono::seconds(random.below(3));
  settings.ttl_max = std::chrono::seconds(3 + random.below(6));
  settings.negative_ttl_max = std::chrono::seconds(1 + random.below(5));
  settings.failure_ttl = std::chrono::milliseconds(500 + random.below(1000));
  settings.hosts_ttl = std::chrono::seconds(1 + random.below(5));
  return settings;
}

std::error_code predicted_error(std::error_code first, std::error_code second) {
  return rank(second) > rank(first) ? second : first;
}

std::vector<Endpoint> alternate(const std::vector<Endpoint>& ipv6,
                                const std::vector<Endpoint>& ipv4) {
  std::vector<Endpoint> all;
  for (std::size_t at = 0; at < std::max(ipv6.size(), ipv4.size()); ++at) {
    if (at < ipv6.size()) all.push_back(ipv6[at]);
    if (at < ipv4.size()) all.push_back(ipv4[at]);
  }
  return all;
}

std::vector<std::string> NameModel::candidates(const AskedName& name) const {
  if (name.absolute) return {name.text};
  std::vector<std::string> names;
  for (const std::string& domain : settings_.search) {
    std::string whole = name.text + "." + domain;
    if (whole.size() <= name_bytes_max) names.push_back(std::move(whole));
  }
  const auto dots = static_cast<unsigned>(std::ranges::count(name.text, '.'));
  names.insert(dots < settings_.ndots ? names.end() : names.begin(), name.text);
  return names;
}

/// Predicts the result of an answer without errors, within the limits of the settings.
Prediction NameModel::right_answer(const ZoneName& entry, Family family) const {
  Prediction result;
  if (entry.aliases.size() > aliases_max) {
    result.error = ResolveError::malformed;
    return result;
  }
  const auto& records = entry.addresses[index_of(family)];
  if (!entry.exists || records.empty()) {
    result.error = entry.exists ? ResolveError::no_address : ResolveError::not_found;
    result.lifetime = settings_.failure_ttl;
    if (entry.absence) {
      result.lifetime = std::min(time_of(entry.absence->ttl), time_of(entry.absence->minimum));
    }
    result.lifetime = std::min(result.lifetime, settings_.negative_ttl_max);
    return result;
  }
  result.lifetime = settings_.ttl_max;
  for (const ZoneAlias& each : entry.aliases) {
    result.lifetime = std::min(result.lifetime, time_of(each.ttl));
  }
  for (const ZoneAddress& each : records) {
    result.lifetime = std::min(result.lifetime, time_of(each.ttl));
    if (result.addresses.size() < settings_.addresses_max) {
      result.addresses.push_back(each.address);
    }
  }
  result.lifetime = std::max(result.lifetime, settings_.ttl_min);
  return result;
}

/// Predicts the queries for one full name.
Prediction NameModel::predict_query(const std::string& name, Family family,
                                    std::size_t preferred) const {
  const ZoneName& entry = zone_.find(name);
  const std::string question = name + (family == Family::ipv4 ? " A" : " AAAA");
  Prediction all;
  all.preferred = preferred;
  all.lifetime = settings_.failure_ttl;
  std::vector<std::size_t> order;
  for (std::size_t each = 0; each < settings_.servers; ++each) {
    order.push_back((preferred + each) % settings_.servers);
  }
  for (unsigned pass = 0; pass < settings_.attempts; ++pass) {
    std::vector<std::size_t> again;
    for (const std::size_t server : order) {
      const AnswerMode mode = entry.modes[server];
      all.queries.push_back(std::to_string(server) + " " + question);
      if (uses_tcp(mode)) all.queries.push_back(all.queries.back() + " TCP");
      std::error_code error = error_of(mode);
      const bool timed_out = error == ResolveError::timed_out;
      all.duration += timed_out ? settings_.timeout : entry.delay[index_of(family)];
      Prediction answer;
      if (!error) answer = right_answer(entry, family);
      const bool is_answer = !error && answer.error != ResolveError::malformed;
      if (!error && !is_answer) error = answer.error;
      if (is_answer) {
        answer.queries = std::move(all.queries);
        answer.duration = all.duration;
        answer.preferred = server;
        return answer;
      }
      all.error = predicted_error(all.error, error);
      if (timed_out || error == ResolveError::malformed) again.push_back(server);
    }
    order = std::move(again);
  }
  return all;
}

Prediction NameModel::predict(const AskedName& name, Family family) const {
  Prediction all;
  all.preferred = preferred_;
  Duration least = Duration::max();
  for (const std::string& candidate : candidates(name)) {
    Prediction next = predict_query(candidate, family, all.preferred);
    next.lifetime = least = std::min(next.lifetime, least);
    next.duration += all.duration;
    next.queries.insert(next.queries.begin(), all.queries.begin(), all.queries.end());
    all = std::move(next);
    if (all.error != ResolveError::not_found) break;
  }
  return all;
}

const NameModel::Cached& NameModel::cached(const AskedName& name, Family family) const {
  static const Cached none;
  const auto found = cached_.find({name, family});
  return found == cached_.end() ? none : found->second;
}

void NameModel::insert(const AskedName& name, Family family, const Prediction& result,
                       Instant earliest, Instant latest) {
  cached_[{name, family}] = {result, earliest + result.lifetime, latest + result.lifetime};
}

void NameModel::insert_maybe(const AskedName& name, Family family, const Prediction& result,
                             Instant latest) {
  cached_[{name, family}] = {result, Instant::min(), latest + result.lifetime};
}

}  // namespace weir::simulate
