// udp_echo: sends each datagram of at most 16 KiB back to its sender, on every core. One system
// call takes at most 32 datagrams.
#include <weir/net/udp.hpp>
#include <weir/runtime/runtime.hpp>

#include <array>
#include <span>
#include <vector>

using namespace weir;

/// Sends all datagrams. Skips a datagram that cannot be sent, such as to an unreachable peer.
Task<> send_all(udp::Socket& socket, std::span<const udp::Outgoing> datagrams) {
  for (;;) {
    const auto sent = co_await socket.send(datagrams);
    if (sent) co_return;
    datagrams = datagrams.subspan(socket.sent() + 1);
  }
}

Task<Result<>> serve(Scope&, Endpoint endpoint) {
  const udp::Options on_each_core{.reuse_port = true};
  auto socket = co_await udp::bind(endpoint, on_each_core);
  if (!socket) co_return std::unexpected(socket.error());
  std::array<udp::Datagram, 32> arrived;  // the core's buffers; an idle socket holds none
  std::vector<udp::Outgoing> answers;
  for (;;) {
    const auto count = co_await socket->receive(arrived);
    if (!count) co_return std::unexpected(count.error());  // Errc::closed: the core drains
    answers.clear();
    for (const udp::Datagram& each : std::span(arrived).first(*count)) {
      if (each.truncated_bytes == 0) answers.push_back({each.buffer, each.peer});
    }
    co_await send_all(*socket, answers);
  }
}

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  if (options.processes) options.processes->endpoints.clear();  // UDP has no connections
  return Runtime(options).run_on_each_core(serve, options.endpoint);
}
