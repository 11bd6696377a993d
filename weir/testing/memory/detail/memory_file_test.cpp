// Tests of the bytes of a simulated file: holes, pages, the limits of offsets and of space.
#include "weir/testing/memory/detail/memory_file.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

namespace weir::memory_file_test {
namespace {

constexpr std::size_t page = MemoryFileBytes::page_bytes;

class MemoryFileBytesTest : public testing::Test {
 protected:
  std::string read(const MemoryFileBytes& bytes, std::size_t count, std::uint64_t offset) {
    std::string text(count, '#');
    text.resize(bytes.read(std::as_writable_bytes(std::span(text)), offset));
    return text;
  }
  std::size_t write(std::string_view text, std::uint64_t offset) {
    return bytes_.write(to_bytes(text), offset).value();
  }

  MemoryDisk disk_;
  MemoryFileBytes bytes_{disk_};
};

TEST_F(MemoryFileBytesTest, ReadsWhatWasWritten) {
  EXPECT_EQ(read(bytes_, 5, 0), "");
  EXPECT_EQ(write("hello", 0), 5U);
  EXPECT_EQ(bytes_.size(), 5U);
  EXPECT_EQ(read(bytes_, 9, 0), "hello");
  EXPECT_EQ(read(bytes_, 2, 1), "el");
  EXPECT_EQ(read(bytes_, 9, 4), "o");
  EXPECT_EQ(read(bytes_, 9, 5), "") << "the end of the file";
  EXPECT_EQ(read(bytes_, 9, 6), "");
  EXPECT_EQ(write("J", 0), 1U);
  EXPECT_EQ(read(bytes_, 9, 0), "Jello");
  EXPECT_EQ(bytes_.size(), 5U);
  EXPECT_EQ(write("", 100), 0U);
  EXPECT_EQ(bytes_.size(), 5U);
}

TEST_F(MemoryFileBytesTest, SpansPages) {
  std::string text;
  for (std::size_t at = 0; at < 3 * page; ++at) text += static_cast<char>('a' + at % 23);
  EXPECT_EQ(write(text, page - 7), text.size());
  EXPECT_EQ(bytes_.size(), 4 * page - 7);
  EXPECT_EQ(disk_.pages, 4U);
  EXPECT_EQ(read(bytes_, 5 * page, page - 7), text);
  EXPECT_EQ(read(bytes_, page + 2, 2 * page - 1), text.substr(page + 6, page + 2));
  EXPECT_EQ(read(bytes_, page, 0), std::string(page - 7, '\0') + text.substr(0, 7));
}

TEST_F(MemoryFileBytesTest, HolesReadAsZerosAndUseNoSpace) {
  write("x", 3 * page + 1);
  EXPECT_EQ(disk_.pages, 1U);
  EXPECT_EQ(bytes_.size(), 3 * page + 2);
  EXPECT_EQ(read(bytes_, 4 * page, page - 1), std::string(2 * page + 2, '\0') + "x");
}

TEST_F(MemoryFileBytesTest, WritesOnlyUpToTheLargestOffset) {
  const std::uint64_t end = os::file_offset_max;
  EXPECT_EQ(bytes_.write(to_bytes("x"), end).error(), system_error(EFBIG));
  EXPECT_EQ(bytes_.write(to_bytes("x"), end + 1).error(), system_error(EFBIG));
  EXPECT_EQ(write("abc", end - 2), 2U);
  EXPECT_EQ(bytes_.size(), end);
  EXPECT_EQ(read(bytes_, 9, end - 2), "ab");
}

TEST_F(MemoryFileBytesTest, WritesAPartIfThereIsSpaceForOne) {
  disk_.pages_max = 2;
  const std::string text(3 * page, 'x');
  EXPECT_EQ(write(text, 1), 2 * page - 1);
  EXPECT_EQ(disk_.pages, 2U);
  EXPECT_EQ(bytes_.size(), 2 * page);
  EXPECT_EQ(bytes_.write(to_bytes("y"), 2 * page).error(), system_error(ENOSPC));
  EXPECT_EQ(bytes_.size(), 2 * page);
  EXPECT_EQ(write("y", 0), 1U) << "an existing page needs no space";
}

TEST_F(MemoryFileBytesTest, ACutRemovesPagesAndZerosTheRestOfTheLastOne) {
  write(std::string(2 * page + 5, 'x'), 0);
  ASSERT_EQ(disk_.pages, 3U);
  bytes_.resize(page + 3);
  EXPECT_EQ(disk_.pages, 2U);
  EXPECT_EQ(bytes_.size(), page + 3);
  bytes_.resize(2 * page);
  EXPECT_EQ(disk_.pages, 2U);
  EXPECT_EQ(read(bytes_, 3 * page, page), "xxx" + std::string(page - 3, '\0'));
  bytes_.resize(page);
  EXPECT_EQ(disk_.pages, 1U) << "the second page is empty";
  EXPECT_EQ(read(bytes_, 3 * page, 0), std::string(page, 'x'));
  bytes_.resize(1);
  EXPECT_EQ(disk_.pages, 1U);
  bytes_.resize(0);
  EXPECT_EQ(disk_.pages, 0U);
  EXPECT_EQ(bytes_.size(), 0U);
  bytes_.resize(7);
  EXPECT_EQ(read(bytes_, 9, 0), std::string(7, '\0'));
}

TEST_F(MemoryFileBytesTest, EachCopyUsesSpaceUntilItsEnd) {
  write(std::string(page + 1, 'x'), 0);
  {
    MemoryFileBytes copy = bytes_;
    EXPECT_EQ(disk_.pages, 4U);
    EXPECT_EQ(copy.size(), page + 1);
    write("y", 0);
    EXPECT_EQ(read(copy, 1, 0), "x");
    MemoryFileBytes other(disk_);
    ASSERT_TRUE(other.write(to_bytes("z"), 0));
    EXPECT_EQ(disk_.pages, 5U);
    copy = other;
    EXPECT_EQ(disk_.pages, 4U);
    EXPECT_EQ(read(copy, 9, 0), "z");
    const MemoryFileBytes& same = copy;
    copy = same;
    EXPECT_EQ(read(copy, 9, 0), "z");
    EXPECT_EQ(disk_.pages, 4U);
  }
  EXPECT_EQ(disk_.pages, 2U);
}

TEST(MemoryOpenFile, HasTheAccessOfItsMode) {
  MemoryDisk disk;
  const auto node = std::make_shared<MemoryNode>(os::FileKind::file, 0644U, disk);
  struct {
    os::FileMode mode;
    bool readable;
    bool writable;
    bool appends;
  } const cases[] = {
      {os::FileMode::read, true, false, false},     {os::FileMode::read_write, true, true, false},
      {os::FileMode::truncate, false, true, false}, {os::FileMode::create_new, false, true, false},
      {os::FileMode::append, false, true, true},
  };
  for (const auto& each : cases) {
    const MemoryOpenFile file(node, each.mode);
    EXPECT_EQ(file.readable(), each.readable);
    EXPECT_EQ(file.writable(), each.writable);
    EXPECT_EQ(file.appends(), each.appends);
    EXPECT_EQ(file.kind(), MemoryEndpoint::Kind::file);
    EXPECT_EQ(&file.node(), node.get());
  }
}

}  // namespace
}  // namespace weir::memory_file_test
