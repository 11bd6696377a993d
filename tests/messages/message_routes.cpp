// The handlers of the cases.
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/messages/message_case.hpp"
#include "weir/http.hpp"

namespace weir::tests::messages {
namespace {

Task<http::Response> echo(std::vector<ReceivedRequest>& received, http::Request& request) {
  const std::size_t index = received.size();
  received.push_back({.method = std::string(request.method_text()),
                      .target = request.path(),
                      .fields = {},
                      .body = {},
                      .trailers = {}});
  for (std::size_t each = 0; each < request.head().header_count(); ++each) {
    const http::HeaderField field = request.head().header_at(each);
    received[index].fields.emplace_back(field.name, field.value);
  }
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) {
      received[index].end = End::cut;
      co_return http::Response(piece.error());
    }
    if (piece->empty()) break;
    received[index].body += to_text(*piece);
  }
  received[index].end = End::complete;
  for (const auto& field : request.trailers()) {
    received[index].trailers.emplace_back(field.name, field.value);
  }
  co_return http::text(received[index].body);
}

http::Response fail_after_seven_bytes() {
  return http::stream("text/plain", [](http::BodySink& sink) -> Task<Result<>> {
    WEIR_CO_TRY(co_await sink.write("7 bytes"));
    co_return fail(Errc::bad_input);
  });
}

/// Its stream function is no coroutine, and throws before there is a task.
http::Response throw_before_the_task() {
  return http::stream(
      "text/plain", [](http::BodySink&) -> Task<Result<>> { throw std::runtime_error("no task"); });
}

http::Response add_trailer() {
  return http::stream("text/plain", [](http::BodySink& sink) -> Task<Result<>> {
    WEIR_CO_TRY(co_await sink.write("body"));
    co_return sink.add_trailer("X-Sum", "4");
  });
}

}  // namespace

http::Router message_routes(std::vector<ReceivedRequest>& received) {
  http::Router routes;
  routes.group("/echo").fallback([&received](http::Request& request) -> Task<http::Response> {
    return echo(received, request);
  });
  routes.get("/fail", &fail_after_seven_bytes);
  routes.get("/throw", &throw_before_the_task);
  routes.get("/trailer", &add_trailer);
  routes.get("/none", [] { return http::no_content(); });
  routes.post("/refuse", [] { return http::Response(http::Status::conflict); });
  routes.post("/limited",
              [&received](http::Request& request) -> Task<http::Response> {
                return echo(received, request);
              },
              {.body_max = 10});
  return routes;
}

}  // namespace weir::tests::messages
