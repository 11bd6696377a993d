// The suite of messages: each case on every carrier and every machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "tests/messages/carrier.hpp"
#include "tests/messages/deployment.hpp"
#include "tests/messages/expectations.hpp"
#include "tests/messages/machine.hpp"
#include "tests/messages/message_case.hpp"

namespace weir::tests::messages_test {
namespace {

using namespace messages;

void expect_requests(const std::vector<ReceivedRequest>& received, const MessageCase& test) {
  ASSERT_EQ(received.size(), test.handled ? 1U : 0U) << "calls of the handler";
  if (!test.handled) return;
  EXPECT_EQ(received.front().method, test.request.method);
  expect_request(received.front(), *test.handled);
}

void expect_log(const std::vector<std::string>& lines, const MessageCase& test) {
  for (const std::string& part : test.logged) {
    const bool found = std::ranges::any_of(
        lines, [&](const std::string& line) { return line.find(part) != std::string::npos; });
    EXPECT_TRUE(found) << "no line with \"" << part << "\" in " << testing::PrintToString(lines);
  }
}

void run_case(const MessageCase& test, const Carrier& carrier, Machine machine) {
  std::vector<ReceivedRequest> received;
  const auto talk = [&](Scope& scope) -> Task<> {
    const http::Router routes = message_routes(received);
    Deployment servers(scope.loop(), carrier, routes, {});
    const auto body = [&](Scope& own) -> Task<> {
      const auto opened = co_await servers.open(own);
      EXPECT_TRUE(opened);
      expect_response(co_await servers.exchange(test.request), test.response);
      for (const auto counter : test.counted) {
        EXPECT_EQ((servers.origin().counters().*counter).value(), 1U);
      }
      own.cancel();
    };
    std::ignore = co_await with_scope(OnFailure::isolate, body);
  };
  const auto lines = run_on(machine, talk);
  expect_requests(received, test);
  expect_log(lines, test);
}

using Parameter = std::tuple<Machine, std::size_t>;

const std::vector<MessageCase>& cases() {
  static const std::vector<MessageCase> all = message_cases();
  return all;
}

class Messages : public testing::TestWithParam<Parameter> {};

TEST_P(Messages, Arrive) {
  const auto [machine, index] = GetParam();
  if (const auto reason = lacks(machine)) GTEST_SKIP() << *reason;
  const MessageCase& test = cases().at(index);
  for (const Carrier& carrier : all_carriers()) {
    if (exclusion_of(test, carrier)) continue;
    SCOPED_TRACE(name_of(carrier));
    run_case(test, carrier, machine);
  }
}

std::string name_of_parameter(const testing::TestParamInfo<Parameter>& info) {
  return name_of(std::get<0>(info.param)) + "_" + cases().at(std::get<1>(info.param)).name;
}

INSTANTIATE_TEST_SUITE_P(On, Messages,
                         testing::Combine(testing::ValuesIn(all_machines),
                                          testing::Range<std::size_t>(0, cases().size())),
                         name_of_parameter);

}  // namespace
}  // namespace weir::tests::messages_test
