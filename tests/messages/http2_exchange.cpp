#include "tests/messages/http2_exchange.hpp"

#include <string>
#include <tuple>
#include <utility>

#include "tests/messages/http2_peer.hpp"
#include "weir/task/scope.hpp"

namespace weir::tests::messages {

Task<ReceivedResponse> exchange_http2(Stream& stream, const SentRequest& request) {
  Http2Peer peer(stream, Http2Peer::Role::client);
  const Fields pseudo{{":method", request.method},
                      {":scheme", stream.tls() != nullptr ? "https" : "http"},
                      {":path", request.target},
                      {":authority", "weir.test"}};
  const auto all = [&](Scope& scope) -> Task<> {
    scope.spawn(peer.run());
    scope.spawn(peer.send(1, pseudo, request.message));
    co_await peer.wait_for_end(1);
    scope.cancel();
  };
  std::ignore = co_await with_scope(OnFailure::isolate, all);
  Http2Peer::Message& message = peer.message(1);
  ReceivedResponse response;
  if (const auto status = find(message.fields, ":status")) response.status = std::stoi(*status);
  response.fields = std::move(message.fields);
  response.body = std::move(message.body);
  response.trailers = std::move(message.trailers);
  response.end = message.end;
  co_return response;
}

}  // namespace weir::tests::messages
