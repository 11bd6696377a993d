#include "tools/simulate/one_shot_clients.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/http_answers.hpp"

namespace weir::simulate {
namespace {

constexpr Duration patience = std::chrono::minutes(10);
// The first process has come up by then.
constexpr Duration begin = std::chrono::milliseconds(300);
constexpr Duration pause_max = std::chrono::milliseconds(80);
constexpr std::size_t requests_max = 4;
constexpr std::size_t milliseconds_max = 150;

/// All that comes until the end; nothing for an end that is no orderly one.
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
  // What the server no longer reads it has answered by a close.
  static_cast<void>(co_await stream.write(asked));
  co_return co_await read_all(stream);
}

}  // namespace

void add_visited_route(http::Router& routes, std::size_t process) {
  routes.get("/who/{id}/{ms}", [process](int id, int milliseconds) -> Task<http::Response> {
    const auto slept = co_await sleep(std::chrono::milliseconds(milliseconds));
    if (!slept) co_return http::Response(http::Status::service_unavailable);
    co_return http::text("who " + std::to_string(process) + " " + std::to_string(id) + "\n");
  });
}

Task<> Visitors::run(Scope& scope) {
  for (std::size_t number = 0; number < options_.count; ++number) {
    scope.spawn(visit_often(scope));
  }
  co_return;
}

Task<> Visitors::visit_often(Scope& scope) {
  Host& host = scope.loop().host();
  WorldDraw draw(host.random());
  auto slept = co_await sleep(begin + draw.between({}, pause_max));
  while (slept && !stopping_) {
    Visit& now = visits_.emplace_back();
    now.begun = host.now();
    co_await visit(now, draw);
    now.ended = host.now();
    slept = co_await sleep(draw.between({}, pause_max));
  }
}

Task<> Visitors::visit(Visit& visit, WorldDraw& draw) {
  const std::size_t requests = 1 + draw.below(requests_max);
  std::string asked;
  for (std::size_t id = 0; id < requests; ++id) {
    const std::size_t milliseconds = draw.happens(0.5) ? 0 : draw.below(milliseconds_max);
    asked += "GET /who/" + std::to_string(id) + "/" + std::to_string(milliseconds) +
             " HTTP/1.1\r\nHost: a\r\n";
    asked += id + 1 == requests ? "Connection: close\r\n\r\n" : "\r\n";
  }
  auto stream = co_await tcp::connect(options_.server);
  if (!stream) {
    visit.fault = "not connected: " + stream.error().message();
    co_return;
  }
  visit.local = stream->local_address();
  const auto received = co_await timeout(patience, talk(*stream, std::move(asked)));
  visit.fault = received ? judge(*received, requests) : received.error().message();
}

std::string Visitors::judge(std::string_view received, std::size_t requests) {
  const std::vector<HttpAnswer> answers = read_http_answers(received);
  if (answers.empty()) return "closed without an answer";
  std::size_t first_process = 0;
  for (std::size_t id = 0; id < answers.size(); ++id) {
    const HttpAnswer& each = answers[id];
    constexpr std::string_view who = "who ";
    std::size_t process = 0;
    if (each.body.starts_with(who)) {
      std::from_chars(each.body.data() + who.size(), each.body.data() + each.body.size(), process);
    }
    if (id == 0) first_process = process;
    const std::string right =
        "who " + std::to_string(first_process) + " " + std::to_string(id) + "\n";
    if (!each.whole || each.status != 200 || each.body != right) {
      return "request " + std::to_string(id) + " answered by " + std::to_string(each.status) + " " +
             each.body.substr(0, 80);
    }
    ++answered_;
    if (process > 0) ++answered_by_newer_;
  }
  const bool said_so = answers.back().field("Connection") == "close";
  if (said_so && answers.size() <= requests) return {};
  return std::to_string(answers.size()) + " answers to " + std::to_string(requests) + " requests";
}

std::string Visitors::find_fault(const std::function<bool(const Visit&)>& is_excused) const {
  const auto wrong = std::ranges::find_if(
      visits_, [&](const Visit& each) { return !each.fault.empty() && !is_excused(each); });
  if (wrong == visits_.end()) return {};
  const auto began =
      std::chrono::duration_cast<std::chrono::milliseconds>(wrong->begun - visits_.front().begun);
  return "a visit that began " + std::to_string(began.count()) +
         " ms after the first: " + wrong->fault;
}

}  // namespace weir::simulate
