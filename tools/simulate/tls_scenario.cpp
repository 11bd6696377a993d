// The HTTPS server that changes, and the clients and attackers that connect to it.
#include "tools/simulate/tls_scenario.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/net/dns/connect.hpp"
#include "weir/net/tcp.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view origin = "https://server";
constexpr int changes_max = 60;
constexpr Duration idle_max = 5s;         // of a connection
constexpr Duration ticket_lifetime = 8h;  // since the last full handshake

tls::Identity identity_of(const std::string& name) {
  tls::SelfSigned certificate;
  certificate.names = {name};
  certificate.lifetime = std::chrono::hours(24 * 365 * 200);  // the World begins at any time
  return tls::Identity::self_signed(certificate).value();
}

tls::Trust trust_in(const tls::Identity& identity) {
  return {.system = false, .files = {}, .pem = identity.chain()};
}

std::string payload(std::size_t size) {
  std::string text;
  while (text.size() < size) text += std::to_string(text.size()) + " ";
  text.resize(size);
  return text;
}

/// Answers whether the connection has resumed a session, and `size` bytes.
http::Response bytes_of(http::Request& request, std::size_t size) {
  const TlsInfo* const tls = request.tls();
  if (tls == nullptr) return http::text("plain");
  return http::text((tls->resumed ? "resumed " : "new ") + payload(size));
}

Task<http::Response> echo(http::Request& request) {
  const auto body = co_await request.body();
  if (!body) co_return http::Response(http::to_status(body.error()));
  co_return bytes_of(request, body->size());
}

/// Returns the value of a metric; 0 if there is none.
std::uint64_t metric(const CoreReport& report, std::string_view name) {
  for (const Metric& each : report.metrics) {
    if (each.name == name) return each.value;
  }
  return 0;
}

}  // namespace

TlsScenario::TlsScenario(sim::Random& random, const TlsScenarioOptions& options)
    : random_(&random),
      options_(options),
      identity_(identity_of("server")),
      other_(identity_of("server")) {
  tls::ServerOptions serving;
  serving.identities = {identity_};
  if (options.mutual) {
    serving.client_certificates =
        options.required ? tls::ClientCertificates::required : tls::ClientCertificates::requested;
    serving.client_trust = trust_in(identity_);
  }
  server_ = std::make_shared<tls::Server>(std::move(serving));
  tls::ClientOptions asking{.trust = trust_in(identity_)};
  if (options.mutual) asking.identity = identity_;
  trusted_ = std::make_shared<tls::Client>(std::move(asking));
}

// --- the server ----------------------------------------------------------------------------------

int TlsScenario::serve(loop::Platform& host) {
  http::Router routes;
  routes.get("/{size}", bytes_of);
  routes.post("/", echo);
  const http::ServeOptions serving{.endpoint = Endpoint::any(443), .tls = server_};
  Runtime runtime(host, {.cores = options_.cores, .announce = false});
  const int status = runtime.run_on_each_core([&](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() == 0) scope.spawn(change());
    return http::serve(scope, routes, serving);
  });
  const CoreReport total = runtime.report().total();
  std::uint64_t ended = metric(total, "tls handshakes cancelled");
  for (const Metric& each : total.metrics) {
    const bool counts = each.name.starts_with("tls handshakes finished") ||
                        each.name.starts_with("tls handshakes failed");
    if (counts) ended += each.value;
  }
  const std::uint64_t begun = metric(total, "tls handshakes");
  if (begun != ended) {
    fail_with(std::to_string(begun) + " handshakes begun, " + std::to_string(ended) + " ended");
  }
  return status;
}

/// Loads the certificates again, or sets other ticket keys, for some time.
Task<> TlsScenario::change() {
  const Context context = co_await this_context();
  auto keys = tls::TicketKeys::random();
  for (int count = 0; count < changes_max && !context.loop->draining(); ++count) {
    const auto slept = co_await sleep(random_->between(100ms, 10s));
    if (!slept) co_return;
    if (!options_.sets_keys || random_->bernoulli(0.5)) {
      const auto loaded = co_await server_->load();
      if (loaded) ++changes_;
    } else if (server_->loaded() && keys) {
      server_->set_ticket_keys(*keys);
      ++changes_;
      keys = keys->rotated();
    }
  }
}

// --- the clients ---------------------------------------------------------------------------------

Task<Result<>> TlsScenario::ask(Scope&) {
  const auto slept = co_await sleep(1s);
  if (!slept) co_return slept;
  tls::ClientOptions distrusting{.trust = trust_in(other_)};
  if (options_.mutual) distrusting.identity = identity_;
  tls::ClientOptions distrusted{.trust = trust_in(identity_)};
  distrusted.identity = other_;
  std::vector<Task<>> tasks;
  for (unsigned worker = 0; worker < options_.workers; ++worker) {
    tasks.push_back(send_requests(worker));
  }
  tasks.push_back(send_in_vain(std::make_shared<tls::Client>(std::move(distrusting))));
  if (options_.mutual) {
    tasks.push_back(send_in_vain(std::make_shared<tls::Client>(std::move(distrusted))));
    tasks.push_back(send_in_vain(
        std::make_shared<tls::Client>(tls::ClientOptions{.trust = trust_in(identity_)})));
  }
  tasks.push_back(give_up());
  tasks.push_back(send_anything());
  const auto done = co_await all(std::move(tasks));
  if (!done) co_return fail(done.error());
  co_return {};
}

Duration TlsScenario::draw_pause() {
  const bool is_long = !options_.sets_keys && random_->bernoulli(0.2);
  return random_->between({}, is_long ? Duration(12h) : Duration(8s));
}

Task<> TlsScenario::send_requests(unsigned worker) {
  http::ClientOptions options;
  options.tls = trusted_;
  http::Client client(std::move(options));
  const Context own = co_await this_context();
  Instant proof{};  // of the last full handshake, or earlier
  for (unsigned number = 0; number < options_.requests; ++number) {
    const Duration pause = draw_pause();
    const auto slept = co_await sleep(pause);
    if (!slept) co_return;
    const bool connects = number == 0 || pause > idle_max;
    const Instant now = own.loop->now();
    const bool resumes = number > 0 && connects && now - proof < ticket_lifetime - idle_max &&
                         !options_.sets_keys && !options_.may_fail;
    const std::size_t size = random_->below(random_->bernoulli(0.2) ? 200'000 : 2000);
    const bool posts = random_->below(3) == 0;
    const std::string url = std::string(origin) + "/" + (posts ? "" : std::to_string(size));
    http::ClientRequest request(posts ? http::Method::post : http::Method::get, url);
    if (posts) request.set_body(http::text_type, http::Body(payload(size)));
    auto response = co_await client.send(std::move(request));
    Result<std::string> text = fail(Errc::cancelled);
    if (response) {
      const auto body = co_await response->body();
      text = body ? Result<std::string>(*body) : fail(body.error());
      if (auto good = response->error_for_status(); !good) text = fail(good.error());
    } else {
      text = fail(response.error());
    }
    if (text && (*text == "new " + payload(size) || *text == "resumed " + payload(size))) {
      ++answered_;
      if (text->starts_with('r')) {
        ++resumed_;
      } else if (resumes) {
        fail_with("client " + std::to_string(worker) + " has not resumed its session");
      } else if (connects) {
        proof = now;
      }
    } else if (text) {
      fail_with("client " + std::to_string(worker) + " has another body");
    } else if (!options_.may_fail) {
      fail_with("request " + std::to_string(number) + ": " + text.error().message());
    }
  }
}

/// Sends requests that must not be answered.
Task<> TlsScenario::send_in_vain(std::shared_ptr<tls::Client> client) {
  http::ClientOptions options;
  options.tls = std::move(client);
  http::Client sender(std::move(options));
  for (int number = 0; number < 3; ++number) {
    const auto response = co_await sender.get(std::string(origin) + "/1");
    if (response) fail_with("a response between peers without trust");
    const auto slept = co_await sleep(random_->between({}, 5s));
    if (!slept) co_return;
  }
}

/// Ends handshakes before they are complete.
Task<> TlsScenario::give_up() {
  const Context context = co_await this_context();
  tls::Connector connector(*context.loop, *trusted_);
  for (int number = 0; number < 6; ++number) {
    auto stream = co_await tcp::connect("server", 443);
    if (!stream) continue;
    auto handshake = connector.connect(std::move(*stream), "server");
    static_cast<void>(co_await timeout(random_->between({}, 20ms), std::move(handshake)));
    const auto slept = co_await sleep(random_->between({}, 3s));
    if (!slept) co_return;
  }
}

/// Sends bytes that are no handshake, or only its beginning.
Task<> TlsScenario::send_anything() {
  using namespace std::string_view_literals;
  constexpr std::array<std::string_view, 5> beginnings{
      "GET / HTTP/1.1\r\nHost: server\r\n\r\n"sv, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"sv,
      "\x15\x03\x01\x00\x02\x01\x00"sv, "\x17\x03\x03\xff\xff"sv, ""sv};
  for (int number = 0; number < 6; ++number) {
    auto stream = co_await tcp::connect("server", 443);
    if (!stream) continue;
    std::string bytes(random_->one_of(beginnings));
    for (std::size_t left = random_->below(600); left > 0; --left) {
      bytes += static_cast<char>(random_->below(256));
    }
    static_cast<void>(co_await stream->write(bytes));
    const Duration wait = random_->between({}, 15s);
    static_cast<void>(co_await stream->read({.timeout = wait}));
  }
}

void TlsScenario::fail_with(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

}  // namespace weir::simulate
