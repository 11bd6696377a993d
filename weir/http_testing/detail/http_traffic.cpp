// The clients of HttpTraffic and the checks of the responses.
#include "weir/http_testing/detail/http_traffic.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "weir/net/tcp.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::sim {
namespace {

// Longer than any delay by the server, its limits or a fault.
constexpr Duration response_timeout = std::chrono::minutes(10);
// Range of the start of a connection; the server listens by then.
constexpr Duration begin_min = std::chrono::milliseconds(500);
constexpr Duration begin_max = std::chrono::milliseconds(1500);
constexpr Duration pause_max = std::chrono::milliseconds(100);
// Longer than an unexpected response is in flight.
constexpr Duration linger_time = std::chrono::seconds(1);

std::vector<std::string_view> methods_of(const HttpConnection& connection) {
  std::vector<std::string_view> methods;
  for (const HttpRequest& each : connection.requests) methods.push_back(each.method);
  return methods;
}

std::size_t complete_count(const std::vector<HttpResponse>& answers) {
  return static_cast<std::size_t>(std::ranges::count_if(answers, &HttpResponse::complete));
}

bool matches(const HttpRequest& request, const HttpResponse& answer) {
  return answer.status == request.status && (request.status != 200 || answer.body == request.body);
}

std::string first_line(const HttpRequest& request) {
  return request.text.substr(0, request.text.find('\r'));
}

bool closes_early(const HttpConnection& connection) {
  return connection.close_mode == HttpConnection::CloseMode::early;
}

/// Returns the violation of one response. `last` is true if no other one followed.
std::string violation_of(const HttpRequest& request, const HttpResponse& answer, bool last,
                         HttpTolerance tolerance) {
  if (matches(request, answer)) {
    const std::string announced = answer.header("Connection");
    const bool right = announced == (request.closes_connection ? "close" : "");
    if (right || tolerance != HttpTolerance::none) return {};
    return first_line(request) + ": wrong Connection header: " + announced;
  }
  if (tolerance == HttpTolerance::one_failure && answer.status == 500) return {};
  if (tolerance != HttpTolerance::none && last && answer.status >= 400) return {};
  return first_line(request) + ": answered by " + std::to_string(answer.status) + " " +
         answer.body.substr(0, 80);
}

/// Returns true if a request got an interim response that it did not expect, or several of them.
bool has_stray_interim(const HttpConnection& connection) {
  std::size_t final = 0;
  bool seen = false;
  for (const HttpResponse& each :
       parse_http_responses(connection.received, methods_of(connection))) {
    if (!each.complete || each.status < 100 || each.status >= 200) {
      ++final;
      seen = false;
      continue;
    }
    const bool expected = final < connection.requests.size() &&
                          connection.requests[final].text.contains("Expect: 100-continue");
    if (!expected || std::exchange(seen, true)) return true;
  }
  return false;
}

/// Returns the violation of the end of a connection whose requests are all answered.
std::string violation_of_end(const HttpConnection& connection) {
  const bool closes = connection.requests.back().closes_connection;
  const bool closed = connection.read_error == Errc::end_of_stream;
  switch (connection.close_mode) {
    case HttpConnection::CloseMode::lingers:
      if (closes && !closed) return "not closed after the last response";
      if (closes || connection.read_error == Errc::cancelled) return {};
      return "not kept open after the last response: " + connection.read_error.message();
    case HttpConnection::CloseMode::half_close:
      return closed ? "" : "not closed after the end: " + connection.read_error.message();
    case HttpConnection::CloseMode::after_responses:
    case HttpConnection::CloseMode::early:
      break;
  }
  return {};
}

std::string violation_of(const HttpConnection& connection, HttpTolerance tolerance) {
  if (connection.timed_out) return "neither answered nor closed";
  const std::vector<HttpResponse> answers = connection.answers();
  const bool ends_itself = closes_early(connection) && !connection.read_error;
  const bool may_end = ends_itself || tolerance != HttpTolerance::none;
  const bool may_be_cut = may_end && (ends_itself || tolerance != HttpTolerance::orderly_close);
  for (std::size_t number = 0; number < answers.size(); ++number) {
    const HttpResponse& answer = answers[number];
    const bool last = number + 1 == answers.size();
    if (number == connection.requests.size()) return "more answers than requests";
    if (answer.status == 0 && !answer.body.empty()) return "not HTTP: " + answer.body.substr(0, 80);
    if (!answer.complete)
      return last && may_be_cut && !answer.until_close ? "" : "an incomplete response";
    std::string violation = violation_of(connection.requests[number], answer, last, tolerance);
    if (!violation.empty()) return violation;
  }
  if (has_stray_interim(connection)) return "an interim response that no request expects";
  if (may_end) return {};
  if (answers.size() == connection.requests.size()) return violation_of_end(connection);
  return "answered " + std::to_string(answers.size()) + " of " +
         std::to_string(connection.requests.size()) + " requests, then " +
         connection.read_error.message();
}

}  // namespace

std::vector<HttpResponse> HttpConnection::answers() const {
  std::vector<HttpResponse> answers = parse_http_responses(received, methods_of(*this));
  std::erase_if(answers, [](const HttpResponse& each) {
    return each.complete && each.status >= 100 && each.status < 200;
  });
  return answers;
}

HttpConnection& HttpTraffic::plan_connection(std::uint64_t seed) {
  HttpConnection& connection = connections_.emplace_back();
  Random& random = connection.random = Random(seed);
  const std::size_t count = 1 + random.below(options_.requests_max);
  for (std::size_t id = 0; id < count; ++id) {
    connection.requests.push_back(random_http_request(random, id, id + 1 == count));
    connection.text += connection.requests.back().text;
  }
  if (random.bernoulli(0.2)) {
    connection.close_mode = HttpConnection::CloseMode::half_close;
  } else if (random.bernoulli(0.15)) {
    connection.close_mode = HttpConnection::CloseMode::early;
    connection.close_after_bytes = random.below(400);
  } else if (random.bernoulli(0.8)) {
    connection.close_mode = HttpConnection::CloseMode::lingers;
  }
  return connection;
}

Task<> HttpTraffic::run(Scope& scope) {
  for (std::size_t number = 0; number < options_.connections; ++number) {
    scope.spawn(run_connection(plan_connection(scope.loop().platform().random())));
  }
  co_return;
}

Task<> HttpTraffic::run_connection(HttpConnection& connection) {
  auto slept = co_await sleep(connection.random.between(begin_min, begin_max));
  if (!slept) co_return;
  loop::Platform& host = (co_await this_context()).loop->platform();
  connection.started_at = host.now();
  auto stream = co_await tcp::connect(options_.server);
  if (stream) {
    connection.connected = true;
    connection.local = stream->local_address();
    auto both = co_await timeout(response_timeout, all(send_requests(connection, *stream),
                                                       receive_responses(connection, *stream)));
    connection.timed_out = !both && both.error() == Errc::timed_out;
  } else {
    connection.read_error = stream.error();
  }
  connection.ended_at = host.now();
}

/// Never fails, because the responses to sent requests may still arrive.
Task<Result<>> HttpTraffic::send_requests(HttpConnection& connection, Stream& stream) {
  std::string_view left = connection.text;
  while (!left.empty()) {
    const std::size_t size =
        connection.random.bernoulli(0.3) ? 1 + connection.random.below(left.size()) : left.size();
    const auto written = co_await stream.write(left.substr(0, size));
    if (!written) co_return {};
    left.remove_prefix(size);
    if (!connection.random.bernoulli(0.3)) continue;
    const auto slept = co_await sleep(connection.random.between({}, pause_max));
    if (!slept) co_return {};
  }
  if (connection.close_mode == HttpConnection::CloseMode::half_close)
    static_cast<void>(stream.finish_writing());
  co_return {};
}

/// Fails when the connection is to be closed, which also ends the sending.
Task<Result<>> HttpTraffic::receive_responses(HttpConnection& connection, Stream& stream) {
  const bool leaves = closes_early(connection);
  while (leaves ? connection.received.size() < connection.close_after_bytes
                : complete_count(connection.answers()) < connection.requests.size()) {
    const auto bytes = co_await stream.read();
    if (!bytes) {
      connection.read_error = bytes.error();
      co_return fail(connection.read_error);
    }
    connection.received += bytes->text();
    if (!connection.random.bernoulli(0.1)) continue;
    const auto slept = co_await sleep(connection.random.between({}, pause_max));
    if (!slept) co_return slept;
  }
  if (leaves) co_return fail(Errc::closed);
  if (connection.close_mode == HttpConnection::CloseMode::half_close)
    co_return co_await linger(connection, stream);
  if (connection.close_mode == HttpConnection::CloseMode::lingers) {
    std::ignore = co_await timeout(linger_time, linger(connection, stream));
  }
  co_return {};
}

/// Reads until the connection ends.
Task<Result<>> HttpTraffic::linger(HttpConnection& connection, Stream& stream) {
  for (;;) {
    const auto bytes = co_await stream.read();
    if (!bytes) {
      connection.read_error = bytes.error();
      co_return {};
    }
    connection.received += bytes->text();
  }
}

std::string HttpTraffic::find_violation(
    const std::function<HttpTolerance(const HttpConnection&)>& tolerance_of) const {
  for (std::size_t number = 0; number < connections_.size(); ++number) {
    const HttpConnection& connection = connections_[number];
    std::string violation = violation_of(connection, HttpTolerance::none);
    if (!violation.empty() && tolerance_of)
      violation = violation_of(connection, tolerance_of(connection));
    if (!violation.empty()) return "connection " + std::to_string(number) + ": " + violation;
  }
  return {};
}

std::size_t HttpTraffic::end_of(const Endpoint& local, std::size_t requests) const {
  const auto connection = std::ranges::find_if(connections_, [&](const HttpConnection& each) {
    return each.connected && each.local == local;
  });
  if (connection == connections_.end()) return 0;
  std::size_t end = 0;
  for (std::size_t number = 0; number < std::min(requests, connection->requests.size()); ++number) {
    end += connection->requests[number].text.size();
  }
  return end;
}

std::size_t HttpTraffic::answered() const {
  std::size_t count = 0;
  for (const HttpConnection& connection : connections_)
    count += complete_count(connection.answers());
  return count;
}

}  // namespace weir::sim
