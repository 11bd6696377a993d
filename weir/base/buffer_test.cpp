#include "weir/base/buffer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>

namespace weir {
namespace {

void put(Buffer& buffer, std::string_view text) {
  ASSERT_GE(buffer.room().size(), text.size());
  std::memcpy(buffer.room().data(), text.data(), text.size());
  buffer.commit(text.size());
}

TEST(Buffer, AnEmptyBufferOwnsNoMemory) {
  const Buffer buffer;
  EXPECT_TRUE(buffer.empty());
  EXPECT_FALSE(buffer.owns_memory());
  EXPECT_EQ(buffer.capacity(), 0U);
  EXPECT_EQ(buffer.text(), "");
}

TEST(Buffer, FillsAndConsumes) {
  Buffer buffer = Buffer::with_capacity(10);
  EXPECT_TRUE(buffer.owns_memory());
  EXPECT_EQ(buffer.room().size(), 10U);
  put(buffer, "hello");
  EXPECT_EQ(buffer.text(), "hello");
  EXPECT_EQ(buffer.room().size(), 5U);
  buffer.consume(2);
  put(buffer, "world");
  EXPECT_EQ(buffer.text(), "lloworld");
  EXPECT_TRUE(buffer.room().empty());
  const Bytes bytes = buffer;
  EXPECT_EQ(to_text(bytes), "lloworld");
  buffer.consume(8);
  EXPECT_TRUE(buffer.empty());
  buffer.clear();
  EXPECT_EQ(buffer.room().size(), 10U);
}

TEST(Buffer, MovesItsBlock) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  Buffer one = Buffer::with_capacity();
  EXPECT_EQ(one.capacity(), Buffer::default_capacity);
  put(one, "one");
  Buffer two = std::move(one);
  EXPECT_FALSE(one.owns_memory());
  EXPECT_TRUE(one.empty());
  EXPECT_EQ(two.text(), "one");
  Buffer three = Buffer::with_capacity(100);
  put(three, "three");
  three = std::move(two);
  EXPECT_EQ(three.text(), "one");
  EXPECT_EQ(pool.blocks_in_use(), 1U);
  Buffer& self = three;
  three = std::move(self);
  EXPECT_EQ(three.text(), "one");
  three = Buffer();
  EXPECT_EQ(pool.blocks_in_use(), 0U);
}

TEST(Buffer, ReturnsItsBlockFromAnotherThread) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  Buffer buffer = Buffer::with_capacity(64);
  put(buffer, "abroad");
  std::thread([taken = std::move(buffer)] { EXPECT_EQ(taken.text(), "abroad"); }).join();
  pool.collect();
  EXPECT_EQ(pool.blocks_in_use(), 0U);
}

}  // namespace
}  // namespace weir
