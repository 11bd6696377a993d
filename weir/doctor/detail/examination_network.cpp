// The checks of names and of stores, which wait for other machines.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "weir/doctor/detail/examination.hpp"
#include "weir/doctor/detail/shell_word.hpp"
#include "weir/net/dns/connect.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/timeout.hpp"

namespace weir::doctor {
namespace {

struct SchemePort {
  std::string_view scheme;
  std::uint16_t port;
};

constexpr std::array scheme_ports = {
    SchemePort{"http", 80},         SchemePort{"https", 443},  SchemePort{"postgres", 5432},
    SchemePort{"postgresql", 5432}, SchemePort{"redis", 6379}, SchemePort{"rediss", 6379},
    SchemePort{"nats", 4222},       SchemePort{"tls", 4222},   SchemePort{"mysql", 3306},
    SchemePort{"amqp", 5672},       SchemePort{"amqps", 5671}, SchemePort{"mongodb", 27017},
    SchemePort{"memcached", 11211}, SchemePort{"etcd", 2379},  SchemePort{"smtp", 25},
    SchemePort{"kafka", 9092},      SchemePort{"tcp", 0},
};

bool is_address(const std::string& host) {
  return Endpoint::parse(host.find(':') == host.npos ? host + ":1" : "[" + host + "]:1")
      .has_value();
}

}  // namespace

Result<Target> parse_target(std::string_view url) {
  Target target;
  std::string_view rest = url;
  std::string prefix;
  if (const auto end = url.find("://"); end != url.npos) {
    const std::string_view scheme = url.substr(0, end);
    const auto known = std::ranges::find(scheme_ports, scheme, &SchemePort::scheme);
    if (known == scheme_ports.end()) return fail(Errc::bad_input);
    target.port = known->port;
    prefix = std::string(scheme) + "://";
    rest.remove_prefix(end + 3);
  } else if (url.starts_with("unix:")) {
    WEIR_TRY(const auto endpoint, Endpoint::parse(url));
    return Target{std::string(url), 0, endpoint.to_string()};
  }
  rest = rest.substr(0, rest.find_first_of("/?#"));
  if (const auto at = rest.rfind('@'); at != rest.npos) rest.remove_prefix(at + 1);
  rest = rest.substr(0, rest.find(','));  // the first of several servers
  std::string_view host = rest;
  std::string_view port;
  const auto bracket = rest.starts_with('[') ? rest.find(']') : rest.npos;
  if (rest.starts_with('[') && bracket == rest.npos) return fail(Errc::bad_input);
  if (bracket != rest.npos) {
    host = rest.substr(1, bracket - 1);
    port = rest.substr(bracket + 1);
    if (!port.empty() && !port.starts_with(':')) return fail(Errc::bad_input);
    port.remove_prefix(port.empty() ? 0 : 1);
  } else if (const auto colon = rest.rfind(':'); colon != rest.npos) {
    host = rest.substr(0, colon);
    port = rest.substr(colon + 1);
  }
  if (!port.empty()) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), target.port);
    if (error != std::errc() || end != port.data() + port.size()) return fail(Errc::bad_input);
  }
  if (host.empty() || target.port == 0) return fail(Errc::bad_input);
  target.host = host;
  target.shown = prefix + (bracket != rest.npos ? "[" + target.host + "]" : target.host) + ":" +
                 std::to_string(target.port);
  return target;
}

Task<> Examination::check_names_and_stores(Scope& scope) {
  std::vector<std::string> names = options_.names;
  for (const std::string& name : options_.names) scope.spawn(check_name(name));
  for (const std::string& store : options_.stores) {
    auto target = parse_target(store);
    if (!target) {
      ++report_.checks;
      add({.check = "store",
           .severity = checks::Severity::limits,
           .found = "a store whose URL cannot be read",
           .wanted = "a URL of a known scheme with a host and a port",
           .consequence = "it is not checked",
           .remedy = {}});
      continue;
    }
    if (target->port != 0 && !is_address(target->host)) names.push_back(target->host);
    scope.spawn(check_store(std::move(*target)));
  }
  if (!names.empty()) scope.spawn(check_dns(std::move(names)));
  co_return;
}

void Examination::add_unresolved(const std::string& name, std::error_code error) {
  add({.check = "name",
       .severity = checks::Severity::limits,
       .found = name + ": " + describe(error),
       .wanted = "an address",
       .consequence = "connections to it fail",
       .remedy = "getent hosts " + shell_word(name) + "; cat /etc/resolv.conf"});
}

Task<> Examination::check_name(std::string name) {
  ++report_.checks;
  const auto found = co_await timeout(options_.timeout, resolver_.resolve(name, 1));
  if (!found) add_unresolved(name, found.error());
}

Task<> Examination::check_store(Target target) {
  ++report_.checks;
  std::error_code error;
  if (target.port == 0) {
    const Endpoint endpoint = Endpoint::parse(target.host).value();
    const auto connected = co_await timeout(options_.timeout, tcp::connect(endpoint));
    if (!connected) error = connected.error();
  } else {
    if (!is_address(target.host)) {
      const auto found = co_await timeout(options_.timeout, resolver_.resolve(target.host, 1));
      if (!found) {
        add_unresolved(target.host, found.error());
        co_return;
      }
    }
    tcp::ConnectOptions how;
    how.resolver = &resolver_;
    auto connecting = tcp::connect(target.host, target.port, how);
    const auto connected = co_await timeout(options_.timeout, std::move(connecting));
    if (!connected) error = connected.error();
  }
  if (!error) co_return;
  add({.check = "store",
       .severity = checks::Severity::limits,
       .found = target.shown + ": " + describe(error),
       .wanted = "a connection",
       .consequence = "what needs this store fails",
       .remedy = error == Errc::timed_out ? "look for a firewall between the two"
                                          : "start the store, or correct its address"});
}

std::string Examination::describe(std::error_code error) const {
  if (error != Errc::timed_out) return error.message();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.timeout);
  return "no answer in " + std::to_string(seconds.count()) + " s";
}

}  // namespace weir::doctor
