// Tests of the cases about validators against servers with faults.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tools/weir/check/test/script_fixture.hpp"

namespace weir::check::validator_scripts_test {
namespace {

const std::string coded = "Content-Encoding: gzip\r\n";

class ValidatorScripts : public ScriptTest {
 protected:
  /// Answers HEAD with `to_head`, and other requests with `to_get`.
  std::string check_head(std::string_view name, const std::string& to_head,
                         const std::string& to_get) {
    return check_answer(name, [&](std::string_view request, unsigned) {
      return Reply{request.starts_with("HEAD ") ? to_head : to_get};
    });
  }
  /// Answers a condition with `to_condition`, and other requests with `whole`.
  std::string check_condition(std::string_view name, const std::string& whole,
                              const std::string& to_condition) {
    return check_answer(name, [&](std::string_view request, unsigned) {
      return Reply{request.contains("\r\nIf-") ? to_condition : whole};
    });
  }
  static std::string head(int status, std::string_view fields) {
    return "HTTP/1.1 " + std::to_string(status) + " X\r\n" + std::string(fields) + "\r\n";
  }
};

TEST_F(ValidatorScripts, HeadHasNoOtherFieldsThanGet) {
  const std::string get = response(200, "ETag: \"1\"\r\nContent-Type: text/plain\r\n");
  for (const std::string name : {"answers/head-fields", "answers/head-fields-gzip"}) {
    EXPECT_EQ(check_head(name, head(200, "ETag: \"1\"\r\n"), get), "passed: no other value");
    EXPECT_EQ(check_head(name, head(200, ""), get), "passed: no other value");
    EXPECT_EQ(check_head(name, head(200, "ETag: \"2\"\r\n"), get),
              "failed: ETag: \"2\" instead of \"1\"");
    EXPECT_EQ(check_head(name, head(200, coded), get),
              "failed: Content-Encoding: gzip instead of none");
    EXPECT_EQ(check_head(name, head(200, "Content-Length: 5\r\n"), get),
              "failed: Content-Length: 5 instead of 6");
    EXPECT_EQ(check_head(name, head(405, ""), get),
              "not applicable: 405: the server has another answer");
    EXPECT_EQ(check_head(name, "", get), "failed: no answer");
  }
  EXPECT_EQ(verdict_.sent, "HEAD / HTTP/1.1\r\nHost: a.test:8080\r\nAccept-Encoding: gzip\r\n\r\n");
}

TEST_F(ValidatorScripts, A304HasTheFieldsOfThe200) {
  const std::string whole = response(200, "ETag: W/\"v1\"\r\nVary: Accept-Encoding\r\n");
  const std::string right = "ETag: W/\"v1\"\r\nVary: Accept-Encoding\r\n";
  for (const std::string name :
       {"answers/not-modified-fields", "answers/not-modified-fields-gzip"}) {
    EXPECT_EQ(check_condition(name, whole, head(304, right)), "passed: 304");
    EXPECT_EQ(check_condition(name, whole, head(304, "ETag: \"v1\"\r\nVary: Accept-Encoding\r\n")),
              "failed: 304, ETag: \"v1\" instead of W/\"v1\"");
    EXPECT_EQ(check_condition(name, whole, head(304, "Vary: Accept-Encoding\r\n")),
              "failed: 304, ETag: none instead of W/\"v1\"");
    EXPECT_EQ(check_condition(name, whole, head(304, "ETag: W/\"v1\"\r\n")),
              "failed: 304, Vary: none instead of Accept-Encoding");
    EXPECT_EQ(check_condition(name, response(200, "Date: x\r\nETag: \"1\"\r\n"),
                              head(304, "ETag: \"1\"\r\n")),
              "failed: 304, no Date");
    EXPECT_EQ(check_condition(name, whole, whole),
              "not applicable: 200: the server ignores conditions here");
    EXPECT_EQ(check_condition(name, response(200), head(304, "")),
              "not applicable: the 200 has no validator");
    EXPECT_EQ(check_condition(name, response(200, "Last-Modified: x\r\n"), head(304, "")),
              "passed: 304");
    EXPECT_EQ(check_condition(name, whole, ""), "failed: no answer");
  }
}

TEST_F(ValidatorScripts, CodingsHaveOtherStrongTags) {
  const auto check_tags = [this](const std::string& plain, const std::string& gzip) {
    return check_answer("answers/tags-of-codings", [&](std::string_view request, unsigned) {
      return Reply{response(200, request.contains("Accept-Encoding") ? gzip : plain)};
    });
  };
  EXPECT_EQ(check_tags("ETag: \"1\"\r\n", "ETag: \"1-gzip\"\r\n" + coded), "passed: \"1-gzip\"");
  EXPECT_EQ(check_tags("ETag: \"1\"\r\n", "ETag: W/\"1\"\r\n" + coded), "passed: W/\"1\"");
  EXPECT_EQ(check_tags("ETag: W/\"1\"\r\n", "ETag: W/\"1\"\r\n" + coded), "passed: W/\"1\"");
  EXPECT_EQ(check_tags("ETag: \"1\"\r\n", "ETag: \"1\"\r\n" + coded), "failed: \"1\" for both");
  EXPECT_EQ(check_tags("ETag: \"1\"\r\n", "ETag: \"1\"\r\n"),
            "not applicable: no compressed form with an ETag");
  EXPECT_EQ(check_tags("", coded), "not applicable: no compressed form with an ETag");
}

TEST_F(ValidatorScripts, NoCopyOfARepeatedConditionDecides) {
  const std::string name = "answers/condition-repeated";
  const auto line_of = [](std::string_view request, std::string_view year) {
    return request.find(std::string(year) + " 00:00:00");
  };
  /// Answers 412 if the date that `decides` picks is in the past.
  const auto check_with = [&](bool (*decides)(std::size_t past, std::size_t future)) {
    return check_answer(name, [=](std::string_view request, unsigned) {
      const std::size_t past = line_of(request, "1990");
      const std::size_t future = line_of(request, "2100");
      return Reply{response(decides(past, future) ? 412 : 200)};
    });
  };
  constexpr auto none = std::string_view::npos;
  EXPECT_EQ(check_with([](std::size_t, std::size_t future) { return future == none; }),
            "passed: 200, 200");
  EXPECT_EQ(check_with([](std::size_t past, std::size_t future) { return past < future; }),
            "failed: 412, 200")
      << "the first one decides";
  EXPECT_EQ(check_with([](std::size_t past, std::size_t future) {
              return past > future || future == none;
            }),
            "failed: 200, 412")
      << "the last one decides";
  EXPECT_EQ(check_with([](std::size_t, std::size_t) { return false; }),
            "not applicable: 200: the server ignores conditions here");
  EXPECT_EQ(check_replies(name, {}), "failed: no answer");
}

}  // namespace
}  // namespace weir::check::validator_scripts_test
