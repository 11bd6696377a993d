#include "tools/weir/check/exchange.hpp"

#include <algorithm>
#include <utility>

namespace weir::check {
namespace {

constexpr Duration drain_timeout = std::chrono::seconds(1);

}  // namespace

StopCondition until_final_responses(const CheckTarget& target, std::size_t count) {
  StopCondition until;
  until.final_count = count;
  until.wait_timeout = target.timeout;
  return until;
}

std::string request(const CheckTarget& target, std::string_view method, std::string_view fields,
                    std::string_view body) {
  const std::string& path = method == "POST" ? target.post_path : target.path;
  std::string text = std::string(method) + " " + path + " HTTP/1.1\r\nHost: " + target.authority;
  return text.append("\r\n").append(fields).append("\r\n").append(body);
}

Task<Exchange> exchange(const CheckTarget& target, std::string_view method, std::string sent,
                        std::size_t count) {
  Exchange made;
  made.sent = std::move(sent);
  CheckConnection connection(target);
  connection.expect_response_to(method);
  const bool opened = co_await connection.open();
  if (opened) co_await connection.send_and_receive(made.sent, until_final_responses(target, count));
  connection.finish_writing();
  const bool ended = co_await connection.wait_for_close(std::min(drain_timeout, target.timeout));
  static_cast<void>(ended);
  made.outcome = connection.outcome();
  co_return made;
}

}  // namespace weir::check
