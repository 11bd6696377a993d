#include "weir/web/middleware/trusted_proxies.hpp"

#include <algorithm>
#include <stdexcept>

#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/web/middleware/detail/forwarded.hpp"

namespace weir::http {
namespace {

/// Sets what a trusted proxy says about the request that it got.
void set_scheme(ClientAddress& client, std::string_view scheme) noexcept {
  if (equals_ignoring_case(scheme, "https")) client.is_secure = true;
  if (equals_ignoring_case(scheme, "http")) client.is_secure = false;
}
void set_host(ClientAddress& client, std::string_view host) {
  if (parse_authority(host)) client.host = host;
}

/// Returns the element at this position from the right, or the first one if there are fewer.
std::string_view element_of_hop(const RequestHead& head, std::string_view name, std::size_t hop) {
  LastElements elements(head, name);
  std::string_view found;
  for (std::size_t index = 0; index < hop; ++index) {
    const auto element = elements.next();
    if (!element) break;
    found = *element;
  }
  return found;
}

}  // namespace

TrustedProxies::TrustedProxies(const TrustedProxiesOptions& options)
    : headers_(options.headers), hops_max_(options.hops_max) {
  for (const std::string& each : options.proxies) {
    if (each == "unix") {
      trusts_local_ = true;
      continue;
    }
    const auto range = os::IpRange::parse(each);
    if (!range) {
      throw std::invalid_argument("trusted_proxies: this is no range of addresses: \"" + each +
                                  "\" (write 10.0.0.0/8, ::1 or unix)");
    }
    ranges_.push_back(*range);
  }
}

bool TrustedProxies::trusts(const os::Address& address) const noexcept {
  if (address.family() == os::AddressFamily::local) return trusts_local_;
  const auto bytes = os::ip_bytes(address);
  if (!bytes) return false;
  return std::ranges::any_of(ranges_,
                             [&](const os::IpRange& each) { return each.contains(*bytes); });
}

std::optional<Response> TrustedProxies::before(Request& request) const {
  request.set(find_client(request.head(), request.peer_address(), request.tls() != nullptr));
  return std::nullopt;
}

ClientAddress TrustedProxies::find_client(const RequestHead& head, const os::Address& peer,
                                          bool is_tls) const {
  ClientAddress client{peer, is_tls};
  if (!trusts(peer)) return client;
  headers_ == ProxyHeaders::forwarded ? read_forwarded(head, client)
                                      : read_x_forwarded(head, client);
  return client;
}

void TrustedProxies::read_forwarded(const RequestHead& head, ClientAddress& client) const {
  LastElements elements(head, "Forwarded");
  for (std::size_t hop = 0; hop < hops_max_; ++hop) {
    const auto text = elements.next();
    const auto element = text ? parse_forwarded(*text) : std::nullopt;
    if (!element) return;
    set_scheme(client, element->scheme);
    set_host(client, element->host);
    const auto address = parse_node(element->client);
    if (!address) return;
    client.address = *address;
    if (!trusts(client.address)) return;
  }
}

void TrustedProxies::read_x_forwarded(const RequestHead& head, ClientAddress& client) const {
  LastElements elements(head, "X-Forwarded-For");
  std::size_t hops = 0;
  while (hops < hops_max_) {
    const auto text = elements.next();
    const auto address = text ? parse_node(*text) : std::nullopt;
    if (!address) break;
    client.address = *address;
    ++hops;
    if (!trusts(client.address)) break;
  }
  // A proxy that only sets the scheme still speaks for its client.
  hops = std::max<std::size_t>(hops, 1);
  set_scheme(client, element_of_hop(head, "X-Forwarded-Proto", hops));
  set_host(client, element_of_hop(head, "X-Forwarded-Host", hops));
}

}  // namespace weir::http
