// Tests of the verb `weir serve`.
#include "tools/weir/serve_command.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tools/weir/command_fixture.hpp"
#include "weir/http/test/http_request.hpp"

namespace weir::serve {
namespace {

const WallTime example{std::chrono::seconds(784111777)};

std::string line(std::string_view method_and_target, const http::Response& response) {
  http::TextRequest request(method_and_target);
  std::string text = access_line(request.request(), response, example);
  return text.substr(text.find(" - - ") + 5);
}

TEST(ServeCommand, LogsRequestsInTheCommonFormat) {
  EXPECT_EQ(line("GET /a%20b?c=1", http::text("hello")),
            "[06/Nov/1994:08:49:37 +0000] \"GET /a%20b?c=1 HTTP/1.1\" 200 5");
  EXPECT_EQ(line("HEAD /", http::text("hello")),
            "[06/Nov/1994:08:49:37 +0000] \"HEAD / HTTP/1.1\" 200 -");
  EXPECT_EQ(line("GET /", http::Response(http::Status::not_found)),
            "[06/Nov/1994:08:49:37 +0000] \"GET / HTTP/1.1\" 404 -");
}

TEST(ServeCommand, NeedsAFolder) {
  std::string output;
  EXPECT_EQ(run_command(&add_command, "serve", {}, output), 2);
  EXPECT_EQ(run_command(&add_command, "serve", {"/no/such/folder"}, output), 2);
  EXPECT_NE(output.find("/no/such/folder"), output.npos) << output;
}

}  // namespace
}  // namespace weir::serve
