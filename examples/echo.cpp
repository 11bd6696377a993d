// echo: sends back the bytes that it receives, on every core. The end of a stream is an error that
// ends the loop. With --tls-cert or --tls-self-signed, the bytes travel by TLS.
#include <weir/net/listen/listener.hpp>
#include <weir/net/tcp.hpp>
#include <weir/runtime/runtime.hpp>
#include <weir/tls.hpp>

using namespace weir;

Task<> echo(AnyStream connection, std::shared_ptr<tls::Acceptor> acceptor) {
  auto accepted = co_await tls::accept(acceptor, std::move(connection));
  if (!accepted) co_return;  // counted by its reason
  Stream& peer = **accepted;
  while (auto bytes = co_await peer.read()) {
    if (!co_await peer.write(*bytes)) break;
  }
}

Task<Result<>> serve(Scope& peers, Endpoint endpoint, std::shared_ptr<tls::Server> tls) {
  WEIR_CO_TRY(const auto acceptor, co_await tls::Acceptor::make(peers, tls));
  WEIR_CO_TRY(auto listener, co_await tcp::listen(endpoint));
  for (;;) {
    WEIR_CO_TRY(auto peer, co_await listener.accept());
    peers.spawn(echo(std::move(peer), acceptor));
  }
}

int main(int argc, char** argv) {
  auto options = tls::ProgramOptions::from_args(argc, argv);
  return Runtime(options).run_on_each_core(serve, options.endpoint, options.tls);
}
