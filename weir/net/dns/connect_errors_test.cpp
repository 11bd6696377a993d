// Tests of the error that connect() returns if no attempt succeeds.

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <vector>

#include "weir/net/dns/connect.hpp"
#include "weir/net/test/failing_platform.hpp"
#include "weir/net/test/resolver_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::connect_errors_test {
namespace {

using dns::at;
using dns::only;

struct Case {
  std::error_code first;
  std::error_code second;
  std::error_code result;
};

std::error_code sys(int code) {
  return system_error(code);
}

/// Returns the errors of two attempts, and the one of them that connect() returns.
std::vector<Case> cases() {
  std::vector<Case> all = {
      {sys(ECONNREFUSED), sys(ETIMEDOUT), sys(ETIMEDOUT)},
      {sys(ETIMEDOUT), sys(ECONNREFUSED), sys(ECONNREFUSED)},
      {sys(ENETUNREACH), sys(EHOSTUNREACH), sys(EHOSTUNREACH)},
      {sys(EHOSTUNREACH), sys(ENETUNREACH), sys(ENETUNREACH)},
      {make_error_code(Errc::limit_reached), sys(ENETUNREACH), Errc::limit_reached}};
  for (const int route : {ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL, EAFNOSUPPORT,
                          EPROTONOSUPPORT, EINVAL}) {
    all.push_back({sys(ECONNREFUSED), sys(route), sys(ECONNREFUSED)});
    all.push_back({sys(route), sys(ECONNREFUSED), sys(ECONNREFUSED)});
  }
  return all;
}

TEST(ConnectErrors, ErrorOfAHostComesBeforeThatOfARoute) {
  FailingPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  dns::FakeDnsServer server;
  server.rules["service.example"] = at("2001:db8::1", "192.0.2.1");
  const auto talk = [&]() -> Task<> {
    dns::Resolver resolver(only(std::vector<Endpoint>(1, server.address())));
    tcp::ConnectOptions options;
    options.resolver = &resolver;
    for (const Case& each : cases()) {
      platform.stream_errors = {each.first, each.second};
      const auto stream = co_await tcp::connect("service.example", 80, options);
      EXPECT_EQ(error_of(stream), each.result)
          << each.first.message() << ", then " << each.second.message();
      EXPECT_TRUE(platform.stream_errors.empty()) << "both addresses are tried";
    }
  };
  weir::run(*loop, dns::with_name_server(server, talk));
}

}  // namespace
}  // namespace weir::connect_errors_test
