#include "tests/messages/memory_carrier.hpp"

#include <tuple>
#include <utility>

#include "weir/http/detail/h1/parser.hpp"
#include "weir/task/timeout.hpp"

namespace weir::tests::messages {
namespace {

using Next = http::Exchange::Next;

void add_lines(Fields& fields, std::string_view lines) {
  for (http::Headers::Iterator each(lines); each != http::Headers::Iterator(); ++each) {
    fields.emplace_back((*each).name, (*each).value);
  }
}

}  // namespace

Task<> MemoryCarrier::serve(http::ServerState& server, std::shared_ptr<MemoryWire> wire) {
  const Context context = co_await this_context();
  try {
    MemoryCarrier carrier(server, *wire, context);
    wire->on_left = [&carrier] { carrier.on_left(); };
    co_await carrier.serve();
  } catch (...) {
    // There is no memory for the response.
  }
  wire->on_left = nullptr;
  wire->request_body.close();
  wire->response_body.cut();  // unless it has ended
}

Task<> MemoryCarrier::serve() {
  Next next = begin();
  if (next != Next::finish && next != Next::upgraded) next = co_await exchange_.run();
  if (next == Next::finish) exchange_.finish();
  if (exchange_.response().failed()) co_return;
  if (!exchange_.body().ended()) std::ignore = co_await exchange_.drop_rest();
}

/// Writes the head as the text of HTTP/1.1, because only a HeadParser fills a RequestHead.
Next MemoryCarrier::begin() {
  const MemoryRequest& request = wire_.request;
  head_ = request.method + " " + request.target + " HTTP/1.1\r\n";
  for (const auto& [name, value] : request.fields) head_ += name + ": " + value + "\r\n";
  const std::uint64_t bytes = request.length.bytes().value_or(0);
  if (bytes > 0) head_ += "Content-Length: " + std::to_string(bytes) + "\r\n";
  head_ += "\r\n";
  http::HeadParser parser(server_.limits().head);
  const http::ParseResult parsed = parser.parse(head_, exchange_.head());
  if (parsed.kind == http::ParseResult::Kind::complete) return exchange_.begin(request.length);
  return exchange_.reject_head(parsed.error);
}

void MemoryCarrier::on_left() {
  exchange_.body().fail(Errc::closed);
  exchange_.on_peer_gone();
}

bool MemoryCarrier::is_connect() const noexcept {
  return exchange_.call().head().method() == http::Method::connect;
}

// The body of the request.

http::Carrier::Taken MemoryCarrier::take(Wanted /*wanted*/, Bytes& piece) {
  MemoryPipe& body = wire_.request_body;
  auto next = body.take();
  const bool ends = body.empty() && body.end() == End::complete;
  if (!next) return ends ? Taken::end : Taken::nothing;
  lent_ = std::move(*next);
  if (!exchange_.body().count(lent_.size())) return Taken::nothing;
  piece = to_bytes(lent_);
  return ends ? Taken::last_piece : Taken::piece;
}

Task<Result<>> MemoryCarrier::wait_for_input(Instant until) {
  co_return co_await timeout(until - server_.loop().now(), wire_.request_body.wait());
}

// The response.

Task<Result<>> MemoryCarrier::send_interim(const http::ResponseHead& head) {
  wire_.interim.push_back(code_of(head.status));
  wire_.response_body.wake();
  co_return {};
}

http::Carrier::Sent MemoryCarrier::send_message(const http::ResponseHead& head,
                                                std::string_view text) {
  send_head(head, text.empty());
  unsent_ = text;
  return text.empty() ? Sent::whole : Sent::part;
}

Task<Result<>> MemoryCarrier::send_rest(const http::ResponseHead& /*head*/, std::string_view text) {
  WEIR_CO_TRY(co_await wire_.response_body.send(std::string(text)));
  unsent_ = {};
  end({});
  co_return {};
}

void MemoryCarrier::send_head(const http::ResponseHead& head, bool ends) {
  Fields& fields = wire_.response_fields;
  wire_.status = code_of(head.status);
  if (head.framing == http::BodyFraming::length) {
    fields.emplace_back("Content-Length", std::to_string(head.content_length));
  }
  if (head.date != nullptr) fields.emplace_back("Date", head.date->text());
  if (!head.content_type.empty()) fields.emplace_back("Content-Type", head.content_type);
  add_lines(fields, head.lines);
  wire_.response_body.wake();
  if (ends) end({});
}

Task<Result<>> MemoryCarrier::send_piece(Bytes piece) {
  return wire_.response_body.send(std::string(to_text(piece)));
}

void MemoryCarrier::end(std::string_view trailers) {
  add_lines(wire_.response_trailers, trailers);
  wire_.response_body.complete();
}

Task<Result<>> MemoryCarrier::flush() {
  co_return {};
}

}  // namespace weir::tests::messages
