#include "weir/http_testing/test_client.hpp"

#include <cstdio>
#include <functional>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <tuple>

#include "weir/http/client/client.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/scope.hpp"

namespace weir::http {
namespace {

using namespace std::chrono_literals;

const RuntimeOptions one_core{.cores = 1, .announce = false};

[[noreturn]] void throw_error(const std::string& why) {
  throw std::runtime_error("TestClient: " + why);
}

/// Returns the options of a client that has no limit of its own: TestClientOptions has the limit.
ClientOptions unlimited() {
  ClientOptions options;
  options.limits.connect_timeout = Duration::max();
  options.limits.head_timeout = Duration::max();
  options.limits.body_timeout = Duration::max();
  options.limits.body_max = std::numeric_limits<std::uint64_t>::max();
  options.limits.redirects_max = 0;
  return options;
}

Task<> exchange(Scope&, ClientRequest& request, std::optional<Result<TestResponse>>& outcome) {
  Client client(unlimited());
  auto response = co_await client.send(std::move(request));
  if (!response) {
    outcome.emplace(fail(response.error()));
    co_return;
  }
  Headers headers;
  for (std::size_t index = 0; index < response->header_count(); ++index) {
    const HeaderField field = response->header_at(index);
    std::ignore = headers.add(field.name, field.value);  // the parser has checked it
  }
  auto body = co_await response->body();
  if (!body) {
    outcome.emplace(fail(body.error()));
    co_return;
  }
  Headers trailers;
  for (const HeaderField field : response->trailers()) {
    std::ignore = trailers.add(field.name, field.value);
  }
  outcome.emplace(
      TestResponse(response->status(), std::move(headers), std::move(*body), std::move(trailers)));
}

}  // namespace

void PrintTo(Status status, std::ostream* out) {
  *out << code_of(status);
}

/// The programs that answer, and the host that asks them.
struct TestClient::Network {
  std::optional<Router> router;
  std::optional<sim::World> own_world;
  sim::World* world = nullptr;
  sim::Host* client = nullptr;
  sim::Host* server = nullptr;  ///< nullptr in a World of the test
};

TestClient::TestClient(const Router& router, TestClientOptions options)
    : options_(options), network_(std::make_unique<Network>()) {
  serve(router);
}

TestClient::TestClient(Router&& router, TestClientOptions options)
    : options_(options), network_(std::make_unique<Network>()) {
  serve(network_->router.emplace(std::move(router)));
}

TestClient::TestClient(sim::World& world, std::string_view url, TestClientOptions options)
    : options_(options), network_(std::make_unique<Network>()) {
  connect(world, url);
}

TestClient::~TestClient() {
  if (network_->world->done()) return;
  const sim::WorldReport report = network_->world->run_until_done(1h);
  if (!report.ok()) std::fprintf(stderr, "TestClient: %s", report.text().c_str());
}

void TestClient::serve(const Router& router) {
  if (!router.check()) throw_error("invalid routes: " + router.error_text());
  const sim::WorldOptions steady{.seed = 1, .jitter = sim::no_jitter};
  sim::World& world = network_->own_world.emplace(steady);
  network_->server = &world.host("server");
  network_->server->start_service([this, &router](loop::Platform& platform) {
    return run(router, platform, {Endpoint::any(80), options_.limits});
  });
  connect(world, "http://server");
}

void TestClient::connect(sim::World& world, std::string_view url) {
  const Result<Url> parsed = Url::parse(url);
  if (!parsed) throw_error("the URL " + std::string(url) + ": " + parsed.error().message());
  url_ = *parsed;
  network_->world = &world;
  network_->client = &world.host("test-client");
  advance(1s);
}

ClientRequest TestClient::request(Method method, std::string_view url) const {
  const Result<Url> resolved = url_->resolve(url);
  if (!resolved) throw_error("the URL " + std::string(url) + ": " + resolved.error().message());
  return {method, *resolved};
}

ClientRequest TestClient::request(std::string_view method, std::string_view url) const {
  ClientRequest made = request(Method::get, url);
  made.set_method(method);
  return made;
}

TestResponse TestClient::send(ClientRequest request) {
  if (request.error()) throw_error("invalid request: " + request.error().message());
  for (const HeaderField field : headers_) {
    if (!request.headers().contains(field.name)) request.add_header(field.name, field.value);
  }
  const std::string name =
      std::string(request.method_text()) + " " + std::string(request.url().target());
  sim::World& world = *network_->world;
  sim::Host& client = *network_->client;
  std::optional<Result<TestResponse>> outcome;
  client.start([&](loop::Platform& platform) {
    return Runtime(platform, one_core)
        .run_on_each_core(exchange, std::ref(request), std::ref(outcome));
  });
  const auto done = [&client] { return client.done(); };
  const Instant end = after(world.now(), options_.response_timeout);
  if (!world.run_until(done, options_.response_timeout)) {
    const bool late = world.now() >= end;
    client.kill();
    std::ignore = world.run_until(done, 1h);
    throw_error(name + ": " +
                (late ? "no response within the response_timeout"
                      : "the handler waits for an event that cannot happen, or repeats itself "
                        "without a wait"));
  }
  if (!outcome) throw_error(name + ": the client failed");
  if (!*outcome) throw_error(name + ": " + outcome->error().message());
  return std::move(**outcome);
}

void TestClient::set_header(std::string_view name, std::string_view value) {
  if (const auto set = headers_.set(name, value); !set)
    throw_error("invalid header: " + std::string(name));
}

void TestClient::advance(Duration length) {
  sim::World& world = *network_->world;
  const Instant end = after(world.now(), length);
  world.schedule(length, [] {});  // so that time passes if nothing else happens
  std::ignore = world.run_until([&] { return world.now() >= end; }, length);
}

const std::vector<std::string>& TestClient::logged() const noexcept {
  static const std::vector<std::string> none;
  return network_->server == nullptr ? none : network_->server->logged();
}

}  // namespace weir::http
