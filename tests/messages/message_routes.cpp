// The handlers of the cases.
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "tests/messages/message_case.hpp"
#include "weir/compression/test/contents_fixture.hpp"
#include "weir/http.hpp"
#include "weir/http/message/detail/date.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/web.hpp"

namespace weir::tests::messages {
namespace {

using namespace std::chrono_literals;

BodyKind kind_of(const http::BodyLength& length) {
  switch (length.kind()) {
    case http::BodyLength::Kind::none:
      return BodyKind::none;
    case http::BodyLength::Kind::known:
      return BodyKind::known_length;
    case http::BodyLength::Kind::unknown:
      break;
  }
  return BodyKind::unknown_length;
}

/// Begins to record a request. Returns its index.
std::size_t add_request(HandlerRecord& record, const http::Request& request) {
  ReceivedRequest& added = record.requests.emplace_back();
  added.method = request.method_text();
  added.target = request.path();
  added.kind = kind_of(request.body_length());
  for (std::size_t each = 0; each < request.head().header_count(); ++each) {
    const http::HeaderField field = request.head().header_at(each);
    added.fields.emplace_back(field.name, field.value);
  }
  return record.requests.size() - 1;
}

/// Answers with the body of the request, and with its fields whose names begin with "x-".
Task<http::Response> echo(HandlerRecord& record, http::Request& request) {
  const std::size_t index = add_request(record, request);
  const auto received = [&]() -> ReceivedRequest& { return record.requests[index]; };
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) {
      received().end = End::cut;
      co_return http::Response(piece.error());
    }
    if (piece->empty()) break;
    received().body += to_text(*piece);
  }
  received().end = End::complete;
  for (const auto& field : request.trailers()) {
    received().trailers.emplace_back(field.name, field.value);
  }
  http::Response response = http::text(received().body);
  for (const auto& [name, value] : received().fields) {
    if (name.starts_with("x-") || name.starts_with("X-")) response.add_header(name, value);
  }
  co_return response;
}

// The streamed responses, and what is wrong with them.

Task<Result<>> write_whole(http::BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("7 bytes"));
  WEIR_CO_TRY(co_await sleep(10ms));
  co_return co_await sink.write(" whole");
}

Task<Result<>> write_too_much(http::BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("7 bytes"));
  WEIR_CO_TRY(co_await sleep(10ms));
  const std::string rest(20'000, 'x');
  co_return co_await sink.write(rest);
}

Task<Result<>> fail_early(http::BodySink&) {
  co_return fail(Errc::bad_configuration);
}

Task<Result<>> fail_late(http::BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("7 bytes"));
  WEIR_CO_TRY(co_await sleep(10ms));
  co_return fail(Errc::bad_input);
}

Task<Result<>> throw_late(http::BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("7 bytes"));
  WEIR_CO_TRY(co_await sleep(10ms));
  throw std::runtime_error("internal detail");
}

Task<Result<>> write_trailer(http::BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("body"));
  co_return sink.add_trailer("X-Sum", "4");
}

void add_stream_routes(http::Router& routes) {
  routes.get("/whole", [] { return http::stream(http::text_type, write_whole); });
  routes.get("/fail-early", [] { return http::stream(http::text_type, fail_early); });
  routes.get("/fail", [] { return http::stream(http::text_type, fail_late); });
  routes.get("/throw-late", [] { return http::stream(http::text_type, throw_late); });
  // A proxy passes these on before they have ended.
  routes.get("/too-short",
             [] { return http::stream(http::text_type, {.length = 20'000}, write_whole); });
  routes.get("/too-long",
             [] { return http::stream(http::text_type, {.length = 20'000}, write_too_much); });
  routes.get("/throw", [] {
    // It is no coroutine, and throws before there is a task.
    const auto write = [](http::BodySink&) -> Task<Result<>> {
      throw std::runtime_error("no task");
    };
    return http::stream(http::text_type, write);
  });
  routes.get("/trailer", [] { return http::stream(http::text_type, write_trailer); });
  routes.get("/sized-trailer",
             [] { return http::stream(http::text_type, {.length = 4}, write_trailer); });
}

// The routes that answer before they have the request.

Task<http::Response> read_a_part(http::Request& request) {
  std::ignore = co_await request.read();
  co_return http::Response(http::Status::too_many_requests);
}

/// Reads nothing, until the client leaves.
Task<http::Response> hold(HandlerRecord& record, http::Request&) {
  ++record.held;
  ManualResetEvent never;
  std::ignore = co_await never.wait();
  co_return http::Response(http::Status::ok);
}

void add_upload_routes(http::Router& routes, HandlerRecord& record) {
  const http::RouteOptions any{.body_max = 64 * 1024 * 1024};
  routes.post("/refuse", [] { return http::Response(http::Status::conflict); }, any);
  routes.post("/ignore", [] { return http::text("enough"); }, any);
  routes.post("/read-a-part", read_a_part, any);
  routes.post("/hold", [&record](http::Request& request) { return hold(record, request); }, any);
  routes.post("/limited", [&record](http::Request& request) { return echo(record, request); },
              {.body_max = 10});
}

// The routes that write while they read.

Task<Result<>> echo_while_reading(http::Request& request, http::BodySink& sink,
                                  HandlerRecord* record, std::size_t index) {
  for (;;) {
    const auto piece = co_await request.read();
    ReceivedRequest& received = record->requests[index];
    received.end = piece ? End::open : End::cut;
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) break;
    received.body += to_text(*piece);
    WEIR_CO_TRY(co_await sink.write(*piece));
  }
  record->requests[index].end = End::complete;
  for (const auto& field : request.trailers()) {
    record->requests[index].trailers.emplace_back(field.name, field.value);
    WEIR_CO_TRY(sink.add_trailer(field.name, field.value));
  }
  co_return {};
}

Task<Result<>> write_only(http::Request&, http::BodySink& sink) {
  co_return co_await sink.write("enough");
}

Task<Result<>> fail_while_reading(http::Request& request, http::BodySink& sink) {
  WEIR_CO_TRY(co_await request.read());
  co_return co_await fail_late(sink);
}

void add_duplex_routes(http::Router& routes, HandlerRecord& record) {
  const auto echo_back = [&record](http::Request& request) {
    const std::size_t index = add_request(record, request);
    return http::duplex(request, http::text_type, echo_while_reading, &record, index);
  };
  routes.post("/duplex", echo_back, {.body_max = 64 * 1024 * 1024});
  routes.post("/duplex-limited", echo_back, {.body_max = 10});
  routes.post("/duplex-unread", [](http::Request& request) {
    return http::duplex(request, http::text_type, write_only);
  });
  routes.post("/duplex-fail", [](http::Request& request) {
    return http::duplex(request, http::text_type, fail_while_reading);
  });
}

// Responses with a version.

http::Response tagged_page() {
  http::Response response = http::text(compression::words(10'000));
  response.set_header("ETag", "\"v1\"");
  return response;
}

/// Its coding is its own, whatever the client accepts.
http::Response coded_page() {
  http::Response response = http::text(compression::compressed(compression::Coding::gzip, "plain"));
  response.set_header("Content-Encoding", "gzip");
  response.set_header("ETag", "\"v\"");
  response.set_header("Accept-Ranges", "bytes");
  response.set_header("Repr-Digest", "sha-256=:AA==:");
  return response;
}

http::Response replace_version(const http::Request& request) {
  const auto changed = http::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT");
  const http::Validators current{.etag = "\"v1\"", .last_modified = changed};
  auto refused = http::answer_preconditions(request, current);
  return refused ? std::move(*refused) : http::text("replaced");
}

void add_version_routes(http::Router& routes) {
  auto pages = routes.group("/pages");
  pages.use(http::compress());
  pages.use(http::etag());
  pages.get("/tagged", tagged_page);
  routes.get("/coded", coded_page);
  routes.put("/version", replace_version);
}

Task<http::Response> pay(HandlerRecord& record, http::Request& request) {
  const std::size_t index = add_request(record, request);
  const auto body = co_await request.body();
  if (!body) co_return http::Response(body.error());
  record.requests[index].body = *body;
  record.requests[index].end = End::complete;
  co_return http::text("paid " + *body);
}

/// Begins its effect, and does not end before it is cancelled.
Task<http::Response> pay_slowly(HandlerRecord& record, http::Request& request) {
  const std::size_t index = add_request(record, request);
  ManualResetEvent never;
  const auto waited = co_await never.wait();
  if (waited) co_return http::text("paid");
  record.requests[index].end = End::cut;
  co_return http::Response(waited.error());
}

void add_key_routes(http::Router& routes, HandlerRecord& record) {
  auto keyed = routes.group("/keyed", http::idempotency_keys());
  keyed.post("/pay", [&record](http::Request& request) { return pay(record, request); });
  keyed.post("/slow", [&record](http::Request& request) { return pay_slowly(record, request); });
}

}  // namespace

http::Router message_routes(HandlerRecord& record) {
  http::Router routes;
  const auto echo_all = [&record](http::Request& request) { return echo(record, request); };
  routes.group("/echo").fallback(echo_all);
  routes.group("/decoded", http::decompress_requests()).fallback(echo_all);
  routes.group("/inside", http::cross_origin_protection({.safe_methods = true})).get("/page", [] {
    return http::text("inside");
  });
  routes.get("/moved", [] { return http::redirect("/elsewhere", http::Status::found); });
  routes.get("/none", [] { return http::no_content(); });
  routes.query("/found", [] { return http::text("found"); });
  routes.add("PROPFIND", "/found", [] { return http::text("properties"); });
  routes.get("/throw/{text}",
             [](std::string text) -> http::Response { throw std::runtime_error(text); });
  add_stream_routes(routes);
  add_upload_routes(routes, record);
  add_duplex_routes(routes, record);
  add_version_routes(routes);
  add_key_routes(routes, record);
  return routes;
}

}  // namespace weir::tests::messages
