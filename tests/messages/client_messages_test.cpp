// The suite of messages for the client: each case against a server of every protocol, on every
// machine.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/messages/carrier_tls.hpp"
#include "tests/messages/client_case.hpp"
#include "tests/messages/expectations.hpp"
#include "tests/messages/machine.hpp"
#include "tests/messages/scripted_origin.hpp"
#include "weir/http/client/client.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/timeout.hpp"

namespace weir::tests::client_messages_test {
namespace {

using namespace messages;

using namespace std::chrono_literals;

/// Makes the body of a request as its message describes it.
http::Body body_of(const SentMessage& message) {
  std::optional<std::uint64_t> length;
  if (message.length == Length::declared) length = announced_bytes(message);
  http::StreamFunction write = [&message](http::BodySink& sink) -> Task<Result<>> {
    for (const std::string& piece : message.body) WEIR_CO_TRY(co_await sink.write(piece));
    if (message.end == End::open) {
      ManualResetEvent never;
      WEIR_CO_TRY(co_await never.wait());
    }
    co_return {};
  };
  return http::Body(std::move(write), length);
}

http::ClientOptions options_of(const ClientCase& test, const ServerCarrier& carrier) {
  http::ClientOptions options;
  options.plain_http2 = carrier.protocol == Protocol::http_2;
  options.limits.body_timeout = 5s;
  options.limits.response = test.limits;
  options.tls = trusting_client(carrier.protocol);
  return options;
}

Task<ClientResult> ask(http::Client& client, std::string url, const SentRequest& request) {
  ClientResult result;
  http::ClientRequest sent(http::method_of(request.method), url);
  for (const auto& [name, value] : request.message.fields) sent.add_header(name, value);
  if (!request.message.body.empty()) sent.set_body("text/plain", body_of(request.message));
  auto response = co_await client.send(std::move(sent));
  if (!response) {
    result.error = response.error();
    co_return result;
  }
  result.response.status = http::code_of(response->status());
  for (std::size_t index = 0; index < response->header_count(); ++index) {
    const auto field = response->header_at(index);
    result.response.fields.emplace_back(field.name, field.value);
  }
  const auto body = co_await response->body();
  if (!body) {
    result.error = body.error();
    co_return result;
  }
  result.response.body = *body;
  for (const auto& field : response->trailers()) {
    result.response.trailers.emplace_back(field.name, field.value);
  }
  result.response.end = End::complete;
  co_return result;
}

Task<> run_case(const ClientCase& test, const ServerCarrier& carrier) {
  SCOPED_TRACE(name_of(Carrier{carrier.protocol, carrier.layer, Way::direct}));
  ClientResult result;
  std::vector<SentResponse> responses{test.response};
  responses.insert(responses.end(), test.then.begin(), test.then.end());
  ScriptedOrigin origin(carrier.protocol, carrier.layer, std::move(responses));
  const auto body = [&](Scope& scope) -> Task<> {
    const auto opened = co_await origin.open(scope);
    EXPECT_TRUE(opened);
    http::Client client(options_of(test, carrier));
    const std::string scheme = carrier.layer == Layer::tls ? "https://" : "http://";
    const std::string url = scheme + origin.address().to_string() + test.request.target;
    auto asked = co_await timeout(20s, ask(client, url, test.request));
    if (asked) result = std::move(*asked);
    if (!asked) result.error = asked.error();
    scope.cancel();
  };
  std::ignore = co_await with_scope(OnFailure::isolate, body);
  EXPECT_EQ(result.error, test.error) << result.error.message();
  if (!test.error) expect_response(result.response, test.result);
  std::vector<std::string> targets;
  for (const ReceivedRequest& each : origin.received()) {
    targets.push_back(each.target);
    expect_request(each, test.received);
  }
  EXPECT_EQ(targets, test.targets);
}

using Parameter = std::tuple<Machine, std::size_t>;

const std::vector<ClientCase>& cases() {
  static const std::vector<ClientCase> all = client_cases();
  return all;
}

class ClientMessages : public testing::TestWithParam<Parameter> {};

TEST_P(ClientMessages, Arrive) {
  const auto [machine, index] = GetParam();
  if (const auto reason = lacks(machine)) GTEST_SKIP() << *reason;
  const ClientCase& test = cases().at(index);
  run_on(machine, [&](Scope&, const TakeLines&) -> Task<> {
    for (const auto protocol : {Protocol::http_1_0, Protocol::http_1_1, Protocol::http_2}) {
      for (const auto layer : {Layer::plain, Layer::tls}) {
        const ServerCarrier carrier{protocol, layer};
        if (exclusion_of(test, carrier)) continue;
        co_await run_case(test, carrier);
      }
    }
  });
}

std::string name_of_parameter(const testing::TestParamInfo<Parameter>& info) {
  return name_of(std::get<0>(info.param)) + "_" + cases().at(std::get<1>(info.param)).name;
}

INSTANTIATE_TEST_SUITE_P(On, ClientMessages,
                         testing::Combine(testing::ValuesIn(all_machines),
                                          testing::Range<std::size_t>(0, cases().size())),
                         name_of_parameter);

}  // namespace
}  // namespace weir::tests::client_messages_test
