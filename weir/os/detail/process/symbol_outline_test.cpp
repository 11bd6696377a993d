// Tests of names in symbols of clang 19 that the library of GCC 12 cannot read.
#include "weir/os/detail/process/symbol_outline.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "weir/os/detail/process/symbol.hpp"

namespace weir::os::symbol_outline_test {
namespace {

using Named = std::pair<std::string, std::string>;

// Symbols of Weir's own tests, as clang 19 makes them.
const std::vector<Named> real_symbols{
    {"_ZN4weir5Scope5spawnITkNS_9AwaitableENS_10in_contextIvEEEEvT_", "weir::Scope::spawn<...>"},
    {"_ZN4weir4json6Reader4readITkNS0_7IntegerEjEEbRT_", "weir::json::Reader::read<...>"},
    {"_ZNSt8__detail5__modImTnT_Lm624ETnS1_Lm1ETnS1_Lm0EEES1_S1_", "std::__detail::__mod<...>"},
    {"_ZNSt4pairIiiEC2IiiQcl16_S_constructibleITL0__TL0_0_EEEEOT_OT0_",
     "std::pair<...>::pair<...>"},
    {"_ZNSt4spanIKSt4byteLm18446744073709551615EEC1EvQleplT0_Lj1ELj1E", "std::span<...>::span"}};

TEST(SymbolOutline, NamesRealSymbolsWithConstraints) {
  for (const auto& [symbol, name] : real_symbols) {
    EXPECT_EQ(outline_of_symbol(symbol), name) << symbol;
    EXPECT_EQ(readable_symbol(symbol), name) << symbol;
    EXPECT_EQ(readable_symbol(symbol + ".resume"), name) << "a part of a coroutine";
  }
}

TEST(SymbolOutline, NamesWhatLiesBehindTemplateArguments) {
  const std::vector<Named> symbols{
      {"_ZN4weir3BoxITkNS_4GoodEiE3putEv", "weir::Box<...>::put"},
      {"_ZN4weir3BoxITkNS_4GoodIcEEiE3putITnmLm7ETpTyJifEEEvv", "weir::Box<...>::put<...>"},
      {"_ZN3BoxITk4GoodPFvRA4_iMS0_KfEED2Ev", "Box<...>::~Box"},
      {"_ZN3BoxITk4GoodLZ4mainEEclEi", "Box<...>"},  // the literal is damaged
      {"_ZN3BoxITk4GoodL_Z4mainvEEclEi", "Box<...>::operator()"},
      {"_ZN3BoxITk4GoodDpT0_EixEi", "Box<...>::operator[]"},
      {"_ZN3BoxITk4GoodXsr3std5valueEEixEi", "Box<...>"},  // an expression
      {"_ZNK3BoxITk4GoodiEcvT_Ev", "Box<...>::operator <type>"},
      {"_ZZN4weir4timeITk4GoodiEEvT_ENKUliS0_E0_clEiS0_", "weir::time<...>::{lambda}::operator()"},
      {"_ZZN4weir4timeITk4GoodiEEvT_E3Own_1", "weir::time<...>::Own"},
      {"_ZN12_GLOBAL__N_14slowITk4GoodiEEvv", "slow<...>"},
      {"_ZL4slowITk4GoodiEvv", "slow<...>"},
      {"_Z4slowB5cxx11ITk4GoodiEvv", "slow<...>"},
      {"_ZStltITk4GoodiEvv", "std::operator<<...>"},
      {"_ZN3BoxITk4GoodJicEE3putEv", "Box<...>::put"},
      {"_ZN3BoxITpTyJiEE3putEv", "Box<...>::put"},
      {"_ZN3BoxITnmLm7EE3putEv", "Box<...>::put"},
      {"_ZN3BoxITk4GoodRA4_iE3putEv", "Box<...>::put"},
      {"_ZN3BoxITk4GoodM3AbciE3putEv", "Box<...>::put"},
      {"_ZN3BoxITk4GoodM3AbcFvvREE3putEv", "Box<...>::put"},
      {"_ZN3BoxITk4GoodDF16_E3putEv", "Box<...>::put"},
      {"_ZN3BoxITk4GoodNSs4ListEE3putEv", "Box<...>::put"},
      {"_ZN3BoxITk4GoodZ4mainvE3Own_1E3putEv", "Box<...>::put"},
      {"_ZZ4mainvEd_NKUlvE_clEv", "main::{lambda}::operator()"},
      {"_ZN3Box0E", "Box"},
      {"_ZN1SUt_4slowITk4GoodiEEvv", "S::{unnamed}::slow<...>"}};
  for (const auto& [symbol, name] : symbols) EXPECT_EQ(outline_of_symbol(symbol), name) << symbol;
}

TEST(SymbolOutline, IsEmptyWithoutAName) {
  for (const std::string symbol : {"", "_Z", "main", "_ZN", "_Z0", "_Z5abc", "_ZTI4Good",
                                   "_ZNS_1aE", "_Z99999999999999999999a", "ZN1a1bE"}) {
    EXPECT_EQ(outline_of_symbol(symbol), "") << symbol;
  }
}

TEST(SymbolOutline, ReadsDamagedSymbols) {
  for (const auto& each : real_symbols) {
    const std::string& symbol = each.first;
    for (std::size_t size = 0; size < symbol.size(); ++size) {
      const std::string cut = outline_of_symbol(symbol.substr(0, size));
      EXPECT_LE(cut.size(), 2 * symbol.size());
      std::string changed = symbol;
      for (const char letter : {'E', 'I', 'N', 'Z', 'S', 'T', '9', '_', 'J', 'L', 'D', 'F'}) {
        changed[size] = letter;
        EXPECT_LE(outline_of_symbol(changed).size(), 8 * symbol.size());
      }
    }
  }
}

TEST(SymbolOutline, LimitsHowDeepItReads) {
  for (const std::string deep : {"P", "FN", "Tp", "J", "A0_", "Dp", "N", "Z", "1aI", "M"}) {
    std::string symbol = "_Z1fI";
    for (int count = 0; count < 20'000; ++count) symbol += deep;
    EXPECT_EQ(outline_of_symbol(symbol), "f<...>") << deep;
  }
}

}  // namespace
}  // namespace weir::os::symbol_outline_test
