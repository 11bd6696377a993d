// Cases about HTTP/2, over plain connections by prior knowledge and over TLS by ALPN.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/h2_cases.hpp"
#include "tools/weir/check/h2_clients.hpp"
#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/probe.hpp"
#include "tools/weir/check/scripts.hpp"
#include "weir/task/sleep.hpp"

namespace weir::check {
namespace {

using namespace std::chrono_literals;

constexpr Duration drip_interval = 500ms;
// The time in which a server works on what it has received, and no probe has a verdict.
constexpr Duration work_time = 1s;

bool stream_is_done(const H2Answers& answers) {
  return answers.on(1).complete() || answers.goaway();
}
bool connection_is_done(const H2Answers& answers) {
  return answers.goaway().has_value();
}
bool flood_is_done(const H2Answers& answers) {
  return answers.pings() != 0 || answers.goaway();
}

const H2Wire::Done greeting_is_done = [](const H2Answers& answers) { return answers.speaks_h2(); };

H2Wire::Done done_of(H2Wanted wanted) {
  switch (wanted) {
    case H2Wanted::served:
    case H2Wanted::stream_error:
    case H2Wanted::cut_off:
      return stream_is_done;
    case H2Wanted::connection_error:
    case H2Wanted::held:
      return connection_is_done;
    case H2Wanted::bounded:
      break;
  }
  return flood_is_done;
}

Verdict evaluate(const CheckTarget& target, const H2Case& test_case, const H2Wire& wire) {
  const std::string expected = describe_wanted(test_case);
  const std::string actual = wire.describe();
  const H2Answers& answers = wire.answers();
  const H2Answer answer = answers.on(1);
  const bool ended = wire.is_closed() || answers.goaway();
  if (auto verdict = wire.verdict_without_h2(expected)) return *std::move(verdict);
  switch (test_case.wanted) {
    case H2Wanted::served:
      if (answer.status != target.get.status || !answer.ended) return failed(expected, actual);
      break;
    case H2Wanted::stream_error:
      if (answer.status >= 400 && answer.status < 500) break;
      if (answer.status != 0) return failed(expected, actual);
      if (answer.reset && *answer.reset != test_case.error) {
        return lenient_verdict(target, expected, actual);
      }
      if (!answer.reset && !ended) return failed(expected, actual);
      break;
    case H2Wanted::connection_error:
      if (!ended) return failed(expected, actual);
      if (answers.goaway() != test_case.error) return lenient_verdict(target, expected, actual);
      break;
    case H2Wanted::bounded:
      if (ended || answers.pings() == 0) break;
      if (test_case.may_serve) return lenient_verdict(target, expected, actual);
      return failed(expected, actual);
    case H2Wanted::cut_off:
    case H2Wanted::held:
      if (!ended && !answer.complete()) return failed(expected, actual);
      break;
  }
  return passed(expected, actual);
}

const H2Case& row_of(const Case& test_case) {
  const std::string_view name = std::string_view(test_case.name).substr(sizeof("http2"));
  return *std::ranges::find(h2_cases(), name, &H2Case::name);
}

Task<Verdict> check_frames(const CheckTarget& target, const Case& test_case) {
  const H2Case& row = row_of(test_case);
  const std::string bytes = h2_begin() + row.frames(target);
  H2Wire wire(target);
  const H2Wire::Done done = done_of(row.wanted);
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(bytes, done, target.timeout);
  co_return with_sent(evaluate(target, row, wire), bytes);
}

/// Sends a piece every half second until the server ends the stream or the connection.
Task<Verdict> check_slow(const CheckTarget& target, const Case& test_case) {
  const H2Case& row = row_of(test_case);
  const std::string bytes = h2_begin() + row.frames(target);
  const Context context = co_await this_context();
  const Instant deadline = after(context.loop->platform().now(), target.slow_timeout);
  H2Wire wire(target);
  const H2Wire::Done done = done_of(row.wanted);
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(bytes, done, drip_interval);
  while (!wire.is_closed() && !wire.speaks_other() && !done(wire.answers()) &&
         context.loop->platform().now() < deadline && !context.cancelled()) {
    co_await wire.exchange(row.piece, done, drip_interval);
  }
  co_return with_sent(evaluate(target, row, wire), bytes);
}

std::string mebibytes(std::uint64_t bytes) {
  constexpr std::uint64_t unit = std::uint64_t{1} << 20U;
  return std::to_string((bytes + unit / 2) / unit) + " MiB";
}

/// Measures the server while it is attacked, and checks that it serves others.
Task<Verdict> check_memory(const CheckTarget& target, const Case& test_case) {
  const H2Case& row = row_of(test_case);
  const std::string expected =
      "the server holds at most " + mebibytes(target.memory_max) + " more, and serves others";
  const std::string bytes = h2_begin() + row.frames(target);
  const auto before = target.memory ? target.memory() : std::nullopt;
  H2Wire wire(target);
  const H2Wire::Done done = done_of(row.wanted);
  const bool opened = co_await wire.open();
  if (opened && row.reads) {
    co_await wire.exchange(bytes, done, work_time);
  } else if (opened) {
    const std::size_t begin = h2_begin().size();
    co_await wire.exchange(std::string_view(bytes).substr(0, begin), greeting_is_done,
                           target.timeout);
    std::ignore = co_await wire.send(std::string_view(bytes).substr(begin), work_time);
    std::ignore = co_await sleep(work_time);
  }
  if (auto verdict = wire.verdict_without_h2(expected)) {
    co_return with_sent(*std::move(verdict), bytes);
  }
  const auto during = target.memory ? target.memory() : std::nullopt;
  const std::string trouble = co_await probe(target);
  if (!trouble.empty()) {
    co_return with_sent(failed(expected, "a GET beside the attack got: " + trouble), bytes);
  }
  if (!before || !during) {
    co_return with_sent(
        not_applicable(expected, "others are served; --server-pid measures the memory"), bytes);
  }
  const std::uint64_t grown = *during - std::min(*before, *during);
  const std::string actual = mebibytes(grown) + " more";
  Verdict verdict =
      grown <= target.memory_max ? passed(expected, actual) : failed(expected, actual);
  co_return with_sent(std::move(verdict), bytes);
}

/// Serves an honest client round by round.
Task<Verdict> check_client(const CheckTarget& target, const Case& test_case) {
  const std::string_view name = std::string_view(test_case.name).substr(sizeof("http2"));
  const H2Client& client = *std::ranges::find(h2_clients(), name, &H2Client::name);
  const std::string expected = "an answer to each request that is not cancelled";
  std::string bytes = h2_begin() + client.begin;
  H2Wire wire(target);
  const bool opened = co_await wire.open();
  for (std::uint32_t round = 0; opened && round < client.rounds; ++round) {
    const H2Round own = client.round(target, round);
    const H2Wire::Done done = [&own](const H2Answers& answers) {
      const auto complete = [&](std::uint32_t stream) { return answers.on(stream).complete(); };
      return answers.goaway() || std::ranges::all_of(own.answered, complete);
    };
    bytes += own.frames;
    co_await wire.exchange(bytes, done, target.timeout);
    if (auto verdict = wire.verdict_without_h2(expected)) co_return *std::move(verdict);
    const int status = own.posts ? target.post.status : target.get.status;
    const auto served = [&](std::uint32_t stream) {
      const H2Answer answer = wire.answers().on(stream);
      return answer.status == status && answer.ended;
    };
    const auto unserved = std::ranges::find_if_not(own.answered, served);
    if (unserved != own.answered.end()) {
      const std::string where =
          " in round " + std::to_string(round) + ", stream " + std::to_string(*unserved);
      co_return with_sent(failed(expected, wire.describe(*unserved) + where), bytes);
    }
    bytes.clear();
  }
  if (auto verdict = wire.verdict_without_h2(expected)) co_return *std::move(verdict);
  co_return passed(expected, std::to_string(client.rounds) + " rounds");
}

}  // namespace

void add_h2_scripts(CaseRegistry& registry) {
  for (const H2Case& each : h2_cases()) {
    const bool slow = each.wanted == H2Wanted::cut_off;
    const bool held = each.wanted == H2Wanted::held;
    const Script script = slow ? check_slow : held ? check_memory : check_frames;
    registry.add("http2", each.name, each.why, script).pace = slow   ? CasePace::slow
                                                              : held ? CasePace::alone
                                                                     : CasePace::usual;
  }
  for (const H2Client& each : h2_clients()) {
    registry.add("http2", each.name, each.why, check_client);
  }
}

}  // namespace weir::check
