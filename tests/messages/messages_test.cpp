// The suite of messages: each case on every carrier and every machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tests/messages/carrier.hpp"
#include "tests/messages/deployment.hpp"
#include "tests/messages/expectations.hpp"
#include "tests/messages/machine.hpp"
#include "tests/messages/message_case.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/sweep_budget.hpp"
#include "weir/task/timeout.hpp"

namespace weir::tests::messages_test {
namespace {

using namespace messages;
using namespace std::chrono_literals;

/// Returns all exchanges of a case.
std::vector<Exchange> exchanges_of(const MessageCase& test) {
  std::vector<Exchange> all{{test.request, test.response, test.handled, test.departure}};
  all.insert(all.end(), test.then.begin(), test.then.end());
  return all;
}

void expect_requests(const HandlerRecord& record, const std::vector<Exchange>& exchanges) {
  std::size_t index = 0;
  for (const Exchange& each : exchanges) {
    if (!each.handled) continue;
    ASSERT_LT(index, record.requests.size()) << "calls of the handler";
    const ReceivedRequest& received = record.requests[index++];
    EXPECT_EQ(received.method, each.request.method);
    expect_request(received, *each.handled);
  }
  EXPECT_EQ(index, record.requests.size()) << "calls of the handler";
}

/// Returns true if a terminal shows the line as one, with all of its characters.
bool is_printable(std::string_view line) {
  for (const auto* part : {"\xc2\x80", "\xc2\x85", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x81\xa6"}) {
    if (line.contains(part)) return false;
  }
  return std::ranges::none_of(
      line, [](char each) { return static_cast<unsigned char>(each) < ' ' || each == '\x7f'; });
}

/// A proxy logs a response that is cut, too.
void expect_log(const std::vector<std::string>& lines, const MessageCase& test,
                const Carrier& carrier) {
  const bool both = !is_direct(carrier) && test.response.end == End::cut;
  EXPECT_EQ(lines.size(), test.logged.size() + (both ? 1 : 0)) << testing::PrintToString(lines);
  EXPECT_TRUE(std::ranges::all_of(lines, is_printable)) << testing::PrintToString(lines);
  for (const std::string& part : test.logged) {
    const auto found =
        std::ranges::count_if(lines, [&](const std::string& line) { return line.contains(part); });
    EXPECT_EQ(found, 1) << "lines with \"" << part << "\" in " << testing::PrintToString(lines);
  }
}

const std::vector<SentRequest> none;

/// Sends a request whose client leaves when a handler has it.
Task<> leave(Deployment& servers, const SentRequest& request, const HandlerRecord& record) {
  const std::size_t before = record.requests.size();
  const auto body = [&](Scope& scope) -> Task<> {
    const auto send = [&]() -> Task<> { std::ignore = co_await servers.exchange(request, none); };
    scope.spawn(send());
    while (record.requests.size() == before) {
      const auto slept = co_await sleep(1ms);
      if (!slept) break;
    }
    scope.cancel();
  };
  std::ignore = co_await with_scope(OnFailure::isolate, body);
  while (record.requests.back().end != End::cut) {
    const auto slept = co_await sleep(1ms);
    if (!slept) break;
  }
}

/// Runs the exchanges one after the other. No case waits for a timeout: on the World, where only
/// waits take time, `took_max` bounds each exchange.
Task<> run_exchanges(Deployment& servers, const std::vector<Exchange>& exchanges,
                     const MessageCase& test, const HandlerRecord& record, Duration took_max) {
  const std::vector<SentRequest>* before = &test.meanwhile;
  for (const Exchange& each : exchanges) {
    SCOPED_TRACE(each.request.method + " " + each.request.target.substr(0, 50));
    const Instant begin = Loop::current()->now();
    if (each.departure == Exchange::Departure::when_the_handler_runs) {
      auto left = co_await timeout(20s, leave(servers, each.request, record));
      EXPECT_TRUE(left) << "no handler was called";
    } else {
      const ReceivedResponse response = co_await servers.exchange(each.request, *before);
      expect_response(response, each.response);
    }
    before = &none;
    EXPECT_LE(Loop::current()->now() - begin, took_max);
  }
  EXPECT_EQ(record.held, test.meanwhile.size());
}

Task<> run_case(Loop& loop, const MessageCase& test, const std::vector<Exchange>& exchanges,
                const Carrier& carrier, Duration took_max, const TakeLines& take_lines) {
  SCOPED_TRACE(name_of(carrier));
  HandlerRecord record;
  const http::Router routes = message_routes(record);
  Deployment servers(loop, carrier, routes, test.options);
  const auto body = [&](Scope& own) -> Task<> {
    const auto opened = co_await servers.open(own);
    EXPECT_TRUE(opened);
    co_await run_exchanges(servers, exchanges, test, record, took_max);
    for (const auto counter : test.counted) {
      EXPECT_EQ((servers.origin().counters().*counter).value(), 1U);
    }
    own.cancel();
  };
  std::ignore = co_await with_scope(OnFailure::isolate, body);
  expect_requests(record, exchanges);
  expect_log(take_lines(), test, carrier);
}

using Parameter = std::tuple<Machine, std::size_t>;

const std::vector<MessageCase>& cases() {
  static const std::vector<MessageCase> all = message_cases();
  return all;
}

/// Returns the carriers of one case. If the process samples, it returns a quarter of them on the
/// kernel's machines, which differ less, and half of them in the World.
std::vector<Carrier> carriers_of(const MessageCase& test, Machine machine) {
  std::vector<Carrier> carriers = all_carriers();
  std::erase_if(carriers,
                [&](const Carrier& each) { return exclusion_of(test, each).has_value(); });
  return SweepBudget::sample(std::move(carriers), machine == Machine::world ? 2 : 4);
}

class Messages : public testing::TestWithParam<Parameter> {};

TEST_P(Messages, Arrive) {
  const auto [machine, index] = GetParam();
  if (const auto reason = lacks(machine)) GTEST_SKIP() << *reason;
  const MessageCase& test = cases().at(index);
  const std::vector<Exchange> exchanges = exchanges_of(test);
  const Duration took_max = machine == Machine::world ? Duration(1s) : Duration::max();
  run_on(machine, [&](Scope& scope, const TakeLines& take_lines) -> Task<> {
    for (const Carrier& carrier : carriers_of(test, machine)) {
      co_await run_case(scope.loop(), test, exchanges, carrier, took_max, take_lines);
    }
  });
}

std::string name_of_parameter(const testing::TestParamInfo<Parameter>& info) {
  return cases().at(std::get<1>(info.param)).name;
}

// One suite for each machine, since ctest runs suites side by side.
auto cases_on(Machine machine) {
  return testing::Combine(testing::Values(machine), testing::Range<std::size_t>(0, cases().size()));
}
INSTANTIATE_TEST_SUITE_P(Uring, Messages, cases_on(Machine::uring), name_of_parameter);
INSTANTIATE_TEST_SUITE_P(Uring61, Messages, cases_on(Machine::uring_6_1), name_of_parameter);
INSTANTIATE_TEST_SUITE_P(Epoll, Messages, cases_on(Machine::epoll), name_of_parameter);
INSTANTIATE_TEST_SUITE_P(Poll, Messages, cases_on(Machine::poll), name_of_parameter);
INSTANTIATE_TEST_SUITE_P(World, Messages, cases_on(Machine::world), name_of_parameter);

}  // namespace
}  // namespace weir::tests::messages_test
