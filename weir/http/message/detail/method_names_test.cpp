// Tests of MethodNames.
#include "weir/http/message/detail/method_names.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::http::method_names_test {
namespace {

TEST(MethodNames, KnownMethodsHaveTheirOwnNumbers) {
  MethodNames names;
  EXPECT_EQ(names.add("DELETE"), index_of(Method::delete_));
  EXPECT_EQ(names.find(Method::put, "PUT"), index_of(Method::put));
}

TEST(MethodNames, AssignsNumbersToAddedMethods) {
  MethodNames names;
  EXPECT_FALSE(names.find(Method::other, "PROPFIND"));
  const auto propfind = names.add("PROPFIND");
  const auto purge = names.add("PURGE");
  ASSERT_TRUE(propfind && purge);
  EXPECT_NE(propfind, purge);
  EXPECT_EQ(names.find(Method::other, "PROPFIND"), propfind);
  EXPECT_EQ(names.add("PROPFIND"), propfind);
  EXPECT_FALSE(names.find(Method::other, "propfind")) << "names are case-sensitive";
}

TEST(MethodNames, AddFailsWhenAllNumbersAreTaken) {
  MethodNames names;
  const std::size_t room = methods_max - index_of(Method::other);
  for (std::size_t count = 0; count < room; ++count) {
    EXPECT_TRUE(names.add("X" + std::to_string(count)));
  }
  EXPECT_FALSE(names.add("Y"));
  EXPECT_EQ(*names.add("X" + std::to_string(room - 1)), methods_max - 1);
  EXPECT_TRUE(names.add("GET"));
}

TEST(MethodNames, AllowIsSorted) {
  MethodNames names;
  const MethodSet purge = set_of(*names.add("PURGE"));
  const MethodSet acl = set_of(*names.add("ACL"));
  EXPECT_EQ(names.allow(purge | set_of(Method::post) | acl | set_of(Method::get)),
            "ACL, GET, POST, PURGE");
  EXPECT_EQ(names.allow(0), "");
}

TEST(MethodNames, NumbersFollowTheKnownMethods) {
  MethodNames names;
  MethodSet all = 0;
  for (std::size_t index = index_of(Method::other); index < methods_max; ++index) {
    const auto added = names.add("X" + std::to_string(index));
    ASSERT_EQ(added, index);
    EXPECT_EQ(names.find(Method::other, "X" + std::to_string(index)), index);
    all |= set_of(*added);
  }
  EXPECT_EQ(all, ~MethodSet{0} << 10);
  EXPECT_EQ(names.allow(set_of(MethodIndex{63}) | set_of(MethodIndex{10})), "X10, X63");
  EXPECT_EQ(names.allow(set_of(Method::get)), "GET");
  EXPECT_EQ(names.allow(set_of(Method::patch)), "PATCH");
  EXPECT_EQ(names.allow(set_of(MethodIndex{10})), "X10");
  EXPECT_EQ(set_of(Method::get), 1U);
  EXPECT_EQ(methods_max, 64U);
}

}  // namespace
}  // namespace weir::http::method_names_test
