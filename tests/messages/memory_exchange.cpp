#include "tests/messages/memory_exchange.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "tests/messages/memory_carrier.hpp"
#include "tests/messages/memory_wire.hpp"

namespace weir::tests::messages {
namespace {

MemoryRequest request_of(const SentRequest& sent) {
  const SentMessage& message = sent.message;
  MemoryRequest request{
      .method = sent.method, .target = sent.target, .fields = {{"Host", sent.host}}, .length = {}};
  request.fields.insert(request.fields.end(), message.fields.begin(), message.fields.end());
  const bool has_body =
      !message.body.empty() || !message.trailers.empty() || message.end != End::complete;
  if (has_body && message.length == Length::declared) {
    request.length = http::BodyLength::of(announced_bytes(message));
  }
  if (has_body && message.length == Length::undeclared) {
    request.length = http::BodyLength::unknown();
  }
  return request;
}

/// Sends the body as far as the server takes it.
Task<> send_body(MemoryWire& wire, const SentMessage& message) {
  for (std::size_t round = 0; round < message.body_repeats; ++round) {
    for (const std::string& piece : message.body) {
      const auto sent = co_await wire.request_body.send(piece);
      if (!sent) co_return;
    }
  }
  if (message.end == End::cut) wire.leave();
  if (message.end != End::complete) co_return;
  for (const auto& [name, value] : message.trailers) {
    EXPECT_TRUE(wire.request_trailers.add(name, value));
  }
  wire.request_body.complete();
}

Task<ReceivedResponse> read_response(MemoryWire& wire) {
  ReceivedResponse response;
  MemoryPipe& body = wire.response_body;
  for (;;) {
    while (const auto piece = body.take()) response.body += *piece;
    if (body.end() != End::open) break;
    const auto waited = co_await body.wait();
    if (!waited) break;
  }
  response.status = wire.status;
  response.fields = wire.response_fields;
  response.trailers = wire.response_trailers;
  response.end = body.end();
  co_return response;
}

/// Begins a request.
std::shared_ptr<MemoryWire> begin(http::ServerState& server, Scope& scope,
                                  const SentRequest& request) {
  auto wire = std::make_shared<MemoryWire>();
  wire->request = request_of(request);
  scope.spawn(MemoryCarrier::serve(server, wire));
  return wire;
}

}  // namespace

Task<ReceivedResponse> exchange_memory(http::ServerState& server, Scope& scope,
                                       const SentRequest& request,
                                       const std::vector<SentRequest>& before) {
  ReceivedResponse response;
  std::vector<std::shared_ptr<MemoryWire>> wires;
  const auto exchange = [&](Scope& own) -> Task<> {
    for (const SentRequest& each : before) {
      wires.push_back(begin(server, scope, each));
      own.spawn(send_body(*wires.back(), each.message));
    }
    wires.push_back(begin(server, scope, request));
    MemoryWire& wire = *wires.back();
    if (request.reading == SentRequest::Reading::after_sending) {
      co_await send_body(wire, request.message);
    } else {
      own.spawn(send_body(wire, request.message));
    }
    response = co_await read_response(wire);
    own.cancel();
  };
  std::ignore = co_await with_scope(OnFailure::isolate, exchange);
  for (const auto& each : wires) each->leave();
  co_return response;
}

}  // namespace weir::tests::messages
