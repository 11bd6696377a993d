// The service and the client that exchange datagrams.
#include "tools/simulate/datagram_scenario.hpp"

#include <charconv>
#include <string_view>

#include "weir/loop/loop.hpp"
#include "weir/net/udp.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

constexpr std::size_t questions = 20;
constexpr std::size_t tries_max = 1000;

/// Waits for the response to `number`; earlier ones may arrive again.
Task<Result<>> receive_answer(udp::Socket& socket, std::size_t number, std::string& violation) {
  for (;;) {
    const auto datagram = co_await socket.receive();
    // The server did not listen yet when an earlier datagram arrived.
    if (!datagram && datagram.error().category() == std::system_category()) continue;
    if (!datagram) co_return fail(datagram.error());
    const std::string_view text = datagram->buffer.text();
    std::size_t answer_number = questions;
    std::from_chars(text.data(), text.data() + text.size(), answer_number);
    if (answer_number == number) co_return {};
    if (answer_number > number) violation = "a response to no request: " + std::string(text);
  }
}

}  // namespace

Task<Result<>> echo_datagrams(Scope&, Endpoint endpoint) {
  const udp::Options on_each_core{.reuse_port = true};
  auto socket = co_await udp::bind(endpoint, on_each_core);
  if (!socket) co_return fail(socket.error());
  for (;;) {
    const auto datagram = co_await socket->receive();
    if (!datagram && datagram.error() == Errc::closed) co_return {};
    if (!datagram) co_return fail(datagram.error());
    static_cast<void>(co_await socket->send(datagram->buffer.text(), datagram->peer));
  }
}

Task<> DatagramScenario::run(Scope& scope, Endpoint server) {
  Platform& host = scope.loop().platform();
  auto slept = co_await sleep(std::chrono::milliseconds(500));
  auto socket = co_await udp::connect(server);
  if (!slept || !socket) co_return;
  for (std::size_t tries = 0; answered_ < questions && tries < tries_max; ++tries) {
    const std::string question = std::to_string(answered_);
    static_cast<void>(co_await socket->send(std::string_view(question)));
    const Duration wait_timeout = std::chrono::milliseconds(1 + host.random() % 200);
    const auto answer_number =
        co_await timeout(wait_timeout, receive_answer(*socket, answered_, violation_));
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
