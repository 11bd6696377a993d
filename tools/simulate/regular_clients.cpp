// Clients that stay within the limits of a server.
#include "tools/simulate/regular_clients.hpp"

#include <string_view>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"
#include "weir/sim/http/detail/http_answers.hpp"
#include "weir/sim/http/detail/http_request.hpp"
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

/// Sends `request` and returns its final response.
Task<Result<sim::HttpResponse>> send_request(Stream& stream, const sim::HttpRequest& request) {
  if (auto written = co_await stream.write(request.text); !written) co_return fail(written.error());
  std::string received;
  for (;;) {
    const auto bytes = co_await stream.read();
    if (!bytes) co_return fail(bytes.error());
    received += bytes->text();
    const std::vector<std::string_view> methods{request.method};
    std::vector<sim::HttpResponse> answers = sim::parse_http_responses(received, methods);
    sim::HttpResponse& last = answers.back();
    if (last.complete && last.status >= 200) co_return std::move(last);
  }
}

}  // namespace

Task<> RegularClients::run(Scope& scope) {
  for (std::size_t number = 0; number < options_.connections; ++number) {
    scope.spawn(run_client(scope));
  }
  co_return;
}

Task<> RegularClients::run_client(Scope& scope) {
  sim::Random random(scope.loop().platform().random());
  if (auto slept = co_await sleep(random.between(begin_min, begin_max)); !slept) co_return;
  auto stream = co_await tcp::connect(options_.server);
  if (!stream) {
    violation_ = "not connected: " + stream.error().message();
    co_return;
  }
  for (std::size_t id = 0; !stopping_; ++id) {
    const sim::HttpRequest request = sim::random_http_request(random, id, false);
    const auto answer = co_await timeout(wait_timeout, send_request(*stream, request));
    const std::string line = request.text.substr(0, request.text.find('\r'));
    if (!answer) {
      violation_ = line + ": " + answer.error().message();
      co_return;
    }
    ++answered_;
    if (answer->status != request.status ||
        (request.status == 200 && answer->body != request.body)) {
      violation_ = line + ": answered by " + std::to_string(answer->status);
      co_return;
    }
    if (auto slept = co_await sleep(random.between({}, pause_max)); !slept) co_return;
  }
}

}  // namespace weir::simulate
