#include "weir/base/detail/type_name.hpp"

#include <gtest/gtest.h>

namespace weir::inject::type_name_test {
namespace {

struct Local {};
template <class T>
struct Box {};

TEST(Type, HasItsSourceName) {
  EXPECT_EQ(type<int>.name, "int");
  EXPECT_EQ(type<Type>.name, "weir::inject::Type");
  EXPECT_TRUE(type<Local>.name.ends_with("::Local")) << type<Local>.name;
  EXPECT_TRUE(type<Box<Type>>.name.ends_with("Box<weir::inject::Type>")) << type<Box<Type>>.name;
}

TEST(Type, HasTheSameNameAtRunTime) {
  EXPECT_EQ(type_name<int>(), "int");
  EXPECT_EQ(type_name<Type>(), "weir::inject::Type");
  EXPECT_EQ(type_name<Local>(), type<Local>.name);
}

TEST(Type, IsIdentifiedByItsAddress) {
  const Type* const again = &type<Local>;
  EXPECT_EQ(again, &type<Local>);
  EXPECT_NE(again, &type<Type>);
}

}  // namespace
}  // namespace weir::inject::type_name_test
