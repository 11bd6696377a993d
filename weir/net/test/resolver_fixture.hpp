// What the tests of names run on: every host and backend, with files and a name server.
// Included by tests only.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "weir/net/test/files_fixture.hpp"
#include "weir/net/test/name_server_fixture.hpp"
#include "weir/net/resolver.hpp"
#include "weir/task/combinators.hpp"

namespace weir::names {

using Manner = NameRule::Manner;
using Addresses = std::vector<Endpoint>;

/// The addresses that the texts are, with port 0.
template <class... Text>
Addresses ips(const Text&... texts) {
  Addresses addresses;
  (addresses.push_back(ip(texts)), ...);
  return addresses;
}

template <class... Text>
NameRule at(const Text&... texts) {
  NameRule rule;
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
  ResolverOptions ours() const { return only({server_.address()}); }
  /// A question to this one is never answered, and lasts for ever.
  ResolverOptions to_the_dead() {
    server_.rules["dead.example"].manner = Manner::never;
    ResolverOptions options = ours();
    options.timeout = std::chrono::hours(24);
    return options;
  }

  NameServer server_;
};

}  // namespace weir::names
