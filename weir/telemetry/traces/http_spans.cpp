// Spans of servers and clients, with the attributes of OpenTelemetry's conventions for HTTP.
#include "weir/telemetry/traces/http_spans.hpp"

#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "weir/http/client/client_request.hpp"
#include "weir/http/client/client_response.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/loop/detail/stall_detector.hpp"
#include "weir/telemetry/traces/trace_headers.hpp"

namespace weir::telemetry {
namespace {

/// Returns the traceparent of a request; empty if it is missing or there are several.
std::string_view parent_text(const http::RequestHead& head) noexcept {
  constexpr std::string_view name = "traceparent";
  std::string_view found;
  unsigned count = 0;
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const http::HeaderField field = head.header_at(index);
    if (field.name.size() != name.size()) [[likely]]
      continue;
    if (!http::equals_ignoring_case(field.name, name)) continue;
    found = field.value;
    ++count;
  }
  return count == 1 ? found : std::string_view();
}

/// Returns true if a request has one valid traceparent (W3C Trace Context §3.2).
bool has_parent(const http::Headers& headers) noexcept {
  std::optional<TraceParent> parent;
  for (const http::HeaderField field : headers) {
    if (!http::equals_ignoring_case(field.name, "traceparent")) continue;
    if (parent) return false;
    parent = parse_traceparent(field.value);
    if (!parent) return false;
  }
  return parent.has_value();
}

std::string_view method_of(http::Method method, std::string_view text) noexcept {
  return method == http::Method::other ? std::string_view("_OTHER") : text;
}

std::string_view version_text(http::Version version) noexcept {
  switch (version) {
    case http::Version::http_1_0:
      return "1.0";
    case http::Version::http_1_1:
      return "1.1";
    case http::Version::http_2:
      return "2";
  }
  return "";
}

void set_server_address(Span& span, std::string_view authority) {
  const std::size_t colon = authority.rfind(':');
  const bool has_port = colon != authority.npos && authority.find(']', colon) == authority.npos;
  span.set_attribute("server.address", authority.substr(0, has_port ? colon : authority.npos));
  if (!has_port) return;
  int port = 0;
  for (const char each : authority.substr(colon + 1)) {
    if (each < '0' || each > '9' || port > 65535) return;
    port = port * 10 + (each - '0');
  }
  span.set_attribute("server.port", port);
}

/// Returns the address without its port.
std::string address_text(const os::Address& address) {
  std::string text = address.to_string();
  if (!address.is_inet()) return text;
  text.resize(text.rfind(':'));
  return text.starts_with('[') ? text.substr(1, text.size() - 2) : text;
}

void set_status_code(Span& span, http::Status status, unsigned first_error) {
  const auto code = static_cast<unsigned>(code_of(status));
  span.set_attribute("http.response.status_code", code);
  if (code < first_error) return;
  span.set_attribute("error.type", std::to_string(code));
  span.set_status(SpanStatus::error);
}

/// Describes the request when it has ended, because its route is known then.
void describe(Span& span, const http::Request& request, const http::SentResponse& response) {
  const std::string_view method = method_of(request.method(), request.method_text());
  std::string name(method == "_OTHER" ? std::string_view("HTTP") : method);
  if (!request.route().empty()) name.append(" ").append(request.route());
  span.set_name(name);
  span.set_attribute("http.request.method", method);
  if (method == "_OTHER") {
    span.set_attribute("http.request.method_original", request.method_text());
  }
  span.set_attribute("url.scheme", request.tls() != nullptr ? "https" : "http");
  span.set_attribute("url.path", request.path_text());
  if (!request.route().empty()) span.set_attribute("http.route", request.route());
  span.set_attribute("network.protocol.version", version_text(request.version()));
  if (!request.authority().empty()) set_server_address(span, request.authority());
  span.set_attribute("client.address", address_text(request.peer_address()));
  if (const auto agent = request.header("User-Agent")) {
    span.set_attribute("user_agent.original", *agent);
  }
  set_status_code(span, response.status, 500);
  if (!response.complete) {
    span.set_attribute("error.type", "incomplete");
    span.set_status(SpanStatus::error, "the response was not sent whole");
  }
}

/// The span of a request, at an address that does not change.
struct RequestSpan {
  std::unique_ptr<Span> span;
};

/// The span of a client's request.
class ClientCall final : public http::ClientObserver::Call {
 public:
  explicit ClientCall(Span span) noexcept : span_(std::move(span)) {}
  void on_response(const http::ClientResponse& response) noexcept override {
    span_.set_attribute("network.protocol.version", version_text(response.version()));
    try {
      set_status_code(span_, response.status(), 400);
    } catch (const std::bad_alloc&) {
      // The span has no status then.
    }
    span_.end();
  }
  void on_websocket(bool is_http2) noexcept override {
    span_.set_attribute("network.protocol.version", std::string_view(is_http2 ? "2" : "1.1"));
    span_.set_attribute("http.response.status_code", is_http2 ? 200 : 101);
    span_.end();
  }
  void on_error(std::error_code error) noexcept override {
    span_.set_error(error);
    span_.end();
  }

 private:
  Span span_;
};

/// Sends the ids of a span. A tracestate that is invalid is left out.
void add_headers(http::ClientRequest& request, const ActiveSpan& span,
                 std::string_view trace_state) {
  const TraceParent parent{.trace_id = span.trace_id,
                           .parent_id = span.span_id,
                           .sampled = span.sampled,
                           .random = span.random};
  request.set_header("traceparent", parent.text());
  const auto state = TraceState::parse(trace_state);
  if (state && !state->empty()) request.set_header("tracestate", state->text());
}

}  // namespace

std::optional<http::Response> TraceRequests::before(http::Request& request) const {
  const TraceContext* const trace = request.trace();
  if (trace == nullptr || !tracer_->enabled()) return std::nullopt;
  const bool continues = tracer_->options().sampler.trusts_callers();
  const std::string_view text = continues ? parent_text(request.head()) : std::string_view();
  if (!text.empty()) {
    if (const auto parent = parse_traceparent(text)) {
      const ActiveSpan active = tracer_->continue_trace(*parent);
      trace->set_span(active);
      if (active.sampled) record(request, active, &parent->parent_id);
      return std::nullopt;
    }
  }
  const ActiveSpan active = tracer_->begin_trace();
  trace->set_span(active);
  if (active.sampled) [[unlikely]]
    record(request, active, nullptr);
  return std::nullopt;
}

/// Begins the span of a sampled request, which ends with the request.
[[gnu::noinline]] void TraceRequests::record(http::Request& request, const ActiveSpan& active,
                                             const SpanId* parent) const noexcept {
  try {
    std::string state;  // an invalid one is ignored
    if (parent != nullptr) {
      const std::string_view received = request.trace()->trace_state();
      state = TraceState::parse(received).value_or(TraceState()).text();
    }
    auto span = std::make_unique<Span>(Span::for_request(
        *tracer_, active, parent != nullptr ? *parent : SpanId{}, request.method_text(), state));
    Span& begun = *request.set(RequestSpan{std::move(span)}).span;
    std::ignore =
        request.peer_address();  // the connection keeps it, also when the client resets it
    request.on_end([&begun](http::Request& ended, const http::SentResponse& response) {
      try {
        describe(begun, ended, response);
      } catch (const std::bad_alloc&) {
        // The span ends with fewer attributes.
      }
      begun.end();
    });
  } catch (const std::bad_alloc&) {
    // The request is answered without a span.
  }
}

Span* span_of(const http::Request& request) noexcept {
  const auto* const found = request.get<RequestSpan>();
  return found == nullptr ? nullptr : found->span.get();
}

std::unique_ptr<http::ClientObserver::Call> TraceClient::begin(http::ClientRequest& request) {
  if (request.error()) return nullptr;
  if (tracer_.options().sampler.trusts_callers()) {
    if (!tracer_.enabled() || has_parent(request.headers())) return nullptr;
  }
  // A reverse proxy has passed on those of its client. A tracestate belongs to a valid traceparent
  // (W3C Trace Context §4).
  request.remove_header("traceparent");
  request.remove_header("tracestate");
  if (!tracer_.enabled()) return nullptr;
  const TraceContext* const trace = loop::CurrentActivity::trace();
  // A tracestate belongs to the traceparent that this trace continues, if there is one.
  const bool continues = trace != nullptr && trace->span().exists && trace->span().remote;
  const std::string_view method = method_of(request.method(), request.method_text());
  const bool is_known = request.method() != http::Method::other;
  Span span(tracer_, is_known ? method : "HTTP", SpanKind::client);
  try {
    add_headers(request, span.active(), continues ? trace->trace_state() : std::string_view());
    if (!span.recording()) return nullptr;
    const http::Url& url = request.url();
    span.set_attribute("http.request.method", method);
    if (!is_known) span.set_attribute("http.request.method_original", request.method_text());
    // The query may have secrets.
    span.set_attribute("url.full", std::string(url.origin()).append(url.path()));
    span.set_attribute("server.address", url.host());
    span.set_attribute("server.port", url.port());
    return std::make_unique<ClientCall>(std::move(span));
  } catch (const std::bad_alloc&) {
    return nullptr;  // the request is sent without a span
  }
}

}  // namespace weir::telemetry
