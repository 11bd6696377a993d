#include "weir/web/proxy/reverse_proxy.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <variant>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/detail/shortage.hpp"
#include "weir/http/client/client.hpp"
#include "weir/http/message/detail/announced_body.hpp"
#include "weir/http/message/detail/field_search.hpp"
#include "weir/http/message/detail/scoped_body.hpp"
#include "weir/http/server/detail/client_side.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/context.hpp"
#include "weir/task/timeout.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/web/proxy/detail/forwarding.hpp"
#include "weir/web/proxy/detail/proxied_websocket.hpp"
#include "weir/web/proxy/detail/proxy_core.hpp"

namespace weir::http {
namespace {

// A response with at most this length is read as a whole, so that its upstream is free before a
// slow client has taken it. It needs no task that streams it.
constexpr std::uint64_t whole_body_max = 16 * 1024;
constexpr Status loop_detected{508};  // RFC 5842 §7.2

/// A request on its way to an upstream. The handler, the task that sends its body and the function
/// that writes the response share it; see Request::scope().
struct Upload {
  Upload(Request& of, BodySource& body, ProxyCore& core)
      : request(of), source(body), proxied(core), client(proxied.slot()) {}
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  Request& request;
  BodySource& source;
  ProxyCore::Request proxied;
  ClientSide client;
  std::error_code error = {};   // why the client's body could not be read
  std::string start = {};       // the begin of the body
  std::size_t start_max = 0;    // bytes of `start` that an upstream may make the proxy keep
  bool given = false;           // an upstream has got a part of the request
  bool begun = false;           // an upstream has asked for the body
  bool ended = false;           // the whole body was read
  bool kept = true;             // `start` has all bytes that were read
  Instant waits_since = never;  // the proxy waits for bytes of the client since this time
  bool running = false;         // a task sends the body

  /// Begins another attempt, which gives `sent` to an upstream.
  void begin_attempt(ClientRequest& sent) noexcept {
    given = false;
    waits_since = never;
    sent.note_given(given);
  }
  /// Keeps bytes that were read, for an upstream that says that it has not processed the request.
  void keep(Bytes piece) {
    if (!kept) return;
    kept = start.size() + piece.size() <= start_max;
    if (kept) {
      start.append(to_text(piece));
    } else {
      start = std::string();  // returns its memory
    }
  }
};

/// Reads the body until it has ended, or until there are more than `most` bytes.
Task<Result<>> read_start(Upload& upload, std::size_t most) {
  while (!upload.ended && upload.start.size() <= most) {
    const auto piece = co_await upload.source.read();
    if (!piece) co_return fail(piece.error());
    upload.start.append(to_text(*piece));
    upload.ended = piece->empty();
  }
  co_return {};
}

/// Says that a task sends the body, until the end of its block.
class Running {
 public:
  explicit Running(Upload& upload) noexcept : upload_(upload) { upload.running = true; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { upload_.running = false; }

 private:
  Upload& upload_;
};

Task<Result<>> send_request_body(BodySink& sink, std::shared_ptr<Upload> shared) {
  Upload& upload = *shared;
  const Loop& loop = *(co_await this_context()).loop;
  const Running running(upload);
  upload.begun = true;
  if (!upload.start.empty()) {
    if (auto sent = co_await sink.write(upload.start); !sent) co_return sent;
  }
  while (!upload.ended) {
    upload.waits_since = loop.now();
    const auto piece = co_await upload.client.read(upload.source);
    if (!piece) {
      // The client of the upstream cancels the wait when the upstream ends the request.
      if (piece.error() != Errc::cancelled) upload.error = piece.error();
      co_return fail(piece.error());
    }
    upload.waits_since = never;
    upload.ended = piece->empty();
    if (upload.ended) break;
    upload.keep(*piece);
    if (auto sent = co_await sink.write(*piece); !sent) co_return sent;
  }
  forward_trailers(upload.request.head(), upload.source, sink);
  co_return {};
}

void set_request_body(const std::shared_ptr<Upload>& upload, ClientRequest& out) {
  const std::optional<std::uint64_t> length = upload->source.length().bytes();
  auto function = [upload](BodySink& sink) { return send_request_body(sink, upload); };
  static constexpr char passed_on[] = "";  // the header of the client says it
  out.set_body(passed_on, Body(StreamFunction(std::move(function)), length));
}

/// Returns true if there was no room for the request, or if its upstream says that it has not
/// processed it (RFC 9113 §8.7). No upstream has failed then.
bool is_unprocessed(std::error_code error) noexcept {
  return error == ClientError::queue_full || error == ClientError::queue_timed_out ||
         error == ClientError::not_processed;
}

/// Returns true if the head of the request exceeds what an upstream of HTTP/2 has announced to
/// take. Nothing was sent then.
bool is_long_head(std::error_code error) noexcept {
  return error == Errc::limit_reached;
}

/// Returns true if the upstream has ended a request whose client was slow: it had waited for bytes
/// of the client for as long as a client may let a slot wait.
bool has_met_slow_client(std::error_code error, const Upload& upload, Instant now) noexcept {
  return error == ClientError::connection_lost &&
         upload.waits_since <= after(now, -ClientSide::rate.grace);
}

/// Returns true if the upstream itself caused the error.
bool is_upstream_failure(std::error_code error, const Upload& upload, Instant now) noexcept {
  const bool is_local = error == Errc::cancelled || weir::detail::is_shortage(error);
  return !is_local && !is_unprocessed(error) && !is_long_head(error) &&
         !has_met_slow_client(error, upload, now);
}

bool is_of_tls(std::error_code error) noexcept {
  return error.category() == tls::tls_error_category();
}

/// Returns the status of an error of the upstream. An error of TLS is that of its connection, and
/// not one of the client's.
Status upstream_status(std::error_code error) noexcept {
  if (is_long_head(error)) return Status::request_header_fields_too_large;
  if (is_of_tls(error) && error != tls::Error::timed_out) return Status::bad_gateway;
  return to_status(error);
}

Response upstream_error(std::error_code error) {
  const Status status = upstream_status(error);
  return status == to_status(error) ? Response(error) : Response(status);
}

/// Returns the answer to a request that no upstream has answered. Retry-After tells the client that
/// it may send the same request again.
Response failure(std::error_code error) {
  Response out = upstream_error(error);
  if (is_unprocessed(error)) out.set_header("Retry-After", "1");
  return out;
}

/// Returns the status for a client that has failed itself; std::nullopt if it has not.
std::optional<Status> client_failure(std::error_code error, const Upload& upload) noexcept {
  if (upload.error) return to_status(upload.error);
  // When the time of the request was over, the proxy waited for its client.
  const bool waits = upload.waits_since != never;
  if (error == ClientError::timed_out && waits) return Status::request_timeout;
  return std::nullopt;
}

/// Returns true if another upstream may get the request, because this one cannot have acted on it,
/// or because a repetition has no other effect.
bool may_try_another(std::error_code error, const Request& request, const Upload& upload) noexcept {
  if (error == ClientError::not_processed) return upload.kept;
  const bool not_connected = error == ClientError::connect_failed ||
                             error == ClientError::connect_timed_out ||
                             error == ClientError::proxy_refused;
  if (not_connected) return true;
  if (!upload.given && is_of_tls(error)) return true;  // the handshake failed
  const bool lost = error == ClientError::connection_lost || is_of_tls(error);
  return lost && is_idempotent(request.method()) && !request.body_length().has_body();
}

/// Returns the Content-Length of the response.
std::optional<std::uint64_t> announced_length(const ClientResponse& response) noexcept {
  const auto text = response.header("content-length");
  if (!text) return std::nullopt;
  std::uint64_t length = 0;
  const char* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, length);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return length;
}

/// Reads the trailers behind a body of known length, of which all bytes have come. Only HTTP/2 has
/// them. It waits for those that the response announces, or that its protocol has. Others are
/// passed on if they have come with the body: an upstream may end the stream much later.
Task<> read_trailers(ClientResponse& response) {
  if (response.version() != Version::http_2) co_return;
  constexpr std::string_view grpc = "application/grpc";
  const std::string_view type = response.header("content-type").value_or("");
  const bool is_grpc = equals_ignoring_case(type.substr(0, grpc.size()), grpc);
  const bool announced = is_grpc || response.header("trailer");
  auto reading = timeout(announced ? Duration::max() : Duration::zero(), response.read());
  std::ignore = co_await std::move(reading);
}

/// A request at an upstream, and its response. One parameter of a coroutine has both: GCC 12
/// destroys parameters in their order, and the end of the request may end the client of the
/// response.
struct Passage {
  std::shared_ptr<Upload> upload;
  ClientResponse response;  // destroyed first
  std::string begin = {};   // bytes of the body that were read already
};

/// Sends the body, or the `length` bytes of it.
Task<Result<>> send_response_body(BodySink& sink, Passage passage,
                                  std::optional<std::uint64_t> length) {
  ClientResponse& response = passage.response;
  ClientSide client(passage.upload->proxied.slot());
  if (!passage.begin.empty()) {
    if (auto sent = co_await sink.write(passage.begin); !sent) co_return sent;
  }
  for (std::uint64_t passed = passage.begin.size(); passed != length;) {
    const auto piece = co_await response.read();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) break;
    if (auto sent = co_await client.write(sink, *piece); !sent) co_return sent;
    passed += piece->size();
  }
  if (length) co_await read_trailers(response);
  forward_trailers(response, sink);
  co_return {};
}

/// Returns a body that is sent as it arrives. The client's request goes on meanwhile, if a task
/// still sends it; each wait for its bytes then has the limit of a wait for those of the upstream.
Body streamed(Passage passage, std::optional<std::uint64_t> length,
              const ReverseProxyOptions& options) {
  std::optional<Duration> duplex;
  if (passage.upload->running) duplex = options.client.limits.body_timeout;
  auto function = [passage = std::move(passage), length](BodySink& sink) mutable {
    return send_response_body(sink, std::move(passage), length);
  };
  return Body(StreamFunction(std::move(function)), length, duplex);
}

/// Returns the next piece of the response. While the client still sends its request, it takes only
/// what has arrived, since the upstream may wait for more of the request, and the client for the
/// response.
/// Errors: those of ClientResponse::read(); Errc::timed_out if nothing has arrived.
Task<Result<Bytes>> read_next(Passage& passage) {
  const bool goes_on = passage.upload->running && !passage.upload->ended;
  if (!goes_on) return passage.response.read();
  return timeout(Duration::zero(), passage.response.read());
}

/// Passes the response of the upstream at `base` on.
Task<Response> pass_on(Passage passed, Method method, const Url& base,
                       const ReverseProxyOptions& options) {
  ClientResponse& response = passed.response;
  if (!is_valid(response.status())) co_return Response(Status::bad_gateway);
  Response out(response.status());
  if (auto forwarded = forward_response_headers(response, options, out); !forwarded) {
    co_return Response(forwarded.error());
  }
  rewrite_locations(base, options, out);
  if (method == Method::head || !may_have_body(out.status())) {
    out.body() = detail::announced_body(announced_length(response));
    co_return out;
  }
  auto length = response.body_length().bytes();
  // Over HTTP/2, trailers may follow a length of 0, which is an unknown one then.
  if (!length && announced_length(response) == 0) length = 0;
  if (!length || *length > whole_body_max) {
    out.body() = streamed(std::move(passed), length, options);
    co_return out;
  }
  passed.begin.reserve(*length);
  while (passed.begin.size() < *length) {
    auto reading = read_next(passed);
    const auto piece = co_await std::move(reading);
    if (!piece && piece.error() == Errc::timed_out) {
      out.body() = streamed(std::move(passed), length, options);
      co_return out;
    }
    if (!piece) co_return upstream_error(piece.error());
    if (piece->empty()) co_return Response(make_error_code(ClientError::bad_response));
    passed.begin.append(to_text(*piece));
  }
  co_await read_trailers(response);
  if (!response.trailers().empty()) {
    // HTTP/1.1 has no trailers behind a length.
    out.body() = streamed(std::move(passed), std::nullopt, options);
  } else {
    // The server must not replace an empty body by a description of the error.
    out.body() = passed.begin.empty() ? detail::announced_body(0) : Body(std::move(passed.begin));
  }
  co_return out;
}

/// Returns the response of an upstream that has opened no WebSocket.
Result<ClientResponse> refusal_of(Result<WebSocketAnswer> answer) {
  if (!answer) return fail(answer.error());
  return std::move(std::get<ClientResponse>(*answer));
}

/// Returns true for a response that ignores the request for a WebSocket, which an upstream may send
/// (RFC 9110 §7.8). Over HTTP/2 it would open one (RFC 8441 §5).
bool would_open_websocket(Version version, const ClientResponse& response) noexcept {
  return version == Version::http_2 && code_of(response.status()) < 300;
}

/// Returns an answer of the proxy itself that names the usual methods, of which it passes all on.
Response with_allow(Status status) {
  Response out(status);
  out.add_header("Allow", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY");
  return out;
}

/// Answers OPTIONS or TRACE at the last proxy that the client wants to reach (RFC 9110 §7.6.2).
Response answer_at_last_hop(const Request& request) {
  if (request.method() == Method::options) return with_allow(Status::no_content);
  Response out = text(reflected_request(request));
  out.set_header("Content-Type", "message/http");  // RFC 9110 §9.3.8
  return out;
}

/// Returns the answer to a request that is not passed on; nullopt to pass it on.
std::optional<Response> refuse(const Request& request, bool is_websocket,
                               const ReverseProxyOptions& options) {
  const Method method = request.method();
  if (method == Method::connect) return Response(Status::not_implemented);
  if (method == Method::trace && !options.pass_trace) return with_allow(Status::method_not_allowed);
  if (!request.path_text().starts_with('/')) return Response(Status::bad_request);
  if (count_hops(request.head()) >= options.hops_max) return Response(loop_detected);
  const auto hops = max_forwards_of(request);
  if (!hops) return Response(Status::bad_request);
  if (hops->value_or(1) == 0) return answer_at_last_hop(request);
  if (is_websocket) return detail::refuse_websocket(request);
  return std::nullopt;
}

/// Makes the request to an upstream, without headers and body.
ClientRequest request_to(Url url, const Request& request) {
  if (request.method() != Method::other) return {request.method(), std::move(url)};
  return {request.method_text(), std::move(url)};
}

/// Passes an interim response of the upstream on (RFC 9110 §15.2).
Task<> pass_interim(const InterimResponse& interim, const Request& request,
                    const ReverseProxyOptions& options) {
  const Headers headers = interim_headers(interim, options);
  std::ignore = co_await request.send_interim(interim.status(), headers);
}

/// Makes the request to an upstream, without a body, for another attempt.
Result<ClientRequest> request_of(Upload& upload, Url url, const ReverseProxyOptions& options) {
  const Request& request = upload.request;
  ClientRequest sent = request_to(std::move(url), request);
  WEIR_TRY(forward_request_headers(request, options, sent));
  sent.ignore_idempotency_key();  // the upstream may not know the key of the client
  sent.obey_no_transform();
  sent.on_interim([&request, &options](const InterimResponse& interim) {
    return pass_interim(interim, request, options);
  });
  upload.begin_attempt(sent);
  return sent;
}

/// Returns how many bytes of the body are read before the request takes an upstream; std::nullopt:
/// none, so that an answer to a request that is not complete arrives immediately. A short body is
/// read as a whole, so that a slow client holds no upstream. A decoded one waits for its decoder
/// first: that wait is none for the client, and no request waits for both in the other order.
std::optional<std::size_t> bytes_read_first(const Request& request, const ProxyCore& core,
                                            const ReverseProxyOptions& options) noexcept {
  if (request.has_decoded_body()) return 0;
  const auto length = request.body_length().bytes();
  const bool is_short = length && *length != 0 && *length <= options.short_body_max;
  if (!is_short || !core.is_busy() || request.head().expects_continue()) return std::nullopt;
  return options.short_body_max;
}

/// Returns the body that an upstream gets: with the coding of the client if the request forbids to
/// change it (RFC 9111 §5.2.1.6).
BodySource& body_to_pass_on(const Request& request) noexcept {
  BodySource& body = request.body_source();
  return forbids_transform(request.head()) ? body.coded() : body;
}

}  // namespace

struct ReverseProxy::State {
  std::vector<Url> upstreams;
  ReverseProxyOptions options;
  std::shared_ptr<UpstreamPlan> plan = std::make_shared<UpstreamPlan>();
};

ProxyCore& ReverseProxy::core_of(Loop& loop) const {
  return loop.slots().get<ProxyCores>().of(loop, state_, state_->upstreams, state_->options,
                                           state_->plan);
}

CoreDemands ReverseProxy::demands(Loop& loop) const {
  const UpstreamPlan::Share& share = core_of(loop).share();
  ReverseProxyOptions planned = state_->options;
  planned.client.limits.connections_max = share.connections;
  planned.websockets_max = share.websockets;
  const ProxyMemoryBound bound = memory_bound(planned, state_->upstreams.size());
  return {.owner = state_.get(),
          .request_bytes = bound.request,
          .core_bytes = bound.core,
          .descriptors = share.connections + share.websockets};
}

Task<Response> ReverseProxy::operator()(Request& request) const {
  // The route keeps this handler until its last response has been sent. A copy of the pointer would
  // change a count that all cores share.
  const State& state = *state_;
  const ReverseProxyOptions& options = state.options;
  const bool is_websocket = detail::asks_for_websocket(request);
  if (auto refused = refuse(request, is_websocket, options)) co_return std::move(*refused);
  const ScopedBody passed_on(request, body_to_pass_on(request));
  Loop& loop = *(co_await this_context()).loop;
  ProxyCore& core = core_of(loop);
  const bool has_body = request.body_length().has_body();
  const auto upload = std::make_shared<Upload>(request, request.body_source(), core);
  ProxyCore::Request& proxied = upload->proxied;
  if (is_websocket) {
    const Result<> taken = co_await proxied.take_websocket_slot(request);
    if (!taken) co_return failure(taken.error());
  } else if (const auto bytes = bytes_read_first(request, core, options)) {
    const Result<> start = co_await read_start(*upload, *bytes);
    if (!start) co_return Response(to_status(start.error()));
  }
  if (!is_websocket && !proxied.try_take_slot(request)) {
    const Result<> taken = co_await proxied.take_slot(request);
    if (!taken) co_return failure(taken.error());
  }
  std::error_code error = make_error_code(ClientError::connect_failed);
  for (unsigned attempt = 0; attempt < options.attempts_max; ++attempt) {
    const auto index = proxied.choose();
    if (!index) break;
    auto url = upstream_url(state.upstreams[*index], request, options);
    if (!url) co_return Response(to_status(url.error()));
    upload->start_max = proxied.may_speak_http2(*url) ? options.short_body_max : 0;
    auto made = request_of(*upload, std::move(*url), options);
    if (!made) co_return Response(to_status(made.error()));
    ClientRequest& sent = *made;
    if (has_body) set_request_body(upload, sent);
    Result<ClientResponse> response = fail(Errc::closed);
    if (is_websocket) {
      auto answer = co_await detail::ask_for_websocket(request, std::move(sent), proxied, options);
      auto* const opened = answer ? std::get_if<OpenedWebSocket>(&*answer) : nullptr;
      if (opened != nullptr) {
        proxied.record_success();
        co_return detail::forward_websocket(request, std::move(*opened), std::move(proxied),
                                            options);
      }
      response = refusal_of(std::move(answer));
    } else if (has_body) {
      response = co_await proxied.client().send(request.scope(), std::move(sent));
    } else {
      response = co_await proxied.client().send(std::move(sent));
    }
    if (response) {
      proxied.record_success();
      if (is_websocket && would_open_websocket(request.version(), *response)) {
        co_return Response(make_error_code(ClientError::bad_response));
      }
      Passage passed{upload, std::move(*response)};
      auto passing = pass_on(std::move(passed), request.method(), state.upstreams[*index], options);
      co_return co_await std::move(passing);
    }
    error = response.error();
    if (const auto own = client_failure(error, *upload)) co_return Response(*own);
    if (is_upstream_failure(error, *upload, loop.now())) proxied.record_failure();
    if (!may_try_another(error, request, *upload)) break;
    // The client has repeated a request itself if nothing has asked for its body.
    if (error == ClientError::not_processed && upload->begun) proxied.try_again();
  }
  co_return failure(error);
}

ReverseProxy reverse_proxy(std::vector<std::string> upstreams, ReverseProxyOptions options) {
  auto state = std::make_shared<ReverseProxy::State>();
  for (const std::string& each : upstreams) {
    auto url = Url::parse(each);
    if (!url || url->has_query()) {
      throw std::invalid_argument("reverse_proxy: " + each + ": no URL of an upstream");
    }
    state->upstreams.push_back(std::move(*url));
  }
  const bool valid = !upstreams.empty() && options.attempts_max > 0 &&
                     (options.via.empty() || is_token(options.via)) &&
                     (options.strip_prefix.empty() || options.strip_prefix.front() == '/') &&
                     !options.strip_prefix.ends_with('/');
  if (!valid) throw std::invalid_argument("reverse_proxy: no upstream, or an invalid option");
  state->options = std::move(options);
  return ReverseProxy(std::move(state));
}

}  // namespace weir::http
