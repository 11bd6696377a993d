// Tests of preconditions: the rules and the order of RFC 9110 §13.
#include "weir/web/files/preconditions.hpp"

#include <gtest/gtest.h>

#include <string>

#include "weir/http/test/http_request.hpp"

namespace weir::http::preconditions_test {
namespace {

using enum Precondition;

constexpr std::string_view before = "Sun, 06 Nov 1994 08:49:36 GMT";
constexpr std::string_view same = "Sun, 06 Nov 1994 08:49:37 GMT";
constexpr std::string_view later = "Sun, 06 Nov 1994 08:49:38 GMT";

Validators current() {
  return {.etag = "\"a\"", .last_modified = WallTime(std::chrono::seconds(784111777) + 500ms)};
}

std::string line(std::string_view name, std::string_view value) {
  return std::string(name).append(": ").append(value).append("\r\n");
}

Precondition result_of(std::string_view method, const std::string& lines,
                       const Validators& validators = current()) {
  const TextRequest request(std::string(method) + " /", {}, lines);
  return evaluate_preconditions(request.head(), validators);
}

TEST(Preconditions, PassWithoutHeaders) {
  EXPECT_EQ(result_of("GET", ""), passed);
  EXPECT_EQ(result_of("PUT", line("If", "x") + line("If-Range", "\"z\"")), passed);
}

TEST(Preconditions, IfMatchComparesStrongly) {
  for (const auto* method : {"GET", "HEAD", "PUT", "DELETE"}) {
    EXPECT_EQ(result_of(method, line("If-Match", "\"a\"")), passed);
    EXPECT_EQ(result_of(method, line("If-Match", "\"b\", \"a\"")), passed);
    EXPECT_EQ(result_of(method, line("If-Match", "\"b\"") + line("if-match", "\"a\"")), passed);
    EXPECT_EQ(result_of(method, line("If-Match", "*")), passed);
    EXPECT_EQ(result_of(method, line("If-Match", "\"b\"")), failed);
    EXPECT_EQ(result_of(method, line("If-Match", "W/\"a\"")), failed);
    EXPECT_EQ(result_of(method, line("If-Match", "a")), failed);
    EXPECT_EQ(result_of(method, line("If-Match", "")), failed);
  }
  Validators weak = current();
  weak.etag = "W/\"a\"";
  EXPECT_EQ(result_of("PUT", line("If-Match", "W/\"a\""), weak), failed);
}

TEST(Preconditions, StarDependsOnExistence) {
  const Validators missing{.exists = false};
  EXPECT_EQ(result_of("PUT", line("If-Match", "*"), missing), failed);
  EXPECT_EQ(result_of("PUT", line("If-None-Match", "*"), missing), passed);
  EXPECT_EQ(result_of("PUT", line("If-None-Match", "*")), failed);
  EXPECT_EQ(result_of("GET", line("If-None-Match", "*")), not_modified);
}

TEST(Preconditions, QueryReadsAsGetDoes) {
  EXPECT_EQ(result_of("QUERY", line("If-None-Match", "\"a\"")), not_modified);
  EXPECT_EQ(result_of("QUERY", line("If-None-Match", "\"b\"")), passed);
  EXPECT_EQ(result_of("PROPFIND", line("If-None-Match", "\"a\"")), failed);
}

TEST(Preconditions, IfUnmodifiedSinceComparesDates) {
  EXPECT_EQ(result_of("PUT", line("If-Unmodified-Since", before)), failed);
  EXPECT_EQ(result_of("GET", line("If-Unmodified-Since", before)), failed);
  EXPECT_EQ(result_of("PUT", line("If-Unmodified-Since", same)), passed);
  EXPECT_EQ(result_of("PUT", line("If-Unmodified-Since", later)), passed);
  EXPECT_EQ(result_of("PUT", line("If-Unmodified-Since", "yesterday")), passed);
  EXPECT_EQ(result_of("PUT", line("If-Unmodified-Since", before), {.etag = "\"a\""}), passed);
}

// RFC 9110 §5.3: a header that is no list comes once. Neither the first nor the last one counts.
TEST(Preconditions, DatesInTwoHeadersAreIgnored) {
  const std::string_view dates[] = {before, same, later, "yesterday", ""};
  for (const std::string_view first : dates) {
    for (const std::string_view second : dates) {
      SCOPED_TRACE(std::string(first).append(" | ").append(second));
      const auto unmodified =
          line("If-Unmodified-Since", first) + line("if-unmodified-since", second);
      const auto modified = line("If-Modified-Since", first) + line("if-modified-since", second);
      for (const auto* method : {"GET", "PUT", "DELETE"}) {
        EXPECT_EQ(result_of(method, unmodified), passed);
        EXPECT_EQ(result_of(method, unmodified + line("If-Unmodified-Since", before)), passed);
      }
      EXPECT_EQ(result_of("GET", modified), passed);
      EXPECT_EQ(result_of("HEAD", modified + line("If-Modified-Since", same)), passed);
    }
  }
}

TEST(Preconditions, IfNoneMatchComparesWeakly) {
  for (const auto* method : {"GET", "HEAD"}) {
    EXPECT_EQ(result_of(method, line("If-None-Match", "\"a\"")), not_modified);
    EXPECT_EQ(result_of(method, line("If-None-Match", "W/\"a\"")), not_modified);
    EXPECT_EQ(result_of(method, line("If-None-Match", "\"b\"")), passed);
  }
  EXPECT_EQ(result_of("GET", line("If-None-Match", "\"b\"") + line("If-None-Match", "\"a\"")),
            not_modified);
  EXPECT_EQ(result_of("PUT", line("If-None-Match", "\"a\"")), failed);
  EXPECT_EQ(result_of("POST", line("If-None-Match", "\"b\"")), passed);
  EXPECT_EQ(result_of("GET", line("If-None-Match", "\"a\""), {.etag = "W/\"a\""}), not_modified);
}

TEST(Preconditions, IfModifiedSinceHoldsForReadsOnly) {
  for (const auto* method : {"GET", "HEAD"}) {
    EXPECT_EQ(result_of(method, line("If-Modified-Since", before)), passed);
    EXPECT_EQ(result_of(method, line("If-Modified-Since", same)), not_modified);
    EXPECT_EQ(result_of(method, line("If-Modified-Since", later)), not_modified);
  }
  EXPECT_EQ(result_of("PUT", line("If-Modified-Since", same)), passed);
  EXPECT_EQ(result_of("GET", line("If-Modified-Since", "")), passed);
  EXPECT_EQ(result_of("GET", line("If-Modified-Since", same) + line("If-Modified-Since", same)),
            passed);
  EXPECT_EQ(result_of("GET", line("If-Modified-Since", same), {.etag = "\"a\""}), passed);
}

// RFC 9110 §13.2.2: a tag counts instead of a date, and If-Match before If-None-Match.
TEST(Preconditions, AreEvaluatedInTheOrderOfTheRfc) {
  const auto match = line("If-Match", "\"a\"");
  const auto mismatch = line("If-Match", "\"b\"");
  const auto none = line("If-None-Match", "\"a\"");
  const auto other = line("If-None-Match", "\"b\"");
  EXPECT_EQ(result_of("PUT", match + line("If-Unmodified-Since", before)), passed);
  EXPECT_EQ(result_of("PUT", mismatch + line("If-Unmodified-Since", later)), failed);
  EXPECT_EQ(result_of("GET", other + line("If-Modified-Since", same)), passed);
  EXPECT_EQ(result_of("GET", none + line("If-Modified-Since", before)), not_modified);
  EXPECT_EQ(result_of("GET", none + mismatch), failed);
  EXPECT_EQ(result_of("GET", none + match), not_modified);
  EXPECT_EQ(result_of("GET", none + line("If-Unmodified-Since", before)), failed);
  EXPECT_EQ(result_of("GET", line("If-Modified-Since", same) + match), not_modified);
}

TEST(Preconditions, AreIgnoredForMethodsWithoutARepresentation) {
  EXPECT_EQ(result_of("OPTIONS", line("If-Match", "\"b\"")), passed);
  EXPECT_EQ(result_of("TRACE", line("If-None-Match", "*")), passed);
}

TEST(Preconditions, AnswerWith304AndValidatorsOr412) {
  TextRequest fresh("GET /", {}, "If-None-Match: \"a\"\r\n");
  const auto unchanged = answer_preconditions(fresh.request(), current());
  ASSERT_TRUE(unchanged);
  EXPECT_EQ(unchanged->status(), Status::not_modified);
  EXPECT_EQ(unchanged->headers().get("ETag"), "\"a\"");
  EXPECT_EQ(unchanged->headers().get("Last-Modified"), same);
  TextRequest changed("PUT /", {}, "If-Match: \"b\"\r\n");
  const auto conflict = answer_preconditions(changed.request(), current());
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->status(), Status::precondition_failed);
  TextRequest plain("GET /");
  EXPECT_FALSE(answer_preconditions(plain.request(), current()));
}

bool applies(std::string_view condition, const Validators& validators = current()) {
  const TextRequest request("GET /", {}, line("If-Range", condition));
  return range_applies(request.head(), validators);
}

TEST(IfRange, NeedsTheCurrentVersion) {
  EXPECT_TRUE(range_applies(TextRequest("GET /").head(), current()));
  EXPECT_TRUE(applies("\"a\""));
  EXPECT_FALSE(applies("\"b\""));
  EXPECT_FALSE(applies("\"a\", \"b\""));
  EXPECT_TRUE(applies(same));
  EXPECT_FALSE(applies(before));
  EXPECT_FALSE(applies(later));
  EXPECT_FALSE(applies("yesterday"));
  EXPECT_FALSE(applies("*"));
}

TEST(IfRange, NeverAppliesIfItIsRepeated) {
  for (const std::string_view first : {std::string_view("\"a\""), same, before}) {
    for (const std::string_view second : {std::string_view("\"a\""), same, before}) {
      const TextRequest request("GET /", {}, line("If-Range", first) + line("if-range", second));
      EXPECT_FALSE(range_applies(request.head(), current())) << first << " | " << second;
    }
  }
}

TEST(IfRange, NeverMatchesAWeakTag) {
  EXPECT_FALSE(applies("W/\"a\""));
  EXPECT_FALSE(applies("W/\"a\"", {.etag = "W/\"a\""}));
  EXPECT_FALSE(applies("\"a\"", {.etag = "W/\"a\""}));
}

TEST(IfRange, NeverMatchesADateThatIsTooYoung) {
  Validators fresh = current();
  fresh.now = *fresh.last_modified + 100ms;
  EXPECT_FALSE(applies(same, fresh));
  EXPECT_TRUE(applies("\"a\"", fresh));
  fresh.now = *fresh.last_modified + 1s;
  EXPECT_TRUE(applies(same, fresh));
}

}  // namespace
}  // namespace weir::http::preconditions_test
