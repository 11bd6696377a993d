// Probes of the server: the baseline, and a GET after each case.
#include "tools/weir/check/probe.hpp"

#include <tuple>

#include "tools/weir/check/check_connection.hpp"
#include "tools/weir/check/h2_requests.hpp"
#include "tools/weir/check/h2_wire.hpp"

namespace weir::check {
namespace {

Task<Outcome> request_on_new_connection(const CheckTarget& target, std::string request) {
  CheckConnection connection(target);
  StopCondition until;
  until.final_count = 1;
  until.wait_timeout = target.timeout;
  const bool opened = co_await connection.open();
  if (opened) co_await connection.send_and_receive(request, until);
  co_return connection.outcome();
}

/// Sends a request of HTTP/2 on stream 1 of a new connection, and sets the status of its answer.
/// Returns: empty, or a description of the outcome if there is no answer.
Task<std::string> request_by_http2(const CheckTarget& target, std::string request, int& status) {
  H2Wire wire(target);
  const H2Wire::Done done = [](const H2Answers& answers) { return answers.on(1).complete(); };
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(h2_begin() + request, done, target.timeout);
  const H2Answer answer = wire.answers().on(1);
  if (!answer.ended || wire.speaks_other()) co_return wire.describe();
  status = answer.status;
  co_return std::string();
}

/// Fills in the baseline of a server that speaks only HTTP/2.
Task<std::string> find_http2_baseline(CheckTarget& target) {
  std::string trouble = co_await request_by_http2(target, h2_get(target, 1), target.get.status);
  if (!trouble.empty()) co_return trouble;
  target.http2_only = true;
  const std::string posted =
      h2_post(target, 1) + h2_frame(http::FrameType::data, http::FrameFlag::end_stream, 1, "hello");
  std::ignore = co_await request_by_http2(target, posted, target.post.status);
  co_return std::string();
}

}  // namespace

Task<Outcome> get_once(const CheckTarget& target) {
  return request_on_new_connection(target, get_request(target));
}

Task<std::string> find_baseline(CheckTarget& target) {
  const Outcome got = co_await get_once(target);
  const Response* const answer = got.first();
  if (answer == nullptr) {
    const std::string trouble = co_await find_http2_baseline(target);
    co_return trouble.empty() ? std::string() : describe(got);
  }
  target.get.status = answer->status;
  target.get.body = answer->body;
  target.connection = got.tls;
  const std::string request = "POST " + target.post_path +
                              " HTTP/1.1\r\nHost: " + target.authority +
                              "\r\nContent-Length: 5\r\n\r\nhello";
  const Outcome posted = co_await request_on_new_connection(target, request);
  if (const Response* const accepted = posted.first()) {
    target.post.status = accepted->status;
    target.post.body = accepted->body;
  }
  co_return std::string();
}

Task<std::string> probe(const CheckTarget& target) {
  if (target.http2_only) {
    int status = 0;
    std::string trouble = co_await request_by_http2(target, h2_get(target, 1), status);
    if (trouble.empty() && status != target.get.status) trouble = std::to_string(status);
    co_return trouble;
  }
  const Outcome outcome = co_await get_once(target);
  const Response* const answer = outcome.first();
  const bool right = answer != nullptr && answer->status == target.get.status;
  co_return right ? std::string() : describe(outcome);
}

}  // namespace weir::check
