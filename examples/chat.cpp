// chat: sends each line from a client to all clients, on all cores. A connection stays on its core.
// A client that does not read misses lines, and is told how many. The server closes a connection
// that takes no bytes for ten seconds.
#include <weir/net/listen/listener.hpp>
#include <weir/net/tcp.hpp>
#include <weir/runtime/messaging/broadcast.hpp>
#include <weir/runtime/runtime.hpp>
#include <weir/task/combinators.hpp>
#include <weir/tls.hpp>

using namespace weir;

using Room = Broadcast<std::string>;

Task<Result<>> hear(Stream& client, Room::Subscription lines) {
  for (;;) {
    auto line = co_await lines.receive();
    if (!line && line.error() != Errc::limit_reached) co_return fail(line.error());
    std::string text = "(" + std::to_string(lines.missed()) + " lines missed so far)\n";
    if (line) text = **line;
    if (auto sent = co_await client.write(text, {.timeout = 10s}); !sent) co_return sent;
  }
}

Task<Result<>> speak(Stream& client, Room& room) {
  std::string line;
  for (;;) {
    WEIR_CO_TRY(auto bytes, co_await client.read());
    for (const char each : bytes.text()) {
      line.push_back(each);
      if (line.size() > 1000) co_return fail(Errc::limit_reached);
      if (line.back() != '\n') continue;
      if (auto said = room.publish(std::exchange(line, {})); !said) co_return said;
    }
  }
}

Task<> talk(AnyStream connection, std::shared_ptr<tls::Acceptor> acceptor, Room& room) {
  auto accepted = co_await tls::accept(acceptor, std::move(connection));
  if (!accepted) co_return;
  Stream& client = **accepted;
  std::ignore = co_await race(hear(client, room.subscribe()), speak(client, room));
}

Task<Result<>> serve(Scope& clients, Room& room, Endpoint endpoint,
                     std::shared_ptr<tls::Server> tls) {
  WEIR_CO_TRY(const auto acceptor, co_await tls::Acceptor::make(clients, tls));
  WEIR_CO_TRY(auto listener, co_await tcp::listen(endpoint));
  for (;;) {
    auto client = co_await listener.accept();
    if (!client) {
      room.close();  // clients receive the published lines, then the end
      co_return fail(client.error());
    }
    clients.spawn(talk(std::move(*client), acceptor, room));
  }
}

int main(int argc, char** argv) {
  auto options = tls::ProgramOptions::from_args(argc, argv);
  Room room;
  return Runtime(options).run_on_each_core(serve, std::ref(room), options.endpoint, options.tls);
}
