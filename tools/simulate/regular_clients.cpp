// Clients that stay within the limits of a server.
#include "tools/simulate/regular_clients.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http_testing/detail/http_request.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

constexpr Duration wait_timeout = std::chrono::seconds(5);
// All clients begin within the first half second.
constexpr Duration begin_min = std::chrono::milliseconds(300);
constexpr Duration begin_max = std::chrono::milliseconds(500);
// Longest pause; the server may close a connection that is idle for longer.
constexpr Duration pause_max = std::chrono::milliseconds(300);

/// Returns true if `received` cannot become a response. `answers` are its responses so far.
bool is_malformed(std::string_view received, const std::vector<sim::HttpResponse>& answers) {
  constexpr std::string_view version = "HTTP/1.1 ";
  if (!version.starts_with(received.substr(0, version.size()))) return true;
  // A head that is not complete has no body.
  return std::ranges::any_of(answers, [](const sim::HttpResponse& each) {
    return each.status == 0 && !each.body.empty();
  });
}

/// Sends `request` and returns its final response. Fails with Errc::bad_input if there are several,
/// or if the answer is not HTTP.
Task<Result<sim::HttpResponse>> send_request(Stream& stream, const CheckedRequest& request) {
  WEIR_CO_TRY(co_await stream.write(request.text));
  std::string received;
  for (;;) {
    WEIR_CO_TRY(const auto bytes, co_await stream.read());
    received += bytes.text();
    const std::vector<std::string_view> methods{request.method};
    std::vector<sim::HttpResponse> answers = sim::parse_http_responses(received, methods);
    if (is_malformed(received, answers)) co_return fail(Errc::bad_input);
    const auto first = std::ranges::find_if(
        answers, [](const sim::HttpResponse& each) { return each.status >= 200; });
    if (first == answers.end() || !first->complete) continue;
    if (first + 1 != answers.end()) co_return fail(Errc::bad_input);
    co_return std::move(*first);
  }
}

/// Waits for the end of a connection that the server closes.
Task<Result<>> expect_end(Stream& stream) {
  const auto more = co_await stream.read();
  if (more) co_return fail(Errc::bad_input);
  if (more.error() == Errc::end_of_stream) co_return {};
  co_return fail(more.error());
}

/// Returns the time as the value of a Date header (RFC 9110 §5.6.7).
std::string date_of(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT",
                                         ::gmtime_r(&seconds, &parts));
  return {text.data(), size};
}

/// Returns true if the date is that of a second between the two times. The server's clock may lag
/// by the length of a turn.
bool is_date_between(const std::string& date, WallTime begun, WallTime ended) {
  for (WallTime each = begun - std::chrono::seconds(1); each <= ended + std::chrono::seconds(1);
       each += std::chrono::seconds(1)) {
    if (date == date_of(each)) return true;
  }
  return false;
}

}  // namespace

CheckedRequest draw_regular_request(sim::Random& random, std::size_t id) {
  sim::HttpRequest request = sim::random_http_request(random, id, false);
  const auto check = [status = request.status,
                      body = request.body](const sim::HttpResponse& response) -> std::string {
    const bool right = response.status == status && (status != 200 || response.body == body);
    return right ? "" : "answered by " + std::to_string(response.status);
  };
  return {.method = std::move(request.method), .text = std::move(request.text), .check = check};
}

Task<> RegularClients::run(Scope& scope) {
  for (std::size_t number = 0; number < options_.connections; ++number) {
    scope.spawn(run_client(scope));
  }
  co_return;
}

Task<> RegularClients::run_client(Scope& scope) {
  loop::PlatformClock& clock = scope.loop().platform();
  sim::Random random(clock.random());
  if (auto slept = co_await sleep(random.between(begin_min, begin_max)); !slept) co_return;
  std::size_t id = 0;
  while (!is_done(id)) {
    auto stream = co_await tcp::connect(options_.server);
    if (!stream) {
      violation_ = "not connected: " + stream.error().message();
      co_return;
    }
    const auto sent = co_await send_requests(*stream, clock, random, id);
    if (!sent) co_return;
  }
}

/// Sends requests until the server announces a close, or until all are done. Fails if the client
/// has found a violation, or is cancelled.
Task<Result<>> RegularClients::send_requests(Stream& stream, loop::PlatformClock& clock,
                                             sim::Random& random, std::size_t& id) {
  while (!is_done(id)) {
    const CheckedRequest request = options_.draw(random, id++);
    const WallTime begun = clock.wall_time();
    const auto answer = co_await timeout(wait_timeout, send_request(stream, request));
    const std::string line = request.text.substr(0, request.text.find('\r'));
    if (!answer) {
      violation_ = line + ": " + answer.error().message();
      co_return fail(answer.error());
    }
    ++answered_;
    std::string wrong = request.check(*answer);
    const std::string date = answer->header("Date");
    if (options_.checks_date && !is_date_between(date, begun, clock.wall_time())) {
      wrong += (wrong.empty() ? "wrong date " : ", wrong date ") + date;
    }
    if (!wrong.empty()) {
      violation_ = line + ": " + wrong;
      co_return fail(Errc::bad_input);
    }
    if (answer->header("Connection") != request.connection) {
      violation_ = line + ": wrong Connection header: " + answer->header("Connection");
      co_return fail(Errc::bad_input);
    }
    const bool closes = request.connection == "close";
    if (closes) {
      const auto ended = co_await timeout(wait_timeout, expect_end(stream));
      if (!ended) violation_ = line + ": not closed: " + ended.error().message();
    }
    if (auto slept = co_await sleep(random.between({}, pause_max)); !slept) co_return slept;
    if (closes) break;
  }
  co_return {};
}

}  // namespace weir::simulate
