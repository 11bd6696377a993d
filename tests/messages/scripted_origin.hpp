// A server that receives any request and answers with the response of a script, for tests of the
// client and of the reverse proxy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/messages/carrier.hpp"
#include "tests/messages/message.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/server.hpp"

namespace weir::tests::messages {

/// A ScriptedOrigin answers requests with its responses in order, and all further ones with the
/// last. It does not use Weir's HTTP.
/// Threads: its loop's.
/// Lifetime: it outlives the scope of open().
class ScriptedOrigin {
 public:
  /// `responses` is not empty.
  ScriptedOrigin(Protocol protocol, Layer layer, std::vector<SentResponse> responses);

  /// Listens on a port of loopback, and serves until `scope` is cancelled.
  /// Errors: those of tcp::listen() and tls::Server::load().
  Task<Result<>> open(Scope& scope);
  os::Address address() const noexcept { return address_; }
  /// Returns the requests that have come, each of them as far as it has.
  const std::vector<ReceivedRequest>& received() const noexcept { return received_; }
  std::size_t connections() const noexcept { return connections_; }

 private:
  Task<> accept(Scope& scope, tcp::Listener listener);
  Task<> serve(AnyStream stream);
  Task<> serve_http1(Stream& stream);
  Task<> serve_http2(Stream& stream);
  Task<Result<>> answer_http1(Stream& stream, const std::string& method,
                              const SentResponse& response);
  /// Returns the response to a request.
  const SentResponse& response_to(std::size_t index) const {
    return responses_[std::min(index, responses_.size() - 1)];
  }

  Protocol protocol_;
  Layer layer_;
  std::vector<SentResponse> responses_;
  std::unique_ptr<tls::Server> tls_;
  std::optional<tls::Acceptor> acceptor_;
  os::Address address_;
  std::vector<ReceivedRequest> received_;
  std::size_t connections_ = 0;
};

}  // namespace weir::tests::messages
