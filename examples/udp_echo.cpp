// udp_echo: sends each datagram of up to 16 KiB back to who sent it, on every core, dozens in one
// system call.
#include <weir/runtime/runtime.hpp>
#include <weir/net/udp.hpp>

#include <array>
#include <span>
#include <vector>

using namespace weir;

/// What cannot be sent (its peer is out of reach) is left out; the others go.
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
  std::array<udp::Datagram, 32> arrived;  // their buffers are the core's; while idle, none is held
  std::vector<udp::Outgoing> answers;
  for (;;) {
    const auto count = co_await socket->receive(arrived);
    if (!count) co_return std::unexpected(count.error());  // Errc::closed: the core drains
    answers.clear();
    for (const udp::Datagram& each : std::span(arrived).first(*count)) {
      if (each.cut_off == 0) answers.push_back({each.buffer, each.peer});
    }
    co_await send_all(*socket, answers);
  }
}

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  if (options.processes) options.processes->endpoints.clear();  // nobody connects
  return Runtime(options).run_on_each_core(serve, options.endpoint);
}
