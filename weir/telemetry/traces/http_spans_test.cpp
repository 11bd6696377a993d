// Tests the spans of servers and clients in a World: a front service asks a back service.
#include "weir/telemetry/traces/http_spans.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/telemetry/traces/test/collector_fixture.hpp"

namespace weir::telemetry::http_spans_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view trace = "0af7651916cd43dd8448eb211c80319c";
constexpr std::string_view sampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr std::string_view unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

class HttpSpans : public testing::Test {
 protected:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  HttpSpans() { world_.host("collector").start_service(collector_.main()); }

  /// Starts a service on a host, whose `add` adds routes to a traced router.
  void serve(const std::string& host, std::function<void(http::Router&, Tracer&)> add,
             Sampler sampler = {}) {
    world_.host(host).start_service(
        [host, sampler, enabled = tracing_, add = std::move(add)](loop::Platform& platform) {
          TraceOptions options = collector_options();
          options.service_name = host;
          options.sampler = sampler;
          options.enabled = enabled;
          Tracer tracer(platform, options);
          http::Router routes;
          routes.use(trace_requests(tracer));
          add(routes, tracer);
          Runtime runtime(platform, {});
          return runtime.run_on_each_core([&](Scope& scope) -> Task<Result<>> {
            tracer.start(scope);
            auto serving = http::serve(scope, routes, {.endpoint = Endpoint::any(80)});
            co_return co_await std::move(serving);
          });
        });
  }
  /// Sends one request and runs the World to its end. Returns the status and the body.
  std::string ask(std::string url, Headers headers = {}, http::Method method = http::Method::get) {
    std::string outcome;
    world_.host("asker").start([&](loop::Platform& platform) {
      return Runtime(platform, {}).run_on_each_core([&](Scope&) -> Task<> {
        http::Client client;
        http::ClientRequest request(method, url);
        for (const auto& [name, value] : headers) request.add_header(name, value);
        request.set_timeout(5s);
        auto response = co_await client.send(std::move(request));
        if (!response) {
          outcome = response.error().message();
          co_return;
        }
        outcome = std::to_string(code_of(response->status())) + " ";
        outcome += (co_await response->body()).value_or("cut off");
        std::ignore = co_await sleep(7s);  // the batches are sent
      });
    });
    const sim::WorldReport report = world_.run_until_done(10min);
    EXPECT_TRUE(report.ok()) << report.text();
    return outcome;
  }
  /// Returns the span of this name, which is there once.
  ReceivedSpan span(std::string_view name) const {
    std::vector<ReceivedSpan> found;
    for (const ReceivedSpan& each : collector_.spans) {
      if (each.name == name) found.push_back(each);
    }
    EXPECT_EQ(found.size(), 1U) << name;
    return found.empty() ? ReceivedSpan() : found.front();
  }

  sim::World world_{{.seed = 1, .jitter = sim::no_jitter}};
  Collector collector_;
  bool tracing_ = true;  ///< TraceOptions::enabled of the services that start from now on
};

TEST_F(HttpSpans, DescribeARequestByTheConventions) {
  serve("front", [](http::Router& routes, Tracer&) {
    routes.get("/users/{id}", [](const http::Request& request, int id) {
      Span* const span = span_of(request);
      if (span == nullptr) return http::text("none");
      span->set_attribute("user.id", id);
      span->add_event("found");
      return http::text("user");
    });
  });
  EXPECT_EQ(ask("http://front/users/7?secret=x", {{"User-Agent", "test/1"}}), "200 user");
  const ReceivedSpan made = span("GET /users/{id}");
  EXPECT_EQ(made.service, "front");
  EXPECT_EQ(made.kind, "2");
  EXPECT_EQ(made.parent_id, "");
  EXPECT_EQ(made.status, "");
  EXPECT_EQ(made.events, Texts{"found"});
  EXPECT_GE(std::stoull(made.end), std::stoull(made.start));
  Texts attributes = made.attributes;
  EXPECT_EQ(attributes[0], "user.id=3:7");
  std::erase_if(attributes,
                [](const std::string& each) { return each.starts_with("client.addr"); });
  EXPECT_EQ(attributes, (Texts{"user.id=3:7", "http.request.method=1:GET", "url.scheme=1:http",
                               "url.path=1:/users/7", "http.route=1:/users/{id}",
                               "network.protocol.version=1:1.1", "server.address=1:front",
                               "user_agent.original=1:test/1", "http.response.status_code=3:200"}));
  EXPECT_EQ(attributes.size() + 1, made.attributes.size()) << "client.address";
}

TEST_F(HttpSpans, FollowTheTraceOfTheirCaller) {
  serve("front", [](http::Router& routes, Tracer&) {
    routes.get("/",
               [] { return http::text(std::string(current_span()->remote ? "remote" : "own")); });
  });
  EXPECT_EQ(ask("http://front/", {{"traceparent", std::string(sampled)}, {"tracestate", "a=1"}}),
            "200 remote");
  const ReceivedSpan made = span("GET /");
  EXPECT_EQ(made.trace_id, trace);
  EXPECT_EQ(made.parent_id, "b7ad6b7169203331");
  EXPECT_EQ(made.trace_state, "a=1");
}

TEST_F(HttpSpans, AreNotRecordedIfTheCallerDoesNotSample) {
  serve("front", [](http::Router& routes, Tracer&) {
    routes.get("/", [](const http::Request& request) {
      const ActiveSpan* const active = current_span();
      EXPECT_EQ(span_of(request), nullptr);
      EXPECT_FALSE(Span("work").recording());
      return http::text(active == nullptr ? std::string("none") : to_hex(active->trace_id));
    });
  });
  EXPECT_EQ(ask("http://front/", {{"traceparent", std::string(unsampled)}}),
            "200 " + std::string(trace));
  EXPECT_TRUE(collector_.spans.empty());
}

TEST_F(HttpSpans, IgnoreAnInvalidOrRepeatedTraceparent) {
  const auto add = [](http::Router& routes, Tracer&) {
    routes.get("/", [] { return http::text(to_hex(current_span()->trace_id)); });
  };
  serve("front", add);
  const std::string body =
      ask("http://front/", {{"traceparent", std::string(sampled)}, {"Traceparent", "x"}});
  EXPECT_EQ(body.size(), 4 + 32U);
  EXPECT_NE(body, "200 " + std::string(trace));
  EXPECT_EQ(span("GET /").parent_id, "");
}

TEST_F(HttpSpans, ConnectServices) {
  serve("back", [](http::Router& routes, Tracer&) {
    routes.get("/stock/{item}", [](const http::Request& request, std::string_view) {
      return http::text(std::string(request.header("traceparent").value_or("none")) + " " +
                        std::string(request.header("tracestate").value_or("none")));
    });
  });
  serve("front", [](http::Router& routes, Tracer& tracer) {
    routes.get("/buy", [&tracer]() -> Task<http::Response> {
      TraceClient traces(tracer);
      http::ClientOptions options;
      options.observer = &traces;
      http::Client client(std::move(options));
      const auto load = [&]() -> Task<Result<std::string>> {
        auto response = co_await client.get("http://back/stock/tea?secret=1");
        if (!response) co_return fail(response.error());
        co_return co_await response->body();
      };
      auto loading = in_span("load", load());
      auto text = co_await std::move(loading);
      co_return http::text(std::move(text).value_or("failed"));
    });
  });
  const std::string outcome =
      ask("http://front/buy", {{"traceparent", std::string(sampled)}, {"tracestate", "b=2,a=1"}});
  const ReceivedSpan front = span("GET /buy");
  const ReceivedSpan load = span("load");
  const ReceivedSpan call = span("GET");
  const ReceivedSpan back = span("GET /stock/{item}");
  EXPECT_EQ(outcome, "200 00-" + std::string(trace) + "-" + call.span_id + "-01 b=2,a=1");
  EXPECT_EQ(front.parent_id, "b7ad6b7169203331");
  EXPECT_EQ(load.parent_id, front.span_id);
  EXPECT_EQ(load.kind, "1");
  EXPECT_EQ(call.parent_id, load.span_id);
  EXPECT_EQ(call.kind, "3");
  EXPECT_EQ(back.parent_id, call.span_id);
  EXPECT_EQ(back.service, "back");
  EXPECT_EQ(back.trace_state, "b=2,a=1");
  for (const ReceivedSpan& each : {front, load, call, back}) EXPECT_EQ(each.trace_id, trace);
  EXPECT_EQ(call.attributes,
            (Texts{"http.request.method=1:GET", "url.full=1:http://back/stock/tea",
                   "server.address=1:back", "server.port=3:80", "network.protocol.version=1:1.1",
                   "http.response.status_code=3:200"}));
}

TEST_F(HttpSpans, PassATraceOnThatIsNotSampled) {
  serve("back", [](http::Router& routes, Tracer&) {
    routes.get("/", [](const http::Request& request) {
      return http::text(std::string(request.header("traceparent").value_or("none")));
    });
  });
  serve(
      "front",
      [](http::Router& routes, Tracer& tracer) {
        routes.get("/", [&tracer]() -> Task<http::Response> {
          TraceClient traces(tracer);
          http::ClientOptions options;
          options.observer = &traces;
          http::Client client(std::move(options));
          auto response = co_await client.get("http://back/");
          if (!response) co_return http::Response(http::Status::bad_gateway);
          co_return http::text((co_await response->body()).value_or(""));
        });
      },
      Sampler::parent_based(Sampler::always_off()));
  const std::string outcome = ask("http://front/");
  EXPECT_EQ(outcome.size(), 4 + TraceParent::text_size);
  EXPECT_TRUE(outcome.ends_with("-02")) << outcome << ": random, and not sampled";
  EXPECT_TRUE(collector_.spans.empty()) << "the decision is made once for each trace";
}

/// Adds a route that asks the host "back" and returns the answer.
void add_traced_call(http::Router& routes, Tracer& tracer) {
  routes.get("/", [&tracer](const http::Request& request) -> Task<http::Response> {
    TraceClient traces(tracer);
    http::ClientOptions options;
    options.observer = &traces;
    http::Client client(std::move(options));
    http::ClientRequest asked(http::Method::get, "http://back/");
    // As a reverse proxy does.
    for (std::size_t index = 0; index < request.head().header_count(); ++index) {
      const auto [name, value] = request.head().header_at(index);
      if (name.starts_with("trace")) asked.add_header(name, value);
    }
    auto response = co_await client.send(std::move(asked));
    if (!response) co_return http::Response(http::Status::bad_gateway);
    co_return http::text((co_await response->body()).value_or(""));
  });
}

class BrokenTraceParents : public HttpSpans,
                           public testing::WithParamInterface<std::vector<std::string_view>> {};

INSTANTIATE_TEST_SUITE_P(Some, BrokenTraceParents,
                         testing::Values(std::vector<std::string_view>{},
                                         std::vector<std::string_view>{"zz"},
                                         std::vector<std::string_view>{""},
                                         std::vector<std::string_view>{sampled, sampled},
                                         std::vector<std::string_view>{sampled, "zz"},
                                         std::vector<std::string_view>{"zz", sampled}));

void add_echo_of_headers(http::Router& routes, Tracer&) {
  routes.get("/", [](const http::Request& request) {
    std::string text(request.header("traceparent").value_or("none"));
    return http::text(text.append(" ").append(request.header("tracestate").value_or("none")));
  });
}

TEST_F(HttpSpans, BeginTracesOfTheirOwnAtAPublicEdge) {
  serve("back", add_echo_of_headers);
  serve("front", add_traced_call, Sampler::public_edge(Sampler::always_off()));
  const std::string outcome =
      ask("http://front/", {{"traceparent", std::string(sampled)}, {"tracestate", "a=1"}});
  EXPECT_TRUE(outcome.starts_with("200 00-")) << outcome;
  EXPECT_FALSE(outcome.contains(trace)) << outcome;
  EXPECT_TRUE(outcome.ends_with("-02 none")) << outcome << ": not sampled, no state of the client";
  EXPECT_TRUE(collector_.spans.empty()) << "the client cannot force a span";
}

TEST_F(HttpSpans, PassNoTraceStateOfAClientOnAtAPublicEdge) {
  serve("back", add_echo_of_headers);
  serve("front", add_traced_call, Sampler::public_edge(Sampler::always_off()));
  const std::string outcome = ask("http://front/", {{"tracestate", "evil=1"}});
  EXPECT_TRUE(outcome.starts_with("200 00-")) << outcome;
  EXPECT_TRUE(outcome.ends_with("-02 none")) << outcome;
}

TEST_F(HttpSpans, PassNothingOfAClientOnAtAPublicEdgeWithoutTracing) {
  serve("back", add_echo_of_headers);
  tracing_ = false;
  serve("front", add_traced_call, Sampler::public_edge(Sampler::always_on()));
  EXPECT_EQ(ask("http://front/", {{"traceparent", std::string(sampled)}, {"tracestate", "a=1"}}),
            "200 none none");
}

TEST_F(HttpSpans, LeaveTheHeadersOfACallerAloneWithoutTracing) {
  serve("back", add_echo_of_headers);
  tracing_ = false;
  serve("front", add_traced_call);
  EXPECT_EQ(ask("http://front/", {{"traceparent", std::string(sampled)}, {"tracestate", "a=1"}}),
            "200 " + std::string(sampled) + " a=1");
}

TEST_F(HttpSpans, PassAValidTraceParentOnWithItsTraceState) {
  serve("back", add_echo_of_headers);
  serve("front", add_traced_call);
  EXPECT_EQ(ask("http://front/", {{"traceparent", std::string(sampled)}, {"tracestate", "a=1"}}),
            "200 " + std::string(sampled) + " a=1");
}

// An upstream gets a valid parent even if the client's is broken, and this trace goes on.
TEST_P(BrokenTraceParents, AreReplacedWhenAProxyPassesThemOn) {
  serve("back", [](http::Router& routes, Tracer&) {
    routes.get("/", [](const http::Request& request) {
      std::string text;
      for (std::size_t index = 0; index < request.head().header_count(); ++index) {
        const auto [name, value] = request.head().header_at(index);
        if (name.starts_with("trace")) text.append(name).append("=").append(value).append(" ");
      }
      return http::text(std::move(text));
    });
  });
  serve("front", add_traced_call);
  Headers headers{{"tracestate", "evil=1"}};
  for (const std::string_view each : GetParam()) headers.emplace_back("traceparent", each);
  const std::string outcome = ask("http://front/", std::move(headers));
  const ReceivedSpan call = span("GET");
  EXPECT_EQ(outcome, "200 traceparent=00-" + call.trace_id + "-" + call.span_id + "-03 ");
  EXPECT_EQ(collector_.spans.size(), 3U);
  for (const ReceivedSpan& each : collector_.spans) EXPECT_EQ(each.trace_id, call.trace_id);
}

TEST_F(HttpSpans, PassNoTraceStateOnWithoutItsTraceParent) {
  serve("back", add_echo_of_headers);
  serve("front", [](http::Router& routes, Tracer& tracer) {
    routes.get("/", [&tracer]() -> Task<http::Response> {
      TraceClient traces(tracer);
      http::ClientOptions options;
      options.observer = &traces;
      http::Client client(std::move(options));
      auto response = co_await client.get("http://back/");
      if (!response) co_return http::Response(http::Status::bad_gateway);
      co_return http::text((co_await response->body()).value_or(""));
    });
  });
  const std::string outcome =
      ask("http://front/", {{"traceparent", "00-zz"}, {"tracestate", "a=1"}});
  EXPECT_TRUE(outcome.ends_with(" none")) << outcome;
}

TEST_F(HttpSpans, PassTheCallerOnThatDoesNotSample) {
  serve("back", [](http::Router& routes, Tracer&) {
    routes.get("/", [](const http::Request& request) {
      return http::text(std::string(request.header("traceparent").value_or("none")));
    });
  });
  serve("front", [](http::Router& routes, Tracer& tracer) {
    routes.get("/", [&tracer]() -> Task<http::Response> {
      TraceClient traces(tracer);
      http::ClientOptions options;
      options.observer = &traces;
      http::Client client(std::move(options));
      auto response = co_await client.get("http://back/");
      if (!response) co_return http::Response(http::Status::bad_gateway);
      co_return http::text((co_await response->body()).value_or(""));
    });
  });
  EXPECT_EQ(ask("http://front/", {{"traceparent", std::string(unsampled)}}),
            "200 " + std::string(unsampled));
  EXPECT_TRUE(collector_.spans.empty());
}

TEST_F(HttpSpans, NameErrors) {
  serve("front", [](http::Router& routes, Tracer&) {
    routes.get("/fails", []() -> http::Response { throw std::runtime_error("x"); });
    routes.get("/refuses", [] { return http::Response(http::Status::not_found); });
  });
  EXPECT_TRUE(ask("http://front/fails").starts_with("500"));
  const ReceivedSpan failed = span("GET /fails");
  EXPECT_EQ(failed.status, "2");
  EXPECT_TRUE(failed.has("http.response.status_code=3:500"));
  EXPECT_TRUE(failed.has("error.type=1:500"));
}

TEST_F(HttpSpans, OfClientErrorsAreNoErrorsOfTheServer) {
  serve("front", [](http::Router& routes, Tracer& tracer) {
    routes.get("/asks", [&tracer]() -> Task<http::Response> {
      TraceClient traces(tracer);
      http::ClientOptions options;
      options.observer = &traces;
      http::Client client(std::move(options));
      auto missing = co_await client.get("http://front/missing");
      auto refused = co_await client.get("http://front:81/");
      co_return http::text(std::string(missing && !refused ? "as expected" : "unexpected"));
    });
  });
  EXPECT_EQ(ask("http://front/asks"), "200 as expected");
  std::vector<ReceivedSpan> calls;
  for (const ReceivedSpan& each : collector_.spans) {
    if (each.kind == "3") calls.push_back(each);
  }
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].status, "2");
  EXPECT_TRUE(calls[0].has("error.type=1:404"));
  EXPECT_EQ(calls[1].status, "2");
  EXPECT_FALSE(calls[1].has("http.response.status_code=3:200"));
  const auto is_server = [](const ReceivedSpan& each) {
    return each.kind == "2" && each.has("url.path=1:/missing");
  };
  const auto missing = std::ranges::find_if(collector_.spans, is_server);
  ASSERT_NE(missing, collector_.spans.end());
  EXPECT_EQ(missing->status, "") << "404 is an error of the client only";
  EXPECT_EQ(missing->name, "GET") << "the router itself has answered";
}

TEST_F(HttpSpans, OfARouteWithoutTracingDoNotStay) {
  world_.host("mixed").start_service([](loop::Platform& platform) {
    Tracer tracer(platform, collector_options());
    http::Router routes;
    auto traced = routes.group("/traced", trace_requests(tracer));
    traced.get("/here",
               [] { return http::text(std::string(current_span() != nullptr ? "span" : "none")); });
    routes.get("/plain",
               [] { return http::text(std::string(current_span() != nullptr ? "span" : "none")); });
    return http::run(routes, platform);
  });
  std::string outcome;
  world_.host("asker").start([&](loop::Platform& platform) {
    return Runtime(platform, {}).run_on_each_core([&](Scope&) -> Task<> {
      http::Client client;
      for (const char* path : {"/traced/here", "/plain", "/traced/here"}) {
        auto response = co_await client.get("http://mixed" + std::string(path));
        if (!response) co_return;
        outcome += (co_await response->body()).value_or("failed") + " ";
      }
    });
  });
  EXPECT_TRUE(world_.run_until_done(10min).ok());
  EXPECT_EQ(outcome, "span none span ");
}

}  // namespace
}  // namespace weir::telemetry::http_spans_test
