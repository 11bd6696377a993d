// Clients that request changing pages.
#include "tools/simulate/page_traffic.hpp"

#include <charconv>
#include <string_view>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

constexpr Duration wait_timeout = std::chrono::minutes(10);

Task<Result<sim::HttpResponse>> ask(Stream& stream, unsigned page) {
  const std::string request = "GET " + page_path(page) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  WEIR_CO_TRY(co_await stream.write(request));
  std::string received;
  for (;;) {
    WEIR_CO_TRY(const auto bytes, co_await stream.read());
    received += bytes.text();
    std::vector<sim::HttpResponse> answers = sim::parse_http_responses(received);
    if (answers.size() != 1) co_return fail(Errc::bad_input);
    if (answers[0].complete) co_return std::move(answers[0]);
  }
}

}  // namespace

std::string page_path(unsigned page) {
  return "/page/" + std::to_string(page);
}

std::string page_text(unsigned page, unsigned version) {
  return "page " + std::to_string(page) + " " + std::to_string(version) + "\n";
}

Task<> PageTraffic::run(Scope& scope) {
  for (std::size_t number = 0; number < options_.connections; ++number) {
    scope.spawn(run_connection(scope));
  }
  co_return;
}

Task<> PageTraffic::run_connection(Scope& scope) {
  loop::PlatformClock& clock = scope.loop().platform();
  auto slept = co_await sleep(std::chrono::milliseconds(500 + clock.random() % 500));
  std::size_t left = options_.requests;
  while (slept && left > 0) {
    auto stream = co_await tcp::connect(options_.server);
    if (!stream && stream.error() == Errc::cancelled) co_return;
    if (stream) {
      auto asked = co_await timeout(wait_timeout, send_requests(*stream, clock, left));
      if (!asked && asked.error() == Errc::timed_out) {
        violation_ = "neither answered nor closed";
      } else if (!asked && asked.error() != Errc::cancelled && !options_.may_fail) {
        violation_ = "not answered: " + asked.error().message();
      }
    } else {
      if (!options_.may_fail) violation_ = "not connected: " + stream.error().message();
      --left;
    }
    slept = co_await sleep(std::chrono::milliseconds(clock.random() % 100));
  }
}

Task<Result<>> PageTraffic::send_requests(Stream& stream, loop::PlatformClock& clock,
                                          std::size_t& left) {
  Versions newest{};
  while (left > 0) {
    --left;
    const auto page = static_cast<unsigned>(clock.random() % page_count);
    const ServedPages::State before = state_of(page);
    WEIR_CO_TRY(const auto answer, co_await ask(stream, page));
    check_answer(page, answer, newest);
    check_state(page, before, answer);
    if (answer.header("Connection") == "close") co_return {};
    if (auto slept = co_await sleep(std::chrono::milliseconds(clock.random() % 100)); !slept) {
      co_return slept;
    }
  }
  co_return {};
}

void PageTraffic::check_answer(unsigned page, const sim::HttpResponse& answer, Versions& newest) {
  ++answered_;
  if (answer.status == 404 && options_.may_be_missing) return;
  if (answer.status == 503 && options_.may_be_stopped) return;
  const std::string before = page_text(page, 0);
  const std::string_view beginning = std::string_view(before).substr(0, before.size() - 2);
  unsigned version = 0;
  if (answer.complete && answer.body.starts_with(beginning)) {
    std::from_chars(answer.body.data() + beginning.size(), answer.body.data() + answer.body.size(),
                    version);
  }
  if (answer.status != 200 || answer.body != page_text(page, version)) {
    violation_ = page_path(page) + ": answered by " + std::to_string(answer.status) + " " +
                 answer.body.substr(0, 80);
  } else if (version < newest[page]) {
    violation_ = page_path(page) + ": version " + std::to_string(version) + " after " +
                 std::to_string(newest[page]);
  }
  newest[page] = version;
}

ServedPages::State PageTraffic::state_of(unsigned page) const {
  return options_.served == nullptr ? ServedPages::State() : options_.served->states[page];
}

/// Compares the response with a page that has not changed since `before`.
void PageTraffic::check_state(unsigned page, const ServedPages::State& before,
                              const sim::HttpResponse& answer) {
  if (before.changes % 2 != 0 || before.changes != state_of(page).changes) return;
  const bool right = before.exists
                         ? answer.status == 200 && answer.body == page_text(page, before.version)
                         : answer.status == 404;
  if (right) return;
  violation_ = page_path(page) + ": answered by " + std::to_string(answer.status) + " " +
               answer.body.substr(0, 80) + " although it " +
               (before.exists ? "has version " + std::to_string(before.version) : "was removed");
}

}  // namespace weir::simulate
