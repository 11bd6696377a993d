// echo: sends back the bytes that it receives, on every core. The end of a stream is an error that
// ends the loop.
#include <weir/net/listen/listener.hpp>
#include <weir/net/tcp.hpp>
#include <weir/runtime/runtime.hpp>

using namespace weir;

Task<> echo(tcp::Stream peer) {
  while (auto bytes = co_await peer.read()) {
    if (!co_await peer.write(*bytes)) break;
  }
}

Task<Result<>> serve(Scope& peers, Endpoint endpoint) {
  auto listener = co_await tcp::listen(endpoint);
  if (!listener) co_return std::unexpected(listener.error());
  for (;;) {
    auto peer = co_await listener->accept();
    if (!peer) co_return std::unexpected(peer.error());
    peers.spawn(echo(std::move(*peer)));
  }
}

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  return Runtime(options).run_on_each_core(serve, options.endpoint);
}
