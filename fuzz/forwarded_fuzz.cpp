// Reads any bytes as Forwarded and X-Forwarded-For headers behind the entries of trusted proxies.
// The bytes on the left, which a client may send, never change the client that the proxies name.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/syntax/detail/authority.hpp"
#include "weir/os/address.hpp"
#include "weir/web/middleware/detail/forwarded.hpp"
#include "weir/web/middleware/trusted_proxies.hpp"

namespace {

using weir::fuzz::ExactCopy;
using weir::fuzz::require;
namespace http = weir::http;
namespace os = weir::os;

http::ClientAddress client_of(const http::TrustedProxies& proxies, std::string_view lines,
                              std::string_view peer) {
  const std::string text = "GET / HTTP/1.1\r\nHost: a\r\n" + std::string(lines) + "\r\n";
  const ExactCopy copy(text);
  http::RequestHead head;
  http::HeadParser parser{http::HeadLimits()};
  if (parser.parse(copy.view(), head).kind != http::ParseResult::Kind::complete) {
    return {os::Address::parse(peer).value()};
  }
  const auto client = proxies.find_client(head, os::Address::parse(peer).value(), false);
  require(client.address.is_inet());
  require(client.host.empty() || http::parse_authority(client.host).has_value());
  return client;
}

void check_parts(std::string_view text) {
  const ExactCopy copy(text);
  if (const auto address = http::parse_node(copy.view())) {
    require(address->is_inet());
    const auto again = http::parse_node(address->to_string());
    require(again && *again == *address);
  }
  if (const auto element = http::parse_forwarded(copy.view())) {
    for (const auto part : {element->client, element->scheme, element->host}) {
      require(text.contains(part));
      require(part.find_first_of("\"\\") == part.npos);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const http::TrustedProxies x_forwarded({.proxies = {"10.0.0.0/8"}});
  static const http::TrustedProxies forwarded(
      {.proxies = {"10.0.0.0/8"}, .headers = http::ProxyHeaders::forwarded});
  check_parts(text);
  const std::string line(text.substr(0, text.find_first_of("\r\n")));
  const std::string proxy = "10.1.1.1:80";
  client_of(x_forwarded, "X-Forwarded-For: " + line + "\r\n", proxy);
  client_of(forwarded, "Forwarded: " + line + "\r\n", proxy);
  client_of(x_forwarded, "X-Forwarded-Proto: " + line + "\r\nX-Forwarded-Host: " + line + "\r\n",
            proxy);

  // The proxy appends the address of its client.
  const auto named = os::Address::parse("192.0.2.1:0").value();
  const auto by_x = client_of(x_forwarded, "X-Forwarded-For: " + line + ", 192.0.2.1\r\n", proxy);
  const auto by_forwarded =
      client_of(forwarded, "Forwarded: " + line + ", for=192.0.2.1;proto=https\r\n", proxy);
  const bool valid = by_x.address != os::Address::parse(proxy).value();
  if (valid) {  // the line is one that a server accepts
    require(by_x.address == named);
    require(by_forwarded.address == named && by_forwarded.is_secure);
  }
  // A client that is no proxy names only itself.
  const std::string stranger = "203.0.113.9:1";
  require(client_of(x_forwarded, "X-Forwarded-For: " + line + "\r\n", stranger).address ==
          os::Address::parse(stranger).value());
  return 0;
}
