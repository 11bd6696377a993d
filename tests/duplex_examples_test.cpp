// Tests the examples whose responses are written while the request arrives, over real sockets, on
// every backend.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "tests/client.hpp"
#include "tests/server.hpp"

namespace weir::tests::duplex_examples_test {
namespace {

/// Returns a chunk of one line, whose length has one hexadecimal digit.
std::string chunk_of(std::string_view line) {
  return std::string(1, "0123456789abcdef"[line.size()]) + "\r\n" + std::string(line) + "\r\n";
}

class ExampleLineEcho : public EachBackend {};

TEST_P(ExampleLineEcho, AnswersEachLineBeforeTheNext) {
  Server server("line_echo", GetParam());
  Client client = server.connect();
  ASSERT_TRUE(client.send("POST /shout HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"));
  const auto head = client.read_until("\r\n\r\n");
  ASSERT_TRUE(head) << head.error().message();
  EXPECT_TRUE(head->starts_with("HTTP/1.1 200 OK\r\n"));
  for (const auto& [line, answer] : {std::pair{"one\n", "ONE\n"}, {"two\n", "TWO\n"}}) {
    ASSERT_TRUE(client.send(chunk_of(line)));
    const auto answered = client.read_until("\n\r\n");
    ASSERT_TRUE(answered) << answered.error().message();
    EXPECT_EQ(*answered, chunk_of(answer));
  }
  ASSERT_TRUE(client.send(chunk_of("half") + "0\r\n\r\n"));
  const auto rest = client.read_until("0\r\n\r\n");
  ASSERT_TRUE(rest) << rest.error().message();
  EXPECT_EQ(*rest, chunk_of("HALF") + "0\r\n\r\n");
  ASSERT_TRUE(client.send(get("/none")));
  const auto next = client.read();
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_EQ(next->status, 404) << "the connection stays open";
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}
INSTANTIATE_TEST_SUITE_P(On, ExampleLineEcho, testing::ValuesIn(all_backends), name_of);

class ExampleUploadProgress : public EachBackend {};

TEST_P(ExampleUploadProgress, TellsTheProgressOfAnUpload) {
  Server server("upload_progress", GetParam());
  Client client = server.connect();
  const std::string part(300'000, 'u');
  ASSERT_TRUE(client.send("POST /uploads HTTP/1.1\r\nHost: a\r\nContent-Length: 600000\r\n\r\n"));
  ASSERT_TRUE(client.send(part));
  const auto begun = client.read_until(" of 600000 bytes\n\r\n");
  ASSERT_TRUE(begun) << begun.error().message();
  ASSERT_TRUE(client.send(part));
  const auto rest = client.read_until("0\r\n\r\n");
  ASSERT_TRUE(rest) << rest.error().message();
  EXPECT_TRUE(rest->ends_with("600000 of 600000 bytes\n\r\n0\r\n\r\n")) << *rest;
  client.close();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}
INSTANTIATE_TEST_SUITE_P(On, ExampleUploadProgress, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::duplex_examples_test
