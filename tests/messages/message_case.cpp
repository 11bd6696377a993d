#include "tests/messages/message_case.hpp"

#include <cstddef>
#include <utility>

#include "weir/http.hpp"

namespace weir::tests {
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

std::vector<MessageCase> message_cases() {
  const std::string large(40'000, 'x');
  std::vector<MessageCase> cases;
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  add({.name = "GetWithoutABody",
       .request = {.target = "/echo/a"},
       .response = {.body = "", .fields = {.present = {{"Content-Length", "0"}}}},
       .handled = ExpectedRequest{.body = ""}});
  add({.name = "PostOfAKnownLength",
       .request = {.method = "POST", .target = "/echo", .message = {.body = {"a body", large}}},
       .response = {.body = "a body" + large},
       .handled = ExpectedRequest{.body = "a body" + large}});
  add({.name = "PostOfAnUnknownLength",
       .request = {.method = "POST",
                   .target = "/echo",
                   .message = {.body = {"a body", large}, .length = Length::undeclared}},
       .response = {.body = "a body" + large},
       .handled = ExpectedRequest{.body = "a body" + large}});
  for (const std::string method : {"PUT", "PATCH"}) {
    add({.name = "ABodyOfUnknownLengthWith" + method,
         .request = {.method = method,
                     .target = "/echo",
                     .message = {.body = {R"({"scroll_id":"abc"})"}, .length = Length::undeclared}},
         .response = {.body = R"({"scroll_id":"abc"})"},
         .handled = ExpectedRequest{.body = R"({"scroll_id":"abc"})"}});
  }
  add({.name = "HeadHasNoBody",
       .request = {.method = "HEAD", .target = "/echo"},
       .response = {.body = ""},
       .handled = ExpectedRequest{.body = ""}});
  add({.name = "NoContent",
       .request = {.target = "/none"},
       .response = {.status = 204, .body = "", .fields = {.absent = {"Content-Length"}}},
       .handled = {}});
  add({.name = "AProblemForAnUnknownPath",
       .request = {.target = "/unknown"},
       .response = {.status = 404,
                    .fields = {.present = {{"Content-Type", "application/problem+json"}}}},
       .handled = {}});
  add({.name = "ABodyAboveTheLimitOfItsRoute",
       .request = {.method = "POST",
                   .target = "/limited",
                   .message = {.body = {"more than ten bytes"}}},
       .response = {.status = 413},
       .handled = {}});
  add({.name = "ABodyOfUnknownLengthAboveTheLimit",
       .request = {.method = "POST",
                   .target = "/limited",
                   .message = {.body = {"more than ten bytes"}, .length = Length::undeclared}},
       .response = {.status = 413},
       .handled = ExpectedRequest{.end = End::cut}});
  add({.name = "AnErrorBeforeTheEndOfTheUpload",
       .request = {.method = "POST",
                   .target = "/refuse",
                   .message = {.body = {large}, .end = End::open}},
       .response = {.status = 409},
       .handled = {}});
  add({.name = "ATrailerOfAResponse",
       .request = {.target = "/trailer", .message = {.fields = {{"TE", "trailers"}}}},
       .response = {.body = "body", .trailers = {.present = {{"X-Sum", "4"}}}},
       .handled = {}});
  add({.name = "ATrailerOfARequest",
       .request = {.method = "POST",
                   .target = "/echo",
                   .message = {.body = {"body"},
                               .length = Length::undeclared,
                               .trailers = {{"X-Sum", "4"}}}},
       .handled = ExpectedRequest{.body = "body", .trailers = {.present = {{"X-Sum", "4"}}}}});
  return cases;
}

std::optional<std::string> exclusion_of(const MessageCase& test, const Carrier& carrier) {
  for (const Exclusion& each : test.exclusions) {
    if (each.matches(carrier)) return each.reason;
  }
  const SentMessage& message = test.request.message;
  const bool undeclared = message.length == Length::undeclared && !message.body.empty();
  if (carrier.protocol == Protocol::http_1_0 && undeclared) {
    return "HTTP/1.0 has no request body without a length";
  }
  if (carrier.protocol == Protocol::http_1_0 && !test.response.trailers.present.empty()) {
    return "HTTP/1.0 has no trailers";
  }
  return std::nullopt;
}

}  // namespace weir::tests
