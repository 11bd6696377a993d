#include "tools/simulate/regular_clients.hpp"

#include <string_view>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/http_answers.hpp"
#include "weir/testing/http_asked.hpp"

namespace weir::simulate {
namespace {

constexpr Duration patience = std::chrono::seconds(5);
// From here to the end of the first half second.
constexpr Duration begin_min = std::chrono::milliseconds(300);
constexpr Duration begin_max = std::chrono::milliseconds(500);
// A connection that is idle for longer may be closed.
constexpr Duration pause_max = std::chrono::milliseconds(300);

/// The final answer to it.
Task<Result<HttpAnswer>> ask(Stream& stream, const HttpAsked& asked) {
  if (auto written = co_await stream.write(asked.text); !written) co_return fail(written.error());
  std::string received;
  for (;;) {
    const auto bytes = co_await stream.read();
    if (!bytes) co_return fail(bytes.error());
    received += bytes->text();
    const std::vector<std::string_view> methods{asked.method};
    std::vector<HttpAnswer> answers = read_http_answers(received, methods);
    HttpAnswer& last = answers.back();
    if (last.whole && last.status >= 200) co_return std::move(last);
  }
}

}  // namespace

Task<> RegularClients::run(Scope& scope) {
  for (std::size_t number = 0; number < options_.connections; ++number) {
    scope.spawn(ask_often(scope));
  }
  co_return;
}

Task<> RegularClients::ask_often(Scope& scope) {
  WorldDraw draw(scope.loop().host().random());
  if (auto slept = co_await sleep(draw.between(begin_min, begin_max)); !slept) co_return;
  auto stream = co_await tcp::connect(options_.server);
  if (!stream) {
    fault_ = "not connected: " + stream.error().message();
    co_return;
  }
  for (std::size_t id = 0; !stopping_; ++id) {
    const HttpAsked asked = draw_http_request(draw, id, false);
    const auto answer = co_await timeout(patience, ask(*stream, asked));
    const std::string line = asked.text.substr(0, asked.text.find('\r'));
    if (!answer) {
      fault_ = line + ": " + answer.error().message();
      co_return;
    }
    ++answered_;
    if (answer->status != asked.status || (asked.status == 200 && answer->body != asked.body)) {
      fault_ = line + ": answered by " + std::to_string(answer->status);
      co_return;
    }
    if (auto slept = co_await sleep(draw.between({}, pause_max)); !slept) co_return;
  }
}

}  // namespace weir::simulate
