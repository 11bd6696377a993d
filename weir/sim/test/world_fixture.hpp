// An echo service and its client, as the programs of two hosts. Included by tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

#include "weir/runtime/runtime.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/combinators.hpp"
#include "weir/sim/world.hpp"

namespace weir {

inline RuntimeOptions quiet(unsigned cores = 1) {
  return {.cores = cores, .announce = false};
}

inline Task<> echo(tcp::Stream peer) {
  for (;;) {
    const auto bytes = co_await peer.read();
    if (!bytes) co_return;
    const auto written = co_await peer.write(bytes->bytes());
    if (!written) co_return;
  }
}

inline Task<Result<>> serve_echo(Scope& peers) {
  auto listener = co_await tcp::listen(Endpoint::any(7));
  if (!listener) co_return fail(listener.error());
  for (;;) {
    auto peer = co_await listener->accept();
    if (!peer) co_return fail(peer.error());
    peers.spawn(echo(std::move(*peer)));
  }
}

/// One connection to the service: what it sends, and what comes of it.
struct Asked {
  std::string text = std::string(5000, 'x');
  std::string received = {};
  std::error_code connecting = {};
  std::error_code writing = {};
  std::error_code reading = {};
  std::size_t reads = 0;
  Duration took = {};
};

inline Task<Result<>> write_text(Stream& stream, Asked& asked) {
  const auto written = co_await stream.write(asked.text);
  if (!written) asked.writing = written.error();
  co_return {};
}

inline Task<Result<>> read_text(Stream& stream, Asked& asked) {
  while (asked.received.size() < asked.text.size()) {
    const auto bytes = co_await stream.read();
    if (!bytes) {
      asked.reading = bytes.error();
      co_return {};
    }
    ++asked.reads;
    asked.received += bytes->text();
  }
  co_return {};
}

/// A second after the start, when the service has come up.
inline Task<> ask_echo(Scope& scope, Endpoint server, Asked& asked) {
  const auto slept = co_await sleep(1s);
  if (!slept) co_return;
  const Instant begun = scope.loop().host().now();
  auto stream = co_await tcp::connect(server);
  if (stream) {
    static_cast<void>(co_await all(write_text(*stream, asked), read_text(*stream, asked)));
  } else {
    asked.connecting = stream.error();
  }
  asked.took = scope.loop().host().now() - begun;
}

/// The service on two cores, which ends when `asked` has been answered.
class EchoWorld {
 public:
  explicit EchoWorld(const WorldOptions& options) : world(options) {
    server.start_service(
        [](Host& host) { return Runtime(host, quiet(2)).run_on_each_core(serve_echo); });
    client.start([this](Host& host) {
      return Runtime(host, quiet()).run_on_each_core(ask_echo, server.address(7), std::ref(asked));
    });
  }
  WorldReport run() { return world.run_until_done(1h); }

  Asked asked;
  World world;
  WorldHost& server = world.host("server", {.cores = 2});
  WorldHost& client = world.host("client");
};

}  // namespace weir
