#include "tests/messages/http2_exchange.hpp"

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "tests/messages/http2_peer.hpp"
#include "weir/task/scope.hpp"

namespace weir::tests::messages {
namespace {

Fields pseudo_of(const Stream& stream, const SentRequest& request) {
  return {{":method", request.method},
          {":scheme", stream.tls() != nullptr ? "https" : "http"},
          {":path", request.target},
          {":authority", request.host}};
}

}  // namespace

Task<ReceivedResponse> exchange_http2(Stream& stream, const SentRequest& request,
                                      const std::vector<SentRequest>& before) {
  Http2Peer peer(stream, Http2Peer::Role::client);
  std::uint32_t id = 1;
  const auto all = [&](Scope& scope) -> Task<> {
    scope.spawn(peer.run());
    for (const SentRequest& each : before) {
      scope.spawn(peer.send(id, pseudo_of(stream, each), each.message));
      id += 2;
    }
    scope.spawn(peer.send(id, pseudo_of(stream, request), request.message));
    co_await peer.wait_for_end(id);
    scope.cancel();
  };
  std::ignore = co_await with_scope(OnFailure::isolate, all);
  Http2Peer::Message& message = peer.message(id);
  ReceivedResponse response;
  if (const auto status = find(message.fields, ":status")) response.status = std::stoi(*status);
  response.fields = std::move(message.fields);
  response.body = std::move(message.body);
  response.trailers = std::move(message.trailers);
  response.end = message.end;
  response.reset = message.reset;
  co_return response;
}

}  // namespace weir::tests::messages
