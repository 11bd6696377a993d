#include "weir/base/detail/function_type.hpp"

#include <gtest/gtest.h>

namespace weir::function_type_test {
namespace {

int plain(int, const char*) noexcept {
  return 0;
}

struct Overloaded {
  void operator()(int) const {}
  void operator()(char) const {}
};
struct Nothing {};

template <class F>
FunctionTypeOf<F> type_of(F) {
  return {};
}

TEST(FunctionType, HasTheReturnAndParameterTypes) {
  const auto of_function = type_of(&plain);
  static_assert(std::is_same_v<decltype(of_function)::ReturnType, int>);
  static_assert(
      std::is_same_v<decltype(of_function)::ParameterTypes, Parameters<int, const char*>>);
  static_assert(of_function.callable_as_const);

  const auto of_lambda = type_of([](int& value) -> int& { return value; });
  static_assert(std::is_same_v<decltype(of_lambda)::ReturnType, int&>);
  static_assert(std::is_same_v<decltype(of_lambda)::ParameterTypes, Parameters<int&>>);
  static_assert(of_lambda.callable_as_const);
}

TEST(FunctionType, KnowsIfEachFormOfCallableIsConst) {
  struct Const {
    void operator()() const {}
  };
  struct ConstNoexcept {
    void operator()() const noexcept {}
  };
  struct ConstReference {
    void operator()() const& {}
  };
  struct ConstReferenceNoexcept {
    void operator()() const& noexcept {}
  };
  struct Mutable {
    void operator()() {}
  };
  struct MutableNoexcept {
    void operator()() noexcept {}
  };
  EXPECT_TRUE(FunctionTypeOf<void (*)()>::callable_as_const);
  EXPECT_TRUE(FunctionTypeOf<void (*)() noexcept>::callable_as_const);
  EXPECT_TRUE(FunctionTypeOf<Const>::callable_as_const);
  EXPECT_TRUE(FunctionTypeOf<ConstNoexcept>::callable_as_const);
  EXPECT_TRUE(FunctionTypeOf<ConstReference>::callable_as_const);
  EXPECT_TRUE(FunctionTypeOf<ConstReferenceNoexcept>::callable_as_const);
  EXPECT_FALSE(FunctionTypeOf<Mutable>::callable_as_const);
  EXPECT_FALSE(FunctionTypeOf<MutableNoexcept>::callable_as_const);
}

TEST(FunctionType, DetectsMutableCallables) {
  const auto of_mutable = type_of([count = 0]() mutable noexcept { return ++count; });
  static_assert(std::is_same_v<decltype(of_mutable)::ParameterTypes, Parameters<>>);
  static_assert(!of_mutable.callable_as_const);
}

TEST(FunctionType, IsVoidForAmbiguousTypes) {
  const auto generic = [](auto) {};
  static_assert(std::is_void_v<FunctionTypeOf<decltype(generic)>>);
  static_assert(std::is_void_v<FunctionTypeOf<Overloaded>>);
  static_assert(std::is_void_v<FunctionTypeOf<Nothing>>);
  static_assert(std::is_void_v<FunctionTypeOf<int>>);
}

}  // namespace
}  // namespace weir::function_type_test
