// Tests the example of compression over real sockets, with curl as the client if it is installed.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/client.hpp"
#include "tests/server.hpp"
#include "weir/compression.hpp"

namespace weir::tests::compression_test {
namespace {

class ExampleCompression : public EachBackend {};

std::string with_encoding(std::string_view path, std::string_view accepted) {
  return "GET " + std::string(path) +
         " HTTP/1.1\r\nHost: a\r\nAccept-Encoding: " + std::string(accepted) + "\r\n\r\n";
}

std::string decompressed(compression::Coding coding, std::string_view data) {
  auto by = compression::Decompressor::make(coding);
  std::string content(1 << 20, '\0');
  const auto progress = by->decompress(to_bytes(data), std::as_writable_bytes(std::span(content)));
  EXPECT_TRUE(progress && progress->complete && by->finish());
  content.resize(progress ? progress->produced : 0);
  return content;
}

TEST_P(ExampleCompression, SendsTheSameCatalogueInEachCoding) {
  Server server("compression", GetParam());
  const auto plain = server.exchange(get("/catalogue"));
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_GT(plain->body.size(), 8000u);
  for (const auto coding :
       {compression::Coding::gzip, compression::Coding::brotli, compression::Coding::zstd}) {
    if (!is_available(coding)) continue;
    const auto name = name_of(coding);
    const auto coded = server.exchange(with_encoding("/catalogue", name));
    ASSERT_TRUE(coded) << coded.error().message();
    EXPECT_EQ(coded->header("Content-Encoding"), name);
    EXPECT_LT(coded->body.size(), plain->body.size() / 3);
    EXPECT_EQ(decompressed(coding, coded->body), plain->body);
    const auto report = server.exchange(with_encoding("/report", name));
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(decompressed(coding, report->body), "line 1\nline 2\nline 3\n");
  }
  const auto account = server.exchange(with_encoding("/account/ann", "gzip"));
  ASSERT_TRUE(account) << account.error().message();
  EXPECT_FALSE(account->has_header("Content-Encoding"));
}

TEST_P(ExampleCompression, AgreesWithCurl) {
  const std::string curl = in_path("curl");
  if (curl.empty()) GTEST_SKIP() << "curl is not installed";
  Server server("compression", GetParam());
  const auto plain = server.exchange(get("/catalogue"));
  ASSERT_TRUE(plain) << plain.error().message();
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port());
  Process features(curl, {"--version"});
  features.wait_for_exit();
  for (const std::string_view coding : {"gzip", "br", "zstd"}) {
    const std::string_view feature = coding == "gzip" ? "libz" : coding == "br" ? "brotli" : "zstd";
    if (features.output().find(feature) == std::string::npos) continue;
    for (const auto* path : {"/catalogue", "/report"}) {
      Process client(curl, {"-sS", "--compressed", "-H", "Accept-Encoding: " + std::string(coding),
                            url + path});
      EXPECT_EQ(client.wait_for_exit(), 0) << client.errors();
      EXPECT_EQ(client.output(),
                std::string_view(path) == "/report" ? "line 1\nline 2\nline 3\n" : plain->body);
    }
  }
}

TEST_P(ExampleCompression, ReadsACompressedRequest) {
  Server server("compression", GetParam());
  compression::CompressorPool pool;
  for (const auto coding :
       {compression::Coding::gzip, compression::Coding::brotli, compression::Coding::zstd}) {
    if (!is_available(coding)) continue;
    const std::string large(500'000, 'a');
    const auto body = pool.compress({coding, 1}, to_bytes(large));
    ASSERT_TRUE(body.has_value());
    const std::string head =
        "POST /measure HTTP/1.1\r\nHost: a\r\nContent-Encoding: " + std::string(name_of(coding)) +
        "\r\nContent-Length: ";
    const auto answer = server.exchange(
        head + std::to_string(body->size()) + "\r\n\r\n" + std::string(body->text()), "POST");
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->body, "500000 bytes");
    const auto broken = server.exchange(head + "5\r\n\r\nabcde", "POST");
    ASSERT_TRUE(broken) << broken.error().message();
    EXPECT_EQ(broken->status, 400);
  }
}

INSTANTIATE_TEST_SUITE_P(On, ExampleCompression, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::compression_test
