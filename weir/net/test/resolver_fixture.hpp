// Fixture of the tests of name resolution. It provides each platform and backend, files and a name
// server. Library code does not include it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "weir/net/dns/resolver.hpp"
#include "weir/net/test/files_fixture.hpp"
#include "weir/net/test/name_server_fixture.hpp"
#include "weir/task/combinators.hpp"

namespace weir::dns {

using Behavior = DnsRule::Behavior;
using Addresses = std::vector<Endpoint>;

/// Returns the addresses in `texts`, with port 0.
template <class... Text>
Addresses ips(const Text&... texts) {
  Addresses addresses;
  (addresses.push_back(ip(texts)), ...);
  return addresses;
}

template <class... Text>
DnsRule at(const Text&... texts) {
  DnsRule rule;
  rule.addresses = ips(texts...);
  return rule;
}

class ResolverTest : public FilesTest {
 protected:
  /// Runs `body()`, which returns a Task<>, while `server_` answers.
  template <class Body>
  void serve(Body body) {
    run(with_name_server(server_, std::move(body)));
  }
  ResolverOptions server_options() const { return only({server_.address()}); }
  /// Returns options with which a query for dead.example is never answered and never times out.
  ResolverOptions unanswered_options() {
    server_.rules["dead.example"].behavior = Behavior::never;
    ResolverOptions options = server_options();
    options.timeout = std::chrono::hours(24);
    return options;
  }

  FakeDnsServer server_;
};

}  // namespace weir::dns
