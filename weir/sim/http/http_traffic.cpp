#include "weir/sim/http/http_traffic.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "weir/net/tcp.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/task/combinators.hpp"

namespace weir {
namespace {

// Longer than anything takes that the server, its limits or a fault may do.
constexpr Duration patience = std::chrono::minutes(10);
// The server has come up by then.
constexpr Duration begin_min = std::chrono::milliseconds(500);
constexpr Duration begin_max = std::chrono::milliseconds(1500);
constexpr Duration pause_max = std::chrono::milliseconds(100);
// Longer than what a server says unasked is on its way.
constexpr Duration afterwards = std::chrono::seconds(1);

std::vector<std::string_view> methods_of(const HttpTalk& talk) {
  std::vector<std::string_view> methods;
  for (const HttpAsked& each : talk.asked) methods.push_back(each.method);
  return methods;
}

std::size_t whole(const std::vector<HttpAnswer>& answers) {
  return static_cast<std::size_t>(std::ranges::count_if(answers, &HttpAnswer::whole));
}

bool matches(const HttpAsked& asked, const HttpAnswer& answer) {
  return answer.status == asked.status && (asked.status != 200 || answer.body == asked.body);
}

std::string first_line(const HttpAsked& asked) {
  return asked.text.substr(0, asked.text.find('\r'));
}

bool leaves_early(const HttpTalk& talk) {
  return talk.leaving == HttpTalk::Leaving::early;
}

/// Of one answer; `last`: none came behind it.
std::string fault_of(const HttpAsked& asked, const HttpAnswer& answer, bool last,
                     HttpExcuse excuse) {
  if (matches(asked, answer)) return {};
  if (excuse == HttpExcuse::failed_once && answer.status == 500) return {};
  if (excuse != HttpExcuse::none && last && answer.status >= 400) return {};
  return first_line(asked) + ": answered by " + std::to_string(answer.status) + " " +
         answer.body.substr(0, 80);
}

std::string fault_of(const HttpTalk& talk, HttpExcuse excuse) {
  if (talk.waited_in_vain) return "neither answered nor closed";
  const std::vector<HttpAnswer> answers = talk.answers();
  const bool may_end = excuse != HttpExcuse::none || (leaves_early(talk) && !talk.ended);
  for (std::size_t number = 0; number < answers.size(); ++number) {
    const HttpAnswer& answer = answers[number];
    const bool last = number + 1 == answers.size();
    if (number == talk.asked.size()) return "more answers than requests";
    if (answer.status == 0 && !answer.body.empty()) return "no HTTP: " + answer.body.substr(0, 80);
    if (!answer.whole) return last && may_end && !answer.until_end ? "" : "a cut answer";
    std::string fault = fault_of(talk.asked[number], answer, last, excuse);
    if (!fault.empty()) return fault;
  }
  if (may_end || answers.size() == talk.asked.size()) return {};
  return "answered " + std::to_string(answers.size()) + " of " + std::to_string(talk.asked.size()) +
         " requests, then " + talk.ended.message();
}

}  // namespace

std::vector<HttpAnswer> HttpTalk::answers() const {
  // Who is turned away is told so before anything is read, whatever the method will be.
  const bool turned_away = received.starts_with("HTTP/1.1 503");
  const auto methods = turned_away ? std::vector<std::string_view>() : methods_of(*this);
  std::vector<HttpAnswer> answers = read_http_answers(received, methods);
  std::erase_if(answers, [](const HttpAnswer& each) {
    return each.whole && each.status >= 100 && each.status < 200;
  });
  return answers;
}

HttpTalk& HttpTraffic::plan(std::uint64_t seed) {
  HttpTalk& talk = talks_.emplace_back();
  WorldDraw& draw = talk.draw = WorldDraw(seed);
  const std::size_t count = 1 + draw.below(options_.requests_max);
  for (std::size_t id = 0; id < count; ++id) {
    talk.asked.push_back(draw_http_request(draw, id, id + 1 == count));
    talk.text += talk.asked.back().text;
  }
  if (draw.happens(0.2)) {
    talk.leaving = HttpTalk::Leaving::half_closes;
  } else if (draw.happens(0.15)) {
    talk.leaving = HttpTalk::Leaving::early;
    talk.leaves_after = draw.below(400);
  } else if (draw.happens(0.8)) {
    talk.leaving = HttpTalk::Leaving::listens_on;
  }
  return talk;
}

Task<> HttpTraffic::run(Scope& scope) {
  for (std::size_t number = 0; number < options_.connections; ++number) {
    scope.spawn(converse(plan(scope.loop().host().random())));
  }
  co_return;
}

Task<> HttpTraffic::converse(HttpTalk& talk) {
  auto slept = co_await sleep(talk.draw.between(begin_min, begin_max));
  if (!slept) co_return;
  Host& host = (co_await this_context()).loop->host();
  talk.begun = host.now();
  auto stream = co_await tcp::connect(options_.server);
  if (stream) {
    talk.connected = true;
    talk.local = stream->local_address();
    auto both = co_await timeout(patience, all(ask(talk, *stream), listen(talk, *stream)));
    talk.waited_in_vain = !both && both.error() == Errc::timed_out;
  } else {
    talk.ended = stream.error();
  }
  talk.over = host.now();
}

/// Never fails: the answers to what has arrived may still come.
Task<Result<>> HttpTraffic::ask(HttpTalk& talk, Stream& stream) {
  std::string_view left = talk.text;
  while (!left.empty()) {
    const std::size_t size =
        talk.draw.happens(0.3) ? 1 + talk.draw.below(left.size()) : left.size();
    const auto written = co_await stream.write(left.substr(0, size));
    if (!written) co_return {};
    left.remove_prefix(size);
    if (!talk.draw.happens(0.3)) continue;
    const auto slept = co_await sleep(talk.draw.between({}, pause_max));
    if (!slept) co_return {};
  }
  if (talk.leaving == HttpTalk::Leaving::half_closes) static_cast<void>(stream.finish_writing());
  co_return {};
}

/// Fails when it is time to leave, so that nothing more is asked either.
Task<Result<>> HttpTraffic::listen(HttpTalk& talk, Stream& stream) {
  const bool leaves = leaves_early(talk);
  while (leaves ? talk.received.size() < talk.leaves_after
                : whole(talk.answers()) < talk.asked.size()) {
    const auto bytes = co_await stream.read();
    if (!bytes) {
      talk.ended = bytes.error();
      co_return fail(talk.ended);
    }
    talk.received += bytes->text();
    if (!talk.draw.happens(0.1)) continue;
    const auto slept = co_await sleep(talk.draw.between({}, pause_max));
    if (!slept) co_return slept;
  }
  if (leaves) co_return fail(Errc::closed);
  if (talk.leaving == HttpTalk::Leaving::half_closes) co_return co_await listen_on(talk, stream);
  if (talk.leaving == HttpTalk::Leaving::listens_on) {
    static_cast<void>(co_await timeout(afterwards, listen_on(talk, stream)));
  }
  co_return {};
}

/// Until the connection ends.
Task<Result<>> HttpTraffic::listen_on(HttpTalk& talk, Stream& stream) {
  for (;;) {
    const auto bytes = co_await stream.read();
    if (!bytes) {
      talk.ended = bytes.error();
      co_return {};
    }
    talk.received += bytes->text();
  }
}

std::string HttpTraffic::find_fault(
    const std::function<HttpExcuse(const HttpTalk&)>& excuse_of) const {
  for (std::size_t number = 0; number < talks_.size(); ++number) {
    const HttpTalk& talk = talks_[number];
    std::string fault = fault_of(talk, HttpExcuse::none);
    if (!fault.empty() && excuse_of) fault = fault_of(talk, excuse_of(talk));
    if (!fault.empty()) return "connection " + std::to_string(number) + ": " + fault;
  }
  return {};
}

std::size_t HttpTraffic::end_of(const Endpoint& local, std::size_t requests) const {
  const auto talk = std::ranges::find_if(
      talks_, [&](const HttpTalk& each) { return each.connected && each.local == local; });
  if (talk == talks_.end()) return 0;
  std::size_t end = 0;
  for (std::size_t number = 0; number < std::min(requests, talk->asked.size()); ++number) {
    end += talk->asked[number].text.size();
  }
  return end;
}

std::size_t HttpTraffic::answered() const {
  std::size_t count = 0;
  for (const HttpTalk& talk : talks_) count += whole(talk.answers());
  return count;
}

}  // namespace weir
