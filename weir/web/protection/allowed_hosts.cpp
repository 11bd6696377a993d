#include "weir/web/protection/allowed_hosts.hpp"

#include <algorithm>
#include <stdexcept>

#include "weir/http/syntax/detail/authority.hpp"
#include "weir/net/dns/detail/host_name.hpp"
#include "weir/os/ip_range.hpp"
#include "weir/web/clients/client_address.hpp"

namespace weir::http {
namespace {

/// Returns the IP address that the host of a URL is; std::nullopt for a name.
std::optional<os::IpBytes> address_of(std::string_view host) noexcept {
  if (host.starts_with('[')) return os::parse_ip(host.substr(1, host.size() - 2));
  return is_ipv4_address(host) ? os::parse_ip(host) : std::nullopt;
}

bool is_unspecified(const os::IpBytes& address) noexcept {
  return os::to_address(address, 0).is_any();
}

bool allows_address(HostAddresses allowed, const os::IpBytes& address) noexcept {
  if (allowed == HostAddresses::loopback) return os::is_loopback(address);
  return allowed == HostAddresses::all && !is_unspecified(address);
}

}  // namespace

AllowedHosts::AllowedHosts(AllowedHostsOptions options)
    : addresses_(options.addresses), status_(options.status) {
  if (options.hosts.empty() && addresses_ == HostAddresses::none) {
    throw std::invalid_argument("allowed_hosts: the list is empty");
  }
  for (const std::string& each : options.hosts) {
    std::string_view text = each;
    const bool subdomains = text.starts_with("*.");
    if (subdomains) text.remove_prefix(2);
    const auto authority = parse_authority(text);
    if (!authority || authority->host.contains('*')) {
      throw std::invalid_argument("allowed_hosts: this is no host: \"" + each + "\"");
    }
    std::string name = dns::normal_host(authority->host);
    if (subdomains) name.insert(0, ".");
    hosts_.push_back({std::move(name), authority->port});
  }
}

bool AllowedHosts::allows(std::string_view authority) const {
  const auto parsed = parse_authority(authority);
  if (!parsed) return false;
  if (const auto address = address_of(parsed->host)) {
    const bool is_mapped = parsed->host.starts_with('[') && os::is_ipv4(*address);
    if (is_mapped) return false;
    if (allows_address(addresses_, *address)) return true;
  }
  const std::string host = dns::normal_host(parsed->host);
  return std::ranges::any_of(hosts_, [&](const Host& each) {
    // Clients leave out the default port of the scheme.
    const bool is_default = !parsed->port && (each.port == 80 || each.port == 443);
    if (each.port && each.port != parsed->port && !is_default) return false;
    if (!each.name.starts_with('.')) return host == each.name;
    return host.size() > each.name.size() && host.ends_with(each.name);
  });
}

std::optional<Response> AllowedHosts::before(Request& request) const {
  if (!allows(request.authority())) return Response(status_);
  const auto* const client = request.get<ClientAddress>();
  if (client != nullptr && !client->host.empty() && !allows(client->host)) return Response(status_);
  return std::nullopt;
}

}  // namespace weir::http
