// Tests that what runs behind a middleware gets the body that the middleware has collected.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "weir/compression/test/contents_fixture.hpp"
#include "weir/http/client/client.hpp"
#include "weir/web/encoding/decompress_requests.hpp"
#include "weir/web/forms/multipart.hpp"
#include "weir/web/middleware/idempotency_keys.hpp"
#include "weir/web/test/proxy_fixture.hpp"

namespace weir::http::collected_body_test {
namespace {

using compression::Coding;
using compression::compressed;

constexpr std::string_view form =
    "--XX\r\nContent-Disposition: form-data; name=a\r\n\r\ntext\r\n--XX--\r\n";

/// Collects the body, as a check of its signature does.
Task<Response> collect(Request& request, Next next) {
  const auto body = co_await request.body_view();
  if (!body) co_return Response(body.error());
  co_return co_await next(request);
}

Task<Response> by_pieces(Request& request) {
  std::string pieces;
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) co_return Response(piece.error());
    if (piece->empty()) co_return text(std::move(pieces));
    pieces += to_text(*piece);
  }
}
Task<Response> whole(Request& request) {
  const auto body = co_await request.body();
  if (!body) co_return Response(body.error());
  co_return text(*body);
}
Task<Result<Response>> first_part(Multipart parts) {
  WEIR_CO_TRY(Part* const part, co_await parts.next_part());
  WEIR_CO_TRY(std::string content, co_await part->text());
  WEIR_CO_TRY(co_await parts.next_part());
  co_return text(std::move(content));
}

struct Carriers {
  Version client;
  Version upstream;
};

class CollectedBodyTest : public ProxyFixture, public testing::WithParamInterface<Carriers> {
 protected:
  static bool is_http2(Version version) { return version == Version::http_2; }

  /// Adds the routes of one middleware, which collects the bodies.
  template <class M>
  void add_group(const std::string& path, M middleware) {
    auto group = routes_.group(path, std::move(middleware));
    group.post("/pieces", by_pieces);
    group.post("/whole", whole);
    group.post("/form", first_part);
    group.group("/decoded", decompress_requests()).post("/pieces", by_pieces);
    group.group("/proxied").fallback([this](Request& request) { return (*proxy_)(request); });
  }

  /// Returns the answer to a POST, whose body has a length or not.
  static Task<std::string> answer_to(Client& client, const std::string& path,
                                     std::string_view content, bool has_length) {
    ClientRequest request(Method::post, "http://127.0.0.1" + path);
    request.set_header("Authorization", "Bearer ann");
    request.set_header("Idempotency-Key", path + (has_length ? "-known" : "-unknown"));
    if (path.contains("/decoded")) request.set_header("Content-Encoding", "gzip");
    http::Body body(content);
    if (!has_length) {
      body = http::Body(StreamFunction([content](BodySink& sink) { return sink.write(content); }));
    }
    request.set_body("multipart/form-data; boundary=XX", std::move(body));
    return outcome_of(client, std::move(request));
  }
};

TEST_P(CollectedBodyTest, ReachesWhatRunsBehindTheMiddleware) {
  if (is_http2(GetParam().client)) plain_http2_ = PlainHttp2::prior_knowledge;
  add_group("/keys", idempotency_keys());
  add_group("/collected", collect);
  Router inner;
  inner.fallback(by_pieces);
  ReverseProxyOptions options;
  options.client.plain_http2 = is_http2(GetParam().upstream);
  const auto use = [](Client&) -> Task<> {
    ClientOptions own;
    own.plain_http2 = is_http2(GetParam().client);
    Client client(std::move(own));
    const std::string coded = compressed(Coding::gzip, form);
    for (const std::string group : {"/keys", "/collected"}) {
      for (const bool has_length : {true, false}) {
        SCOPED_TRACE(group + (has_length ? " known" : " unknown"));
        EXPECT_EQ(co_await answer_to(client, group + "/pieces", form, has_length), form);
        EXPECT_EQ(co_await answer_to(client, group + "/whole", form, has_length), form);
        EXPECT_EQ(co_await answer_to(client, group + "/form", form, has_length), "text");
        EXPECT_EQ(co_await answer_to(client, group + "/decoded/pieces", coded, has_length), form);
        EXPECT_EQ(co_await answer_to(client, group + "/proxied", form, has_length), form);
      }
    }
  };
  with_inner_server(inner, std::move(options), use,
                    is_http2(GetParam().upstream) ? PlainHttp2::only : PlainHttp2::off);
}

std::string name_of(const testing::TestParamInfo<Carriers>& info) {
  const auto text = [](Version version) { return version == Version::http_2 ? "Http2" : "Http1"; };
  return std::string(text(info.param.client)) + "To" + text(info.param.upstream);
}

INSTANTIATE_TEST_SUITE_P(All, CollectedBodyTest,
                         testing::Values(Carriers{Version::http_1_1, Version::http_1_1},
                                         Carriers{Version::http_1_1, Version::http_2},
                                         Carriers{Version::http_2, Version::http_1_1},
                                         Carriers{Version::http_2, Version::http_2}),
                         name_of);

}  // namespace
}  // namespace weir::http::collected_body_test
