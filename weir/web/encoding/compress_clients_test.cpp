// Tests that the clients of compress() share its compressors.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "weir/compression/coding.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/web/encoding/compress.hpp"
#include "weir/web/middleware/trusted_proxies.hpp"

namespace weir::http::compress_clients_test {
namespace {

using namespace std::chrono_literals;

Task<Result<>> write_word(BodySink& sink) {
  co_return co_await sink.write("hello");
}

Task<Result<>> write_slowly(BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("hello"));
  co_return co_await sleep(1s);
}

class CompressClients : public HttpTest {
 protected:
  void SetUp() override {
    if (!is_available(compression::Coding::gzip)) GTEST_SKIP() << "the build is without zlib";
    CompressOptions options;
    options.streams_max = 8;
    routes_.use<ClientAddress>(trusted_proxies({.proxies = {"127.0.0.1"}}));
    routes_.use(compress(options));
    routes_.get("/short", [] { return stream("text/plain", write_word); });
    routes_.get("/slow", [] { return stream("text/plain", write_slowly); });
    serve();
  }
  /// Returns true if the response over a new connection has a coding.
  bool is_coded(const std::string& path, const std::string& address) {
    const std::string answer =
        talk(connect(), "GET " + path + " HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " + address +
                            "\r\nAccept-Encoding: gzip\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
    return answer.contains("Content-Encoding: gzip");
  }
};

TEST_F(CompressClients, OneNetworkWithManyConnectionsLeavesCompressorsForOthers) {
  EXPECT_TRUE(is_coded("/short", "192.0.2.9"));
  std::size_t coded = 0;
  for (int count = 0; count < 30; ++count) coded += is_coded("/slow", "192.0.2.1") ? 1 : 0;
  EXPECT_EQ(coded, 4U);
  EXPECT_FALSE(is_coded("/short", "192.0.2.1"));
  EXPECT_TRUE(is_coded("/short", "192.0.2.9"));
}

TEST_F(CompressClients, TheConnectionsOfASingleNetworkUseAllCompressors) {
  std::size_t coded = 0;
  for (int count = 0; count < 30; ++count) coded += is_coded("/slow", "192.0.2.1") ? 1 : 0;
  EXPECT_EQ(coded, 8U);
}

}  // namespace
}  // namespace weir::http::compress_clients_test
