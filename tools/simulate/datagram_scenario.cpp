// The service and the client that exchange datagrams.
#include "tools/simulate/datagram_scenario.hpp"

#include <algorithm>
#include <charconv>

#include "weir/loop/loop.hpp"
#include "weir/net/udp.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

constexpr std::size_t questions = 20;
constexpr std::size_t tries_max = 1000;
constexpr std::size_t bytes_max = 1000;

std::string draw_question(loop::PlatformClock& clock, std::size_t number) {
  std::string question = std::to_string(number) + " ";
  const std::size_t size = clock.random() % (bytes_max + bytes_max / 4);
  while (question.size() < size) question += static_cast<char>('a' + clock.random() % 26);
  return question;
}

/// Returns the received bytes, followed by the number of bytes that were cut off.
std::string answer_with(std::string_view received, std::size_t cut) {
  return std::string(received) + (cut == 0 ? "" : " +" + std::to_string(cut));
}

/// Waits for the last one of the `right` responses; earlier ones may arrive again.
Task<Result<>> receive_answer(udp::Socket& socket, const std::vector<std::string>& right,
                              std::string& violation) {
  for (;;) {
    const auto datagram = co_await socket.receive();
    // The server did not listen yet when an earlier datagram arrived.
    if (!datagram && datagram.error().category() == std::system_category()) continue;
    if (!datagram) co_return fail(datagram.error());
    const std::string_view text = datagram->buffer.text();
    std::size_t answer_number = questions;
    std::from_chars(text.data(), text.data() + text.size(), answer_number);
    if (answer_number >= right.size()) {
      violation = "a response to no request: " + std::string(text);
    } else if (text != right[answer_number]) {
      violation = "a wrong response: " + std::string(text);
    }
    if (answer_number + 1 == right.size()) co_return {};
  }
}

}  // namespace

Task<Result<>> echo_datagrams(Scope&, Endpoint endpoint) {
  const udp::Options on_each_core{.reuse_port = true, .bytes_max = bytes_max};
  WEIR_CO_TRY(auto socket, co_await udp::bind(endpoint, on_each_core));
  for (;;) {
    const auto datagram = co_await socket.receive();
    if (!datagram && datagram.error() == Errc::closed) co_return {};
    if (!datagram) co_return fail(datagram.error());
    const std::string answer = answer_with(datagram->buffer.text(), datagram->truncated_bytes);
    std::ignore = co_await socket.send(std::string_view(answer), datagram->peer);
  }
}

std::string answer_to_datagram(std::string_view question) {
  const std::size_t received = std::min(question.size(), bytes_max);
  return answer_with(question.substr(0, received), question.size() - received);
}

Task<> DatagramScenario::run(Scope& scope, Endpoint server) {
  loop::PlatformClock& clock = scope.loop().platform();
  auto slept = co_await sleep(std::chrono::milliseconds(500));
  auto socket = co_await udp::connect(server);
  if (!slept || !socket) co_return;
  std::string question;
  for (std::size_t tries = 0; answered_ < questions && tries < tries_max; ++tries) {
    if (right_.size() == answered_) {
      question = draw_question(clock, answered_);
      right_.push_back(answer_to_datagram(question));
    }
    std::ignore = co_await socket->send(std::string_view(question));
    const Duration wait_timeout = std::chrono::milliseconds(1 + clock.random() % 200);
    const auto answer_number =
        co_await timeout(wait_timeout, receive_answer(*socket, right_, violation_));
    if (answer_number) ++answered_;
    if (!answer_number && answer_number.error() != Errc::timed_out)
      violation_ = answer_number.error().message();
  }
}

std::string DatagramScenario::find_violation() const {
  if (violation_.empty() && answered_ < questions) {
    return "answered " + std::to_string(answered_) + " of " + std::to_string(questions);
  }
  return violation_;
}

}  // namespace weir::simulate
