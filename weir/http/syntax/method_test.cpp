// Tests of request methods.
#include "weir/http/syntax/method.hpp"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

TEST(Method, FindsEveryKnownName) {
  for (std::size_t index = 0; index + 1 < method_count; ++index) {
    const auto method = static_cast<Method>(index);
    EXPECT_FALSE(name_of(method).empty());
    EXPECT_EQ(method_of(name_of(method)), method) << name_of(method);
  }
}

TEST(Method, NamesAreCaseSensitiveAndWhole) {
  for (const char* text : {"", "get", "Get", "GE", "GETS", "G", "DELET", "PATCHES", "PRI"}) {
    EXPECT_EQ(method_of(text), Method::other) << text;
  }
  EXPECT_EQ(name_of(Method::other), "");
}

TEST(Method, SafeAndIdempotentFollowTheStandard) {
  EXPECT_TRUE(is_safe(Method::get));
  EXPECT_FALSE(is_safe(Method::put));
  EXPECT_TRUE(is_idempotent(Method::put));
  EXPECT_TRUE(is_idempotent(Method::delete_));
  EXPECT_FALSE(is_idempotent(Method::post));
  EXPECT_FALSE(is_idempotent(Method::patch));
  EXPECT_FALSE(is_idempotent(Method::other));
}

}  // namespace
}  // namespace weir::http
