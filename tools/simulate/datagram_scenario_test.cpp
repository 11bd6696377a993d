// Tests that the datagram scenario finds a server that does not answer, or answers wrongly.
#include "tools/simulate/datagram_scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "weir/net/udp.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/sim/world.hpp"

namespace weir::simulate::datagram_scenario_test {
namespace {

/// Returns the answer to a question; nullopt: none.
using Answer = std::function<std::optional<std::string>(const std::string& question)>;

Task<Result<>> serve_answers(Scope&, Endpoint endpoint, const Answer& answer) {
  WEIR_CO_TRY(auto socket, co_await udp::bind(endpoint));
  for (;;) {
    const auto datagram = co_await socket.receive();
    if (!datagram && datagram.error() == Errc::closed) co_return {};
    if (!datagram) co_return fail(datagram.error());
    const auto text = answer(std::string(datagram->buffer.text()));
    if (text) std::ignore = co_await socket.send(std::string_view(*text), datagram->peer);
  }
}

bool has_number(const std::string& question, const std::string& number) {
  return question.starts_with(number + " ");
}

std::string violation_of(const Answer& answer) {
  sim::World world({.seed = 1});
  sim::Host& server = world.host("server");
  server.start_service([&](loop::Platform& host) {
    return Runtime(host, {.announce = false})
        .run_on_each_core(serve_answers, Endpoint::any(53), std::cref(answer));
  });
  DatagramScenario scenario;
  world.host("client").start([&](loop::Platform& host) {
    return Runtime(host, {.announce = false}).run_on_each_core([&](Scope& scope) {
      return scenario.run(scope, server.address(53));
    });
  });
  const sim::WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  return scenario.find_violation();
}

TEST(DatagramScenarioTest, FindsEachWrongServer) {
  EXPECT_EQ(violation_of(answer_to_datagram), "");
  EXPECT_EQ(violation_of([](const std::string&) { return std::nullopt; }), "answered 0 of 20");
  EXPECT_EQ(violation_of([](const std::string& question) {
              return has_number(question, "7") ? "19" : answer_to_datagram(question);
            }),
            "a response to no request: 19");
  EXPECT_EQ(violation_of([](const std::string& question) -> std::optional<std::string> {
              if (has_number(question, "5")) return std::nullopt;
              return answer_to_datagram(question);
            }),
            "answered 5 of 20");
  EXPECT_THAT(violation_of([](const std::string& question) {
                return answer_to_datagram(question) + (has_number(question, "3") ? "x" : "");
              }),
              testing::StartsWith("a wrong response: 3 "));
  EXPECT_THAT(violation_of([](const std::string& question) { return question; }),
              testing::StartsWith("a wrong response: "))
      << "some requests are too long for the service";
  // A lost answer is asked for again.
  int asked = 0;
  EXPECT_EQ(violation_of([&asked](const std::string& question) -> std::optional<std::string> {
              if (++asked % 3 != 0) return std::nullopt;
              return answer_to_datagram(question);
            }),
            "");
  EXPECT_GE(asked, 60);
}

}  // namespace
}  // namespace weir::simulate::datagram_scenario_test
