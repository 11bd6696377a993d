#include "weir/base/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <system_error>

#include "weir/base/time.hpp"

namespace weir::result_test {
namespace {

static_assert(is_result<Result<int>> && is_result<Result<>> && !is_result<int>);

Result<std::unique_ptr<int>> make(bool good) {
  if (!good) return fail(Errc::not_found);
  return std::make_unique<int>(3);
}

TEST(Result, HoldsAValueOrAnError) {
  const auto good = make(true);
  ASSERT_TRUE(good);
  EXPECT_EQ(**good, 3);
  EXPECT_EQ(make(false).error(), Errc::not_found);
  const Result<> nothing;
  EXPECT_TRUE(nothing);
  const Result<> failed = fail(system_error(EPIPE));
  EXPECT_EQ(failed.error(), std::errc::broken_pipe);
  Result<std::string> text = "text";
  text = fail(Errc::closed);
  EXPECT_FALSE(text);
  EXPECT_EQ(text.value_or("other"), "other");
}

TEST(Result, IsRecognizedByATrait) {
  EXPECT_TRUE(is_result<Result<int>>);
  EXPECT_TRUE(is_result<Result<>>);
  EXPECT_FALSE(is_result<int>);
}

template <class First, class Second>
Result<> check(bool good) {
  if (!good) return fail(Errc::conflict);
  return {};
}

Result<int> sum(bool good, bool first, bool second) {
  WEIR_TRY((check<int, int>(good)));
  WEIR_TRY(auto pointer, make(first));
  // clang-format off
  WEIR_TRY(const auto left, make(second)); WEIR_TRY(auto&& right, make(second));
  // clang-format on
  *right += *pointer;
  WEIR_TRY(pointer, make(true));
  return *left + *right + *pointer;
}

TEST(Try, ReturnsTheErrorOfTheFirstFailedResult) {
  EXPECT_EQ(sum(true, true, true), 12);
  EXPECT_EQ(sum(false, false, true).error(), Errc::conflict);
  EXPECT_EQ(sum(true, false, true).error(), Errc::not_found);
  EXPECT_EQ(sum(true, true, false).error(), Errc::not_found);
}

TEST(Try, IsOneStatementWithoutAValue) {
  const auto checked = [](bool first, bool second) -> Result<std::string> {
    if (first)
      WEIR_TRY((check<int, long>(second)));
    else
      return "else";
    return "checked";
  };
  EXPECT_EQ(checked(true, true), "checked");
  EXPECT_EQ(checked(true, false).error(), Errc::conflict);
  EXPECT_EQ(checked(false, false), "else");
}

TEST(Try, TakesExpressionsWithCommasAndLambdas) {
  const auto made = [](bool good) -> Result<int> {
    const auto call = [](auto function) { return function(); };
    WEIR_TRY(const std::string text, (call([&]() -> Result<std::string> {
               WEIR_TRY((check<int, int>(good)));
               return "four";
             })));
    return static_cast<int>(text.size());
  };
  EXPECT_EQ(made(true), 4);
  EXPECT_EQ(made(false).error(), Errc::conflict);
}

TEST(Try, ConvertsTheErrorToThatOfTheFunction) {
  struct Fault {
    Fault(std::string text) : why(std::move(text)) {}
    std::string why;
  };
  const auto inner = []() -> std::expected<int, std::string> {
    return std::unexpected(std::string("too small"));
  };
  const auto outer = [&]() -> std::expected<std::string, Fault> {
    WEIR_TRY(const int number, inner());
    return std::to_string(number);
  };
  EXPECT_EQ(outer().error().why, "too small");
}

TEST(Errc, HasACategoryAndAMessageForEachCode) {
  const std::error_code code = Errc::timed_out;
  EXPECT_STREQ(code.category().name(), "weir");
  EXPECT_EQ(code.message(), "timed out");
  EXPECT_EQ(code, std::errc::timed_out);
  EXPECT_EQ(make_error_code(Errc::cancelled), std::errc::operation_canceled);
  EXPECT_NE(make_error_code(Errc::closed), std::errc::timed_out);
  for (int value = 1; value <= 10; ++value) {
    EXPECT_EQ(error_category().message(value).find("unknown"), std::string::npos) << value;
  }
  EXPECT_EQ(error_category().message(99), "unknown error 99");
}

TEST(Errc, HasAStableValueAndItsOwnMessage) {
  struct {
    Errc code;
    int value;
    const char* message;
  } const cases[] = {
      {Errc::cancelled, 1, "cancelled"},
      {Errc::timed_out, 2, "timed out"},
      {Errc::end_of_stream, 3, "end of stream"},
      {Errc::closed, 4, "closed"},
      {Errc::limit_reached, 5, "limit reached"},
      {Errc::bad_input, 6, "malformed input"},
      {Errc::unsupported, 7, "not supported here"},
      {Errc::not_found, 8, "not found"},
      {Errc::conflict, 9, "conflict"},
      {Errc::bad_configuration, 10, "bad configuration"},
  };
  for (const auto& each : cases) {
    const std::error_code code = each.code;
    EXPECT_EQ(code.value(), each.value);
    EXPECT_EQ(code.message(), each.message);
    EXPECT_EQ(code.category(), error_category()) << each.message;
    if (each.value <= 2) continue;
    EXPECT_EQ(code.default_error_condition(), std::error_condition(each.value, error_category()))
        << each.message;
  }
}

TEST(After, SaturatesAtTheLimits) {
  constexpr Instant noon{std::chrono::hours(12)};
  EXPECT_EQ(after(noon, 1s), noon + 1s);
  EXPECT_EQ(after(noon, -1s), noon - 1s);
  EXPECT_EQ(after(noon, Duration::max()), never);
  EXPECT_EQ(after(never, 1ns), never);
  EXPECT_EQ(after(never - 2ns, 1ns), never - 1ns);
  EXPECT_EQ(after(never - 2ns, 2ns), never);
  EXPECT_EQ(after(never - 2ns, 3ns), never);
  EXPECT_EQ(after(never, 0ns), never);
  EXPECT_EQ(after(Instant::min() + 2ns, -1ns), Instant::min() + 1ns);
  EXPECT_EQ(after(Instant::min() + 2ns, -2ns), Instant::min());
  EXPECT_EQ(after(Instant::min() + 2ns, -3ns), Instant::min());
  EXPECT_EQ(after(Instant::min(), 0ns), Instant::min());
  EXPECT_EQ(after(Instant::min(), -1ns), Instant::min());
  EXPECT_EQ(after(noon, Duration::min()), noon + Duration::min());
}

}  // namespace
}  // namespace weir::result_test
