// The server that restarts, and the client that sends requests to its processes.
#include "tools/simulate/http2_restart_scenario.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate {
namespace {

using namespace std::chrono_literals;
using http::ClientError;

constexpr Duration before = 1s;         // the first request
constexpr Duration between_max = 2s;    // restarts
constexpr Duration request_max = 100s;  // longer than all timeouts of a request together

std::string payload(std::size_t size) {
  std::string text;
  while (text.size() < size) text += std::to_string(text.size()) + " ";
  text.resize(size);
  return text;
}

Task<Result<>> write_pieces(http::BodySink& sink, std::size_t size) {
  const std::string all = payload(size);
  for (std::size_t at = 0; at < all.size(); at += 700) {
    const Result<> written = co_await sink.write(std::string_view(all).substr(at, 700));
    if (!written) co_return written;
    const auto slept = co_await sleep(1ms);
    if (!slept) co_return slept;
  }
  co_return {};
}

Task<http::Response> echo(http::Request& request) {
  const auto body = co_await request.body();
  if (!body) co_return http::Response(body.error());
  co_return http::text(std::string(*body));
}

bool is(std::error_code error, std::initializer_list<ClientError> any) {
  for (const ClientError each : any) {
    if (error == each) return true;
  }
  return false;
}

}  // namespace

Http2RestartScenario::Http2RestartScenario(sim::World& world,
                                           const Http2RestartScenarioOptions& options)
    : world_(world), random_(world.random()), options_(options) {}

// --- the server ----------------------------------------------------------------------------------

/// Returns the host of the next process.
sim::Host& Http2RestartScenario::next_host() {
  const sim::HostOptions host{.cores = options_.cores};
  if (first_ == nullptr) return *(first_ = &world_.host("server", host));
  if (options_.restart != Http2Restart::handover) return *first_;
  return world_.process(*first_, "server " + std::to_string(begun_), host);
}

void Http2RestartScenario::start_next() {
  current_ = &next_host();
  ++begun_;
  current_->start_service([this](loop::Platform& host) { return serve(host); });
  plan_restart();
}

void Http2RestartScenario::begin() {
  start_next();
}

void Http2RestartScenario::plan_restart() {
  if (begun_ == options_.processes) return;
  world_.schedule(random_.between(100ms, between_max), [this] {
    if (!done_) restart();
  });
}

void Http2RestartScenario::restart() {
  switch (options_.restart) {
    case Http2Restart::handover:
      return start_next();
    case Http2Restart::drain:
      current_->raise(loop::Signal::terminate);
      return wait_for_drain(*current_);
    case Http2Restart::kill:
      current_->kill();
      if (random_.bernoulli(0.5)) return start_next();
      return world_.schedule(random_.between({}, 500ms), [this] {
        if (!done_) start_next();
      });
  }
}

/// Starts the next process when `ending` has ended.
void Http2RestartScenario::wait_for_drain(sim::Host& ending) {
  world_.schedule(random_.between({}, 300ms), [this, &ending] {
    if (done_) return;
    if (!ending.done()) return wait_for_drain(ending);
    start_next();
  });
}

int Http2RestartScenario::serve(loop::Platform& host) {
  http::Router routes;
  const auto count = [this](std::string_view id) { ++executions_[std::string(id)]; };
  routes.get("/bytes/{id}/{size}", [count](http::Request&, std::string_view id, std::size_t size) {
    count(id);
    return http::text(payload(size));
  });
  routes.get(
      "/late/{id}/{size}",
      [count](http::Request&, std::string_view id, std::size_t size) -> Task<http::Response> {
        count(id);
        const auto slept = co_await sleep(std::chrono::milliseconds(size % 500));
        if (!slept) co_return http::Response(http::Status::service_unavailable);
        co_return http::text(payload(size));
      });
  routes.get("/pieces/{id}/{size}", [count](http::Request&, std::string_view id, std::size_t size) {
    count(id);
    return http::stream(http::text_type, write_pieces, size);
  });
  routes.post("/echo/{id}/", [count](http::Request& request, std::string_view id) {
    count(id);
    return echo(request);
  });
  routes.post("/late/{id}/",
              [count](http::Request& request, std::string_view id) -> Task<http::Response> {
                count(id);
                const auto slept = co_await sleep(300ms);
                if (!slept) co_return http::Response(http::Status::service_unavailable);
                co_return co_await echo(request);
              });
  routes.post("/unread/{id}/", [count](http::Request&, std::string_view id) {
    count(id);
    return http::text("unread");
  });
  RuntimeOptions runtime{.cores = options_.cores, .announce = false};
  if (options_.restart == Http2Restart::handover) {
    runtime.hot_restart = HandoverOptions{"/run/service", "service"};
  }
  const http::ServeOptions serving{.endpoint = Endpoint::any(80),
                                   .plain_http2 = http::PlainHttp2::only};
  return Runtime(host, runtime).run_on_each_core(http::serve, std::cref(routes), serving);
}

// --- the client ----------------------------------------------------------------------------------

Task<Result<>> Http2RestartScenario::ask(Scope&) {
  const auto slept = co_await sleep(before);
  if (!slept) co_return slept;
  http::ClientOptions options{.plain_http2 = true};
  constexpr std::array<std::uint32_t, 4> streams{2, 5, 30, 128};
  constexpr std::array<std::size_t, 3> connections{1, 3, 64};
  options.limits.http2.streams_max = random_.one_of(streams);
  options.limits.connections_per_origin_max = random_.one_of(connections);
  options.limits.queue_timeout = 60s;
  if (random_.bernoulli(0.3)) options.limits.age_max = 2s;
  const Duration idle_max = options.limits.idle_timeout + options.limits.ping_timeout;
  http::Client client(std::move(options));
  std::vector<Task<>> tasks;
  for (unsigned worker = 0; worker < options_.workers; ++worker) {
    tasks.push_back(send_requests(client, worker));
  }
  const auto sent = co_await all(std::move(tasks));
  if (!sent) co_return fail(sent.error());
  const auto idle = co_await sleep(idle_max + 1s);
  if (!idle) co_return idle;
  if (client.connection_count() != 0) fail_with("the client keeps connections", "");
  done_ = true;
  co_return {};
}

Task<> Http2RestartScenario::send_requests(http::Client& client, unsigned worker) {
  for (unsigned number = 0; number < options_.requests; ++number) {
    const auto slept = co_await sleep(random_.between({}, 600ms));
    if (!slept) co_return;
    co_await send(client, std::to_string(worker) + "-" + std::to_string(number));
  }
}

Http2RestartScenario::Sent Http2RestartScenario::draw(std::string_view name) {
  constexpr std::array gets{"/bytes/", "/late/", "/pieces/"};
  constexpr std::array posts{"/echo/", "/late/", "/unread/"};
  Sent sent;
  const std::size_t size = random_.below(random_.bernoulli(0.05) ? 100'000 : 2000);
  sent.posts = random_.bernoulli(0.5);
  sent.drops = random_.bernoulli(0.03);
  sent.target = sent.posts ? random_.one_of(posts) : random_.one_of(gets);
  sent.expected = sent.target == "/unread/" ? "unread" : payload(size);
  if (sent.posts) sent.body = payload(size);
  sent.id = (sent.posts ? "p" : "g") + std::string(name);
  sent.target += sent.id + "/" + (sent.posts ? "" : std::to_string(size));
  return sent;
}

Task<> Http2RestartScenario::send(http::Client& client, std::string name) {
  const Sent sent = draw(name);
  const http::Method method = sent.posts ? http::Method::post : http::Method::get;
  http::ClientRequest request(method, "http://server" + sent.target);
  if (sent.posts) request.set_body(http::text_type, http::Body(std::string(sent.body)));
  if (sent.posts && options_.repeats_posts) request.add_header("Idempotency-Key", sent.id);
  const Context context = co_await this_context();
  const Instant start = context.loop->now();
  auto response = co_await client.send(std::move(request));
  if (!response) {
    judge_error(sent, response.error());
  } else if (response->status() == http::Status::request_timeout && options_.may_time_out) {
    ++failed_;  // the body stalled
  } else if (response->status() != http::Status::ok) {
    fail_with("status " + std::to_string(http::code_of(response->status())), sent.target);
  } else if (!sent.drops) {
    const auto body = co_await response->body();
    if (!body) {
      judge_error(sent, body.error());
    } else if (*body != sent.expected) {
      fail_with("another body", sent.target);
    } else {
      ++answered_;
      if (!executions_.contains(sent.id)) fail_with("an answer without an execution", sent.target);
    }
  }
  if (context.loop->now() - start > request_max) fail_with("takes too long", sent.target);
}

void Http2RestartScenario::judge_error(const Sent& sent, std::error_code error) {
  ++failed_;
  const bool not_executed = is(error, {ClientError::connect_failed, ClientError::queue_timed_out,
                                       ClientError::connect_timed_out, ClientError::not_processed});
  if (sent.posts && not_executed && executions_.contains(sent.id)) {
    fail_with("is executed, but no server has processed it", sent.target);
  }
  const bool may_fail = options_.restart != Http2Restart::handover &&
                        is(error, {ClientError::connect_failed, ClientError::connection_lost,
                                   ClientError::not_processed});
  const bool may_time_out =
      options_.may_time_out &&
      (not_executed || is(error, {ClientError::head_timed_out, ClientError::body_timed_out,
                                  ClientError::connection_lost}));
  if (!may_fail && !may_time_out) fail_with(error.message(), sent.target);
}

void Http2RestartScenario::fail_with(std::string_view what, std::string_view target) {
  if (violation_.empty()) violation_ = std::string(target) + ": " + std::string(what);
}

std::string Http2RestartScenario::find_violation() const {
  if (!violation_.empty()) return violation_;
  for (const auto& [id, count] : executions_) {
    const unsigned most = id.starts_with('p') ? 1 : 2;
    if (count > most) return id + " is executed " + std::to_string(count) + " times";
  }
  return {};
}

}  // namespace weir::simulate
