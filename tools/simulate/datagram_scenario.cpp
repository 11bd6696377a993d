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

/// Waits for the answer to `number`; earlier ones may come again.
Task<Result<>> hear(udp::Socket& socket, std::size_t number, std::string& fault) {
  for (;;) {
    const auto datagram = co_await socket.receive();
    // Nobody was there when an earlier one came.
    if (!datagram && datagram.error().category() == std::system_category()) continue;
    if (!datagram) co_return fail(datagram.error());
    const std::string_view text = datagram->buffer.text();
    std::size_t heard = questions;
    std::from_chars(text.data(), text.data() + text.size(), heard);
    if (heard == number) co_return {};
    if (heard > number) fault = "an answer to what was not asked: " + std::string(text);
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

Task<> DatagramPlay::run(Scope& scope, Endpoint server) {
  Host& host = scope.loop().host();
  auto slept = co_await sleep(std::chrono::milliseconds(500));
  auto socket = co_await udp::connect(server);
  if (!slept || !socket) co_return;
  for (std::size_t tries = 0; answered_ < questions && tries < tries_max; ++tries) {
    const std::string question = std::to_string(answered_);
    static_cast<void>(co_await socket->send(std::string_view(question)));
    const Duration patience = std::chrono::milliseconds(1 + host.random() % 200);
    const auto heard = co_await timeout(patience, hear(*socket, answered_, fault_));
    if (heard) ++answered_;
    if (!heard && heard.error() != Errc::timed_out) fault_ = heard.error().message();
  }
}

std::string DatagramPlay::find_fault() const {
  if (fault_.empty() && answered_ < questions) {
    return "answered " + std::to_string(answered_) + " of " + std::to_string(questions);
  }
  return fault_;
}

}  // namespace weir::simulate
