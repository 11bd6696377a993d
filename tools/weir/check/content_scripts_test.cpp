// Tests of the cases with contents that a handler cannot use.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "tools/weir/check/test/script_fixture.hpp"

namespace weir::check::content_scripts_test {
namespace {

class ContentScripts : public ScriptTest {
 protected:
  /// Runs the case against a server that reads a whole request and then replies.
  std::string check_whole(std::string_view name, Reply reply) {
    received_.clear();
    return check(name, [&](tcp::Stream stream) { return serve(std::move(stream), reply); });
  }

  std::string received_;

 private:
  bool is_whole() const {
    const std::size_t end = received_.find("\r\n\r\n");
    if (end == received_.npos) return false;
    constexpr std::string_view length = "Content-Length: ";
    const std::size_t at = received_.find(length);
    if (at > end) return true;
    return received_.size() - end - 4 == std::stoull(received_.substr(at + length.size()));
  }
  Task<> serve(tcp::Stream stream, const Reply& reply) {
    while (!is_whole()) {
      const auto input = co_await stream.read();
      if (!input) co_return;
      received_ += input->text();
    }
    if (!reply.bytes.empty()) std::ignore = co_await stream.write(reply.bytes);
    if (reply.close) static_cast<void>(stream.finish_writing());
    co_await read_to_end(stream);
  }
};

TEST_F(ContentScripts, AFailureOfTheServerFails) {
  for (const std::string name :
       {"contents/form-bad-escape", "contents/json-arrays", "contents/type-none",
        "contents/query-nul", "contents/header-cookie"}) {
    for (const int status : {200, 303, 400, 413, 422, 499}) {
      EXPECT_EQ(check_whole(name, {response(status)}),
                "passed: " + std::to_string(status) + ", kept open");
    }
    for (const int status : {500, 502, 503, 599}) {
      EXPECT_EQ(
          check_whole(name, {response(status)}),
          "failed: " + std::to_string(status) + ", kept open: the input makes the server fail");
    }
    for (const int status : {401, 403, 404, 405, 415, 501}) {
      EXPECT_EQ(
          check_whole(name, {response(status)}),
          "not applicable: " + std::to_string(status) + ", kept open: the path does not read it");
    }
    EXPECT_EQ(check_whole(name, {"", true}), "failed: closed without an answer");
    EXPECT_EQ(check_whole(name, {}), "failed: no answer");
    EXPECT_EQ(check_whole(name, {"junk"}), "failed: bytes that are not a response");
    EXPECT_EQ(verdict_.expected, "an answer without a failure of the server (5xx)");
    EXPECT_EQ(verdict_.sent, received_);
  }
}

TEST_F(ContentScripts, SendTheContentsAsTheirKindDemands) {
  target_.path = "/items";
  target_.post_path = "/forms";
  const struct {
    const char* name;
    const char* sent;
  } cases[] = {
      {"form-half-escape",
       "POST /forms HTTP/1.1\r\nHost: a.test:8080\r\nContent-Type: "
       "application/x-www-form-urlencoded\r\nContent-Length: 4\r\n\r\na=%4"},
      {"json-null",
       "POST /forms HTTP/1.1\r\nHost: a.test:8080\r\nContent-Type: application/json\r\n"
       "Content-Length: 4\r\n\r\nnull"},
      {"type-none", "POST /forms HTTP/1.1\r\nHost: a.test:8080\r\nContent-Length: 3\r\n\r\na=b"},
      {"type-multipart",
       "POST /forms HTTP/1.1\r\nHost: a.test:8080\r\nContent-Type: multipart/form-data\r\n"
       "Content-Length: 3\r\n\r\na=b"},
      {"query-nul", "GET /items?a=%00b&%00=c HTTP/1.1\r\nHost: a.test:8080\r\n\r\n"},
      {"header-bearer",
       "GET /items HTTP/1.1\r\nHost: a.test:8080\r\nAuthorization: Bearer\r\n\r\n"},
  };
  for (const auto& each : cases) {
    check_whole("contents/" + std::string(each.name), {response(200)});
    EXPECT_EQ(received_, each.sent);
  }
  target_.headers = "Authorization: Bearer x\r\nA: b\r\n";
  for (const std::string name : {"form-half-escape", "query-nul", "header-accept"}) {
    check_whole("contents/" + name, {response(200)});
    EXPECT_TRUE(received_.contains("\r\nAuthorization: Bearer x\r\nA: b\r\n")) << received_;
  }
  target_.path = "/items?page=1";
  check_whole("contents/query-nul", {response(200)});
  EXPECT_TRUE(received_.starts_with("GET /items?page=1&a=%00b")) << received_;
}

TEST_F(ContentScripts, FitTheUsualLimitsOfServers) {
  const CaseRegistry registry;
  std::set<std::string> names;
  for (const Case& each : registry.cases()) {
    if (each.rule->name != "contents") continue;
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    const bool in_head = each.name.contains("/query-") || each.name.contains("/header-") ||
                         each.name.contains("/type-");
    EXPECT_LE(each.bytes.size(), in_head ? 7'000U : 64'000U) << each.name;
    EXPECT_EQ(check_whole(each.name, {response(400)}), "passed: 400, kept open") << each.name;
  }
  EXPECT_EQ(names.size(), 57U);
}

}  // namespace
}  // namespace weir::check::content_scripts_test
