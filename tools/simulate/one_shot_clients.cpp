// Clients that open a new connection for each visit.
#include "tools/simulate/one_shot_clients.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

constexpr Duration wait_timeout = std::chrono::minutes(10);
// The first process serves by then.
constexpr Duration begin = std::chrono::milliseconds(300);
constexpr Duration pause_max = std::chrono::milliseconds(80);
constexpr std::size_t requests_max = 4;
constexpr std::size_t milliseconds_max = 150;

/// Reads everything until the end of the connection. An end that is not orderly is an error.
Task<Result<std::string>> read_all(Stream& stream) {
  std::string received;
  for (;;) {
    const auto bytes = co_await stream.read();
    if (!bytes && bytes.error() == Errc::end_of_stream) co_return std::move(received);
    if (!bytes) co_return fail(bytes.error());
    received += bytes->text();
  }
}

Task<Result<std::string>> talk(Stream& stream, std::string asked) {
  // A write may fail after the server has closed, so only the received bytes count.
  std::ignore = co_await stream.write(asked);
  co_return co_await read_all(stream);
}

}  // namespace

void add_process_id_route(http::Router& routes, std::size_t process) {
  routes.get("/who/{id}/{ms}", [process](int id, int milliseconds) -> Task<http::Response> {
    const auto slept = co_await sleep(std::chrono::milliseconds(milliseconds));
    if (!slept) co_return http::Response(http::Status::service_unavailable);
    co_return http::text("who " + std::to_string(process) + " " + std::to_string(id) + "\n");
  });
}

Task<> OneShotClients::run(Scope& scope) {
  for (std::size_t number = 0; number < options_.count; ++number) {
    scope.spawn(run_client(scope));
  }
  co_return;
}

Task<> OneShotClients::run_client(Scope& scope) {
  loop::Platform& host = scope.loop().platform();
  sim::Random random(host.random());
  auto slept = co_await sleep(begin + random.between({}, pause_max));
  while (slept && !stopping_) {
    OneShotConnection& now = connections_.emplace_back();
    now.begun = host.now();
    co_await run_connection(now, random);
    now.ended = host.now();
    slept = co_await sleep(random.between({}, pause_max));
  }
}

Task<> OneShotClients::run_connection(OneShotConnection& connection, sim::Random& random) {
  const std::size_t requests = 1 + random.below(requests_max);
  std::string asked;
  for (std::size_t id = 0; id < requests; ++id) {
    const std::size_t milliseconds = random.bernoulli(0.5) ? 0 : random.below(milliseconds_max);
    asked += "GET /who/" + std::to_string(id) + "/" + std::to_string(milliseconds) +
             " HTTP/1.1\r\nHost: a\r\n";
    asked += id + 1 == requests ? "Connection: close\r\n\r\n" : "\r\n";
  }
  auto stream = co_await tcp::connect(options_.server);
  if (!stream) {
    connection.violation = "not connected: " + stream.error().message();
    co_return;
  }
  connection.local = stream->local_address();
  const auto received = co_await timeout(wait_timeout, talk(*stream, std::move(asked)));
  connection.violation =
      received ? judge(connection, *received, requests) : received.error().message();
}

std::string OneShotClients::judge(OneShotConnection& connection, std::string_view received,
                                  std::size_t requests) {
  const std::vector<sim::HttpResponse> answers = sim::parse_http_responses(received);
  if (answers.empty()) return "closed without an answer";
  std::size_t first_process = 0;
  for (std::size_t id = 0; id < answers.size(); ++id) {
    const sim::HttpResponse& each = answers[id];
    constexpr std::string_view who = "who ";
    std::size_t process = 0;
    if (each.body.starts_with(who)) {
      std::from_chars(each.body.data() + who.size(), each.body.data() + each.body.size(), process);
    }
    if (id == 0) first_process = process;
    const std::string right =
        "who " + std::to_string(first_process) + " " + std::to_string(id) + "\n";
    if (!each.complete || each.status != 200 || each.body != right) {
      return "request " + std::to_string(id) + " answered by " + std::to_string(each.status) + " " +
             each.body.substr(0, 80);
    }
    ++answered_;
    if (process > 0) ++answered_by_newer_;
  }
  const bool said_so = answers.back().header("Connection") == "close";
  if (said_so && answers.size() == requests) return {};
  if (said_so && answers.size() < requests) connection.closed_by = first_process;
  return std::to_string(answers.size()) + " answers to " + std::to_string(requests) + " requests";
}

std::string OneShotClients::find_violation(
    const std::function<bool(const OneShotConnection&)>& is_tolerated) const {
  const auto wrong = std::ranges::find_if(connections_, [&](const OneShotConnection& each) {
    return !each.violation.empty() && !is_tolerated(each);
  });
  if (wrong == connections_.end()) return {};
  const auto began = std::chrono::duration_cast<std::chrono::milliseconds>(
      wrong->begun - connections_.front().begun);
  return "a connection that began " + std::to_string(began.count()) +
         " ms after the first: " + wrong->violation;
}

}  // namespace weir::simulate
