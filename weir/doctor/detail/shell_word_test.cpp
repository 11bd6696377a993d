// Tests of words of a shell.
#include "weir/doctor/detail/shell_word.hpp"

#include <gtest/gtest.h>

namespace weir::doctor::shell_word_test {
namespace {

TEST(ShellWord, LeavesPlainTextsAlone) {
  for (const char* text : {"store.example", "/etc/tls/chain_1.pem", "::1", "a@b%c+d=e:f,g-h"}) {
    EXPECT_EQ(shell_word(text), text);
  }
}

TEST(ShellWord, QuotesAllOthers) {
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("host; rm -rf ~"), "'host; rm -rf ~'");
  EXPECT_EQ(shell_word("$(a)`b`\\\"\n"), "'$(a)`b`\\\"\n'");
  EXPECT_EQ(shell_word("it's"), R"('it'"'"'s')");
}

}  // namespace
}  // namespace weir::doctor::shell_word_test
