#include "weir/os/detail/process/symbol.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

namespace weir::os {
namespace {

// A function with internal linkage, like most functions of a program.
[[gnu::noinline]] int doubled(int number) {
  return 2 * number;
}

struct Shop {
  [[gnu::noinline]] static int price_of(int number) { return 3 * number; }
};

const void* address_of(int (*function)(int)) {
  return reinterpret_cast<const void*>(function);
}

TEST(Symbol, NamesFunctionsOfThisFileAndOfOthers) {
  EXPECT_EQ(function_name_at(address_of(&doubled)), "weir::os::(anonymous namespace)::doubled");
  EXPECT_EQ(function_name_at(address_of(&Shop::price_of)),
            "weir::os::(anonymous namespace)::Shop::price_of");
  EXPECT_EQ(function_name_at(reinterpret_cast<const void*>(&function_name_at)),
            "weir::os::function_name_at");
}

TEST(Symbol, NamesTheFunctionAroundAnAddress) {
  const auto* const inside = static_cast<const char*>(address_of(&doubled)) + 1;
  EXPECT_EQ(function_name_at(inside), "weir::os::(anonymous namespace)::doubled");
}

TEST(Symbol, NamesFunctionsOfSharedLibraries) {
  const std::string name = function_name_at(reinterpret_cast<const void*>(&::getppid));
  EXPECT_TRUE(name.ends_with("getppid")) << name;
}

TEST(Symbol, ReturnsTheOffsetOfAnAddressWithoutAName) {
  EXPECT_EQ(function_name_at(nullptr), "0x0");
  EXPECT_EQ(function_name_at(reinterpret_cast<const void*>(0x1f40)), "0x1f40");
  const auto data = std::make_unique<int>();
  EXPECT_TRUE(function_name_at(data.get()).starts_with("0x")) << function_name_at(data.get());
  // A variable of this program lies in its file, but in no function.
  static int variable = 0;
  const std::string program = program_invocation_short_name;
  EXPECT_TRUE(function_name_at(&variable).starts_with(program + "+0x"))
      << function_name_at(&variable);
}

TEST(Symbol, RemovesParametersAndPartsOfCoroutines) {
  EXPECT_EQ(readable_symbol("main"), "main");
  EXPECT_EQ(readable_symbol("no symbol at all"), "no symbol at all");
  EXPECT_EQ(readable_symbol(""), "");
  EXPECT_EQ(readable_symbol("()"), "()");
  EXPECT_EQ(readable_symbol("_Z4slowi"), "slow");
  EXPECT_EQ(readable_symbol("_Z4slowPFviE"), "slow");
  EXPECT_EQ(readable_symbol("_Z4slowi.resume"), "slow") << "clang's";
  EXPECT_EQ(readable_symbol("_Z4slowi.actor"), "slow") << "GCC's";
  EXPECT_EQ(readable_symbol("slow.resume"), "slow");
  EXPECT_EQ(readable_symbol("_ZNK4Shop5priceEv"), "Shop::price");
  EXPECT_EQ(readable_symbol("_Z5labelB5cxx11i"), "label");
  EXPECT_EQ(readable_symbol("_ZZ4mainENKUliE_clEi"), "main::{lambda(int)#1}::operator()");
}

}  // namespace
}  // namespace weir::os
