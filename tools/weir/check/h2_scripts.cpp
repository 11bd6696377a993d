// Cases about HTTP/2, over plain connections by prior knowledge.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/h2_cases.hpp"
#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/scripts.hpp"

namespace weir::check {
namespace {

bool stream_is_done(const H2Answers& answers) {
  return answers.on(1).complete() || answers.goaway();
}
bool connection_is_done(const H2Answers& answers) {
  return answers.goaway().has_value();
}
bool flood_is_done(const H2Answers& answers) {
  return answers.pings() != 0 || answers.goaway();
}

H2Wire::Done done_of(H2Wanted wanted) {
  switch (wanted) {
    case H2Wanted::served:
    case H2Wanted::stream_error:
      return stream_is_done;
    case H2Wanted::connection_error:
      return connection_is_done;
    case H2Wanted::bounded:
      break;
  }
  return flood_is_done;
}

/// Returns the verdict on an answer that the RFC allows, although another one is better.
Verdict lenient_verdict(const CheckTarget& target, std::string expected, std::string actual) {
  if (target.lenient) return passed(std::move(expected), std::move(actual));
  return failed(std::move(expected), std::move(actual) + " (--lenient accepts it)");
}

Verdict evaluate(const CheckTarget& target, const H2Case& test_case, const H2Wire& wire) {
  const std::string expected = describe_wanted(test_case);
  const std::string actual = wire.describe();
  const H2Answers& answers = wire.answers();
  const H2Answer answer = answers.on(1);
  const bool ended = wire.is_closed() || answers.goaway();
  if (!wire.connected()) return failed(expected, actual);
  if (!answers.speaks_h2()) {
    return not_applicable(expected, actual + ": no HTTP/2 by prior knowledge");
  }
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
      if (!ended && answers.pings() != 0) return failed(expected, actual);
      break;
  }
  return passed(expected, actual);
}

Task<Verdict> check_frames(const CheckTarget& target, const Case& test_case) {
  const std::string_view name = std::string_view(test_case.name).substr(sizeof("http2"));
  const H2Case& row = *std::ranges::find(h2_cases(), name, &H2Case::name);
  const std::string bytes = std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") +
                            h2_frame(http::FrameType::settings, 0, 0, "") + row.frames(target);
  H2Wire wire(target);
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(bytes, done_of(row.wanted), target.timeout);
  Verdict verdict = evaluate(target, row, wire);
  constexpr std::size_t sent_max = 1000;
  verdict.sent = bytes.substr(0, sent_max);
  co_return verdict;
}

}  // namespace

void add_h2_scripts(CaseRegistry& registry) {
  for (const H2Case& each : h2_cases()) {
    registry.add("http2", each.name, each.why, check_frames);
  }
}

}  // namespace weir::check
