// An echo service and its client, as the programs of two hosts. This file is for tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/sim/world.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"

namespace weir::sim {

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
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(7)));
  for (;;) {
    WEIR_CO_TRY(auto peer, co_await listener.accept());
    peers.spawn(echo(std::move(peer)));
  }
}

/// One connection to the service: the text that it sends and its result.
struct EchoRequest {
  std::string text = std::string(5000, 'x');
  std::string received = {};
  std::error_code connecting = {};
  std::error_code writing = {};
  std::error_code reading = {};
  std::size_t reads = 0;
  Duration elapsed = {};
};

inline Task<Result<>> write_text(Stream& stream, EchoRequest& request) {
  const auto written = co_await stream.write(request.text);
  if (!written) request.writing = written.error();
  co_return {};
}

inline Task<Result<>> read_text(Stream& stream, EchoRequest& request) {
  while (request.received.size() < request.text.size()) {
    const auto bytes = co_await stream.read();
    if (!bytes) {
      request.reading = bytes.error();
      co_return {};
    }
    ++request.reads;
    request.received += bytes->text();
  }
  co_return {};
}

/// Sends the request one second after the start, when the service listens.
inline Task<> send_echo_request(Scope& scope, Endpoint server, EchoRequest& request) {
  const auto slept = co_await sleep(1s);
  if (!slept) co_return;
  const Instant begun = scope.loop().platform().now();
  auto stream = co_await tcp::connect(server);
  if (stream) {
    std::ignore = co_await all(write_text(*stream, request), read_text(*stream, request));
  } else {
    request.connecting = stream.error();
  }
  request.elapsed = scope.loop().platform().now() - begun;
}

/// A World with the service on two cores and one client. The service ends when `request` has been
/// answered.
class EchoWorld {
 public:
  explicit EchoWorld(const WorldOptions& options) : world(options) {
    server.start_service(
        [](loop::Platform& host) { return Runtime(host, quiet(2)).run_on_each_core(serve_echo); });
    client.start([this](loop::Platform& host) {
      return Runtime(host, quiet())
          .run_on_each_core(send_echo_request, server.address(7), std::ref(request));
    });
  }
  WorldReport run() { return world.run_until_done(1h); }

  EchoRequest request;
  World world;
  Host& server = world.host("server", {.cores = 2});
  Host& client = world.host("client");
};

}  // namespace weir::sim
