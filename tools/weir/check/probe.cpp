// Probes of the server: the baseline, and a GET after each case.
#include "tools/weir/check/probe.hpp"

#include "tools/weir/check/check_connection.hpp"

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

}  // namespace

Task<Outcome> get_once(const CheckTarget& target) {
  return request_on_new_connection(target, get_request(target));
}

Task<std::string> find_baseline(CheckTarget& target) {
  const Outcome got = co_await get_once(target);
  const Response* const answer = got.first();
  if (answer == nullptr) co_return describe(got);
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
  const Outcome outcome = co_await get_once(target);
  const Response* const answer = outcome.first();
  const bool right = answer != nullptr && answer->status == target.get.status;
  co_return right ? std::string() : describe(outcome);
}

}  // namespace weir::check
