#include "tests/messages/scripted_origin.hpp"

#include <tuple>
#include <utility>

#include "tests/messages/carrier_tls.hpp"
#include "tests/messages/http1_reader.hpp"
#include "tests/messages/http1_writer.hpp"
#include "tests/messages/http2_peer.hpp"
#include "weir/net/tcp.hpp"

namespace weir::tests::messages {

ScriptedOrigin::ScriptedOrigin(Protocol protocol, Layer layer, std::vector<SentResponse> responses)
    : protocol_(protocol), layer_(layer), responses_(std::move(responses)) {}

Task<Result<>> ScriptedOrigin::open(Scope& scope) {
  if (layer_ == Layer::tls) {
    tls::ServerOptions options = self_signed_options();
    options.protocols = {alpn_of(protocol_)};
    tls_ = std::make_unique<tls::Server>(std::move(options));
    const auto loaded = co_await tls_->load();
    if (!loaded) co_return fail(loaded.error());
    acceptor_.emplace(scope.loop(), *tls_);
  }
  WEIR_CO_TRY(tcp::Listener listener, co_await tcp::listen(Endpoint::loopback(0)));
  address_ = os::Address::loopback(listener.local_address().port());
  scope.spawn(accept(scope, std::move(listener)));
  co_return {};
}

Task<> ScriptedOrigin::accept(Scope& scope, tcp::Listener listener) {
  for (;;) {
    auto stream = co_await listener.accept();
    if (!stream) co_return;
    ++connections_;
    scope.spawn(serve(std::move(*stream)));
  }
}

Task<> ScriptedOrigin::serve(AnyStream stream) {
  if (acceptor_) {
    auto secured = co_await acceptor_->accept(std::move(stream));
    if (!secured) co_return;
    stream = std::move(*secured);
  }
  if (protocol_ == Protocol::http_2) {
    co_await serve_http2(*stream);
  } else {
    co_await serve_http1(*stream);
  }
}

Task<Result<>> ScriptedOrigin::answer_http1(Stream& stream, const std::string& method,
                                            const SentResponse& response) {
  const SentMessage& message = response.message;
  const bool has_body = method != "HEAD" && response.status != 204 && response.status != 304;
  Http1Framing framing = Http1Framing::length;
  if (message.length == Length::undeclared) {
    framing = protocol_ == Protocol::http_1_0 ? Http1Framing::none : Http1Framing::chunks;
  }
  if (!has_body) framing = Http1Framing::none;
  const std::string start = (protocol_ == Protocol::http_1_0 ? "HTTP/1.0 " : "HTTP/1.1 ") +
                            std::to_string(response.status) + " Reason\r\n";
  const auto written = co_await write_http1(stream, start, message, framing);
  co_return written;
}

Task<> ScriptedOrigin::serve_http1(Stream& stream) {
  Http1Reader input(stream);
  std::string line;
  for (;;) {
    if (!co_await input.read_line(line)) co_return;
    const std::size_t index = received_.size();
    const std::size_t space = line.find(' ');
    received_.push_back({.method = line.substr(0, space),
                         .target = line.substr(space + 1, line.rfind(' ') - space - 1)});
    if (!co_await input.read_fields(received_[index].fields)) co_return;
    const std::string method = received_[index].method;
    const SentResponse& response = response_to(index);
    const bool early = response.moment == SentResponse::Moment::after_its_head;
    if (early) {
      const auto answered = co_await answer_http1(stream, method, response);
      if (!answered) co_return;
    }
    const auto length = find(received_[index].fields, "Content-Length");
    std::string body;
    Fields trailers;
    End end = End::complete;
    if (find(received_[index].fields, "Transfer-Encoding")) {
      end = co_await input.read_chunks(body, trailers);
    } else if (length) {
      const bool whole = co_await input.read_exactly(std::stoull(*length), body);
      if (!whole) end = End::cut;
    }
    received_[index].body = std::move(body);
    received_[index].trailers = std::move(trailers);
    received_[index].end = end;
    if (end == End::cut) co_return;
    if (!early) {
      const auto answered = co_await answer_http1(stream, method, response);
      if (!answered) co_return;
    }
    const bool by_close =
        response.message.length == Length::undeclared && protocol_ == Protocol::http_1_0;
    if (response.message.end != End::complete) co_return;
    if (by_close) {
      // The end of TLS needs room in the kernel, which a close would not wait for.
      std::ignore = stream.finish_writing();
      std::string rest;
      std::ignore = co_await input.read_all(rest);
      co_return;
    }
  }
}

Task<> ScriptedOrigin::serve_http2(Stream& stream) {
  Http2Peer peer(stream, Http2Peer::Role::server);
  const auto receive = [&](std::uint32_t id, std::size_t index) -> Task<> {
    const SentResponse& response = response_to(index);
    const Fields pseudo{{":status", std::to_string(response.status)}};
    if (response.moment == SentResponse::Moment::after_its_head) {
      co_await peer.send(id, pseudo, response.message);
    }
    co_await peer.wait_for_end(id);
    const Http2Peer::Message& message = peer.message(id);
    received_[index].body = message.body;
    received_[index].trailers = message.trailers;
    received_[index].end = message.end;
    if (response.moment == SentResponse::Moment::after_the_request &&
        message.end == End::complete) {
      co_await peer.send(id, pseudo, response.message);
    }
  };
  std::vector<std::size_t> indices;
  const auto all = [&](Scope& scope) -> Task<> {
    const auto requests = [&]() -> Task<> {
      for (;;) {
        const std::uint32_t id = co_await peer.next_head();
        if (id == 0) co_return;
        const Fields& fields = peer.message(id).fields;
        received_.push_back({.method = find(fields, ":method").value_or(""),
                             .target = find(fields, ":path").value_or(""),
                             .fields = fields});
        indices.push_back(received_.size() - 1);
        scope.spawn(receive(id, indices.back()));
      }
    };
    scope.spawn(requests());
    co_await peer.run();
    scope.cancel();
  };
  std::ignore = co_await with_scope(OnFailure::isolate, all);
  for (const std::size_t each : indices) {
    if (received_[each].end == End::open) received_[each].end = End::cut;
  }
}

}  // namespace weir::tests::messages
