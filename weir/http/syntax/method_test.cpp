// Tests of request methods.
#include "weir/http/syntax/method.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace weir::http::method_test {
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

TEST(Method, MethodsWithAMeaningOfContentExpectIt) {
  for (const Method method : {Method::post, Method::put, Method::patch, Method::query}) {
    EXPECT_TRUE(expects_content(method)) << name_of(method);
  }
  for (const Method method : {Method::get, Method::head, Method::delete_, Method::options,
                              Method::trace, Method::connect, Method::other}) {
    EXPECT_FALSE(expects_content(method)) << name_of(method);
  }
}

TEST(Method, HasTheNamesAndPropertiesOfTheStandard) {
  struct Standard {
    Method method;
    std::string_view name;
    bool safe;
    bool idempotent;
  };
  for (const Standard& each :
       std::initializer_list<Standard>{{Method::get, "GET", true, true},
                                       {Method::head, "HEAD", true, true},
                                       {Method::post, "POST", false, false},
                                       {Method::put, "PUT", false, true},
                                       {Method::delete_, "DELETE", false, true},
                                       {Method::connect, "CONNECT", false, false},
                                       {Method::options, "OPTIONS", true, true},
                                       {Method::trace, "TRACE", true, true},
                                       {Method::patch, "PATCH", false, false},
                                       {Method::query, "QUERY", true, true},
                                       {Method::other, "", false, false}}) {
    EXPECT_EQ(name_of(each.method), each.name);
    EXPECT_EQ(method_of(each.name), each.method) << each.name;
    EXPECT_EQ(is_safe(each.method), each.safe) << each.name;
    EXPECT_EQ(is_idempotent(each.method), each.idempotent) << each.name;
    if (each.name.empty()) continue;
    const std::string name(each.name);
    EXPECT_EQ(method_of(name + "S"), Method::other) << name;
    EXPECT_EQ(method_of(name.substr(0, name.size() - 1)), Method::other) << name;
    EXPECT_EQ(method_of(name.substr(1)), Method::other) << name;
    EXPECT_EQ(method_of(name.substr(0, 1) + "x"), Method::other) << name;
  }
  EXPECT_EQ(method_count, 11U);
}

}  // namespace
}  // namespace weir::http::method_test
