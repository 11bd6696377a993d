// Tests that small files are read whole, trimmed and limited.
#include "weir/os/detail/io/text_file.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "weir/os/test/temporary_tree.hpp"

namespace weir::os::text_file_test {
namespace {

TEST(TextFile, ReadsAllTextWithoutTrailingWhiteSpace) {
  const TemporaryTree tree;
  tree.write("a", "one\ntwo \n\n");
  EXPECT_EQ(read_text_file(tree.path("a")).value(), "one\ntwo");
  tree.write("empty", "\n");
  EXPECT_EQ(read_text_file(tree.path("empty")).value(), "");
  const std::string large(100'000, 'x');
  tree.write("large", large);
  EXPECT_EQ(read_text_file(tree.path("large")).value(), large);
}

TEST(TextFile, RemovesEveryKindOfWhiteSpaceOnlyAtTheEnd) {
  const TemporaryTree tree;
  for (const char* const end : {" ", "\t", "\r", "\n", "\r\n", " \t\r\n \t"}) {
    tree.write("a", std::string(" \tone\r\ntwo") + end);
    EXPECT_EQ(read_text_file(tree.path("a")).value(), " \tone\r\ntwo");
    tree.write("a", end);
    EXPECT_EQ(read_text_file(tree.path("a")).value(), "");
  }
}

TEST(TextFile, ReadsFilesThatReportNoSize) {
  EXPECT_TRUE(read_text_file("/proc/self/status")->starts_with("Name:"));
}

TEST(TextFile, AFileMayHaveExactlyTheLimit) {
  const TemporaryTree tree;
  tree.write("ten", "1234567890");
  EXPECT_EQ(read_text_file(tree.path("ten"), 10).value(), "1234567890");
  EXPECT_EQ(read_text_file(tree.path("ten"), 9).error(), Errc::limit_reached);
  const std::size_t usual = std::size_t{1} << 20;
  tree.write("large", std::string(usual, 'x'));
  EXPECT_EQ(read_text_file(tree.path("large"))->size(), usual);
  tree.write("larger", std::string(usual + 1, 'x'));
  EXPECT_EQ(read_text_file(tree.path("larger")).error(), Errc::limit_reached);
}

TEST(TextFile, AnEarlierInterruptedCallHasNoEffect) {
  const TemporaryTree tree;
  tree.write("a", "one");
  errno = EINTR;
  EXPECT_EQ(read_text_file(tree.path("a")).value(), "one");
}

TEST(TextFile, FailuresAreValues) {
  const TemporaryTree tree;
  EXPECT_EQ(read_text_file(tree.path("none")).error(), system_error(ENOENT));
  EXPECT_EQ(read_text_file(tree.root()).error(), system_error(EISDIR));
  tree.write("long", std::string(11, 'x'));
  EXPECT_EQ(read_text_file(tree.path("long"), 10).error(), Errc::limit_reached);
  EXPECT_EQ(read_text_file("/dev/zero", 5000).error(), Errc::limit_reached);
}

}  // namespace
}  // namespace weir::os::text_file_test
