#include "tests/messages/http1_exchange.hpp"

#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>

#include "tests/messages/http1_reader.hpp"
#include "tests/messages/http1_writer.hpp"
#include "weir/task/scope.hpp"

namespace weir::tests::messages {
namespace {

Task<Result<>> send(Stream& stream, Protocol protocol, const SentRequest& request) {
  const SentMessage& message = request.message;
  const bool has_body = !message.body.empty() || message.end == End::open;
  Http1Framing framing = Http1Framing::none;
  if (has_body && message.length == Length::declared) framing = Http1Framing::length;
  if (has_body && message.length == Length::undeclared) framing = Http1Framing::chunks;
  std::string start = request.method + " " + request.target +
                      (protocol == Protocol::http_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n") +
                      "Host: " + request.host + "\r\n";
  const auto sent = co_await write_http1(stream, std::move(start), message, framing);
  co_return sent;
}

Task<End> read_body(Http1Reader& input, const std::string& method, ReceivedResponse& response) {
  const int status = response.status;
  if (method == "HEAD" || status == 204 || status == 304) co_return End::complete;
  const auto coding = find(response.fields, "Transfer-Encoding");
  if (coding) {
    const End end = co_await input.read_chunks(response.body, response.trailers);
    co_return end;
  }
  if (const auto length = find(response.fields, "Content-Length")) {
    const bool whole = co_await input.read_exactly(std::stoull(*length), response.body);
    co_return whole ? End::complete : End::cut;
  }
  const End end = co_await input.read_all(response.body);
  co_return end;
}

/// Reads the final response.
Task<> receive(Stream& stream, const std::string& method, ReceivedResponse& response) {
  Http1Reader input(stream);
  std::string line;
  do {
    response.fields.clear();
    if (!co_await input.read_line(line)) co_return;
    if (!co_await input.read_fields(response.fields)) co_return;
    response.status = std::atoi(line.substr(line.find(' ') + 1).c_str());
  } while (response.status / 100 == 1);
  response.end = co_await read_body(input, method, response);
}

}  // namespace

Task<ReceivedResponse> exchange_http1(Stream& stream, Protocol protocol,
                                      const SentRequest& request) {
  ReceivedResponse response;
  const auto both = [&](Scope& scope) -> Task<> {
    if (request.message.end == End::cut) {
      std::ignore = co_await send(stream, protocol, request);
      stream.close();
      co_return;
    }
    if (request.reading == SentRequest::Reading::after_sending) {
      const auto sent = co_await send(stream, protocol, request);
      if (!sent) co_return;  // the client sees no response
    } else {
      scope.spawn(send(stream, protocol, request));
    }
    co_await receive(stream, request.method, response);
    scope.cancel();
  };
  std::ignore = co_await with_scope(OnFailure::isolate, both);
  co_return response;
}

}  // namespace weir::tests::messages
