// Tests that the scenarios of targets and documents find a server that decodes wrongly.
#include "tools/simulate/request_scenarios.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "tools/simulate/decoding_routes.hpp"
#include "tools/simulate/document_text.hpp"
#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate::request_scenarios_test {
namespace {

using Run = Outcome (*)(const sim::WorldOptions& options, const DecodingRun& run);

/// Returns how many of ten runs with fixed seeds find a violation of the clients.
int violations_in_ten(Run run, void (*add_routes)(http::Router&)) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const sim::WorldReport report = run({.seed = seed}, {.add_routes = add_routes}).report;
    if (report.text().contains("clients: ")) ++found;
  }
  return found;
}

TEST(RequestScenariosTest, HoldForTheRoutesOfTheScenarios) {
  EXPECT_EQ(violations_in_ten(run_targets, add_decoding_routes), 0);
  EXPECT_EQ(violations_in_ten(run_documents, add_decoding_routes), 0);
}

TEST(RequestScenariosTest, FindAServerThatChoosesAnotherRoute) {
  const auto fewer = [](http::Router& routes) {
    routes.get("/m/{rest...}", [](const http::Wildcard&) { return http::text("all\n"); });
  };
  EXPECT_EQ(violations_in_ten(run_targets, fewer), 10);
}

TEST(RequestScenariosTest, FindAServerThatAppendsAByteToEachAnswer) {
  const auto longer = [](http::Router& routes) {
    add_decoding_routes(routes);
    routes.use([](http::Request& request, http::Next next) -> Task<http::Response> {
      http::Response response = co_await next(request);
      if (response.status() != http::Status::ok) co_return response;
      std::string text(response.body().text());
      co_return http::text(text + " ");
    });
  };
  EXPECT_EQ(violations_in_ten(run_targets, longer), 10);
  EXPECT_EQ(violations_in_ten(run_documents, longer), 10);
}

TEST(RequestScenariosTest, FindAServerThatChangesOneFieldOfADocument) {
  const auto other = [](http::Router& routes) {
    const auto change = [](int, Document received) {
      received.flags[1] = !received.flags[1];
      return received;
    };
    routes.post("/json/{id}", change);
    routes.post("/later/{id}", change);
  };
  EXPECT_EQ(violations_in_ten(run_documents, other), 10);
}

TEST(DocumentTextTest, AFaultChangesTheTextAndLiesInsideIt) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(seed);
  sim::Random random(seed);
  for (int each = 0; each < 1000; ++each) {
    DocumentText document(random);
    const std::string before = document.text();
    const DocumentText::Fault fault = document.break_text();
    EXPECT_NE(document.text(), before);
    EXPECT_LE(fault.offset, document.text().size());
  }
}

}  // namespace
}  // namespace weir::simulate::request_scenarios_test
