// Tests of the table of the streams of a connection.
#include "weir/http/detail/h2/stream_table.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "weir/http/test/h2_stream_fixture.hpp"

namespace weir::http::stream_table_test {
namespace {

using Closed = StreamTable::Closed;

/// A table whose streams are open.
struct Table {
  explicit Table(std::uint32_t streams_max = 8) { limits.streams_max = streams_max; }
  ~Table() {
    for (auto& [id, stream] : streams) {
      if (!stream->closed()) table.close(*stream, Closed::ended);
      table.release(*stream);
    }
  }
  H2Stream& add(std::uint32_t id) {
    table.reserve(limits);
    table.note_opened(id);
    auto& stream = streams[id];
    stream = std::make_unique<H2Stream>();
    table.insert(*stream, StreamWindows({.send = 10, .receive = 10, .receive_full = 10}));
    H2StreamTest::open(*stream);
    return *stream;
  }
  void release(std::uint32_t id) {
    table.release(*streams.at(id));
    streams.erase(id);
  }

  H2Limits limits;
  StreamTable table;
  std::map<std::uint32_t, std::unique_ptr<H2Stream>> streams;
};

// Identifiers.

TEST(H2StreamTable, KnowsIdleStreams) {
  StreamTable table;
  EXPECT_TRUE(table.is_idle(1));
  EXPECT_TRUE(table.is_idle(2));
  table.note_opened(5);
  EXPECT_EQ(table.last(), 5u);
  EXPECT_FALSE(table.is_idle(3)) << "a higher stream closes it";
  EXPECT_FALSE(table.is_idle(5));
  EXPECT_TRUE(table.is_idle(7));
  EXPECT_TRUE(table.is_idle(4)) << "a server opens no streams";
}

TEST(H2StreamTable, NumbersTheStreamsOfAClient) {
  StreamTable table;
  EXPECT_EQ(table.next_id(), 1u);
  table.note_opened(1);
  EXPECT_EQ(table.next_id(), 3u);
  table.note_opened(stream_id_max - 2);
  EXPECT_TRUE(table.has_next_id());
  EXPECT_EQ(table.next_id(), stream_id_max);
  table.note_opened(stream_id_max);
  EXPECT_FALSE(table.has_next_id());
}

TEST(H2StreamTable, IgnoresLaterStreams) {
  StreamTable table;
  table.note_opened(3);
  EXPECT_EQ(table.last_served(), 3u);
  table.ignore_later();
  EXPECT_FALSE(table.is_ignored(3));
  EXPECT_TRUE(table.is_ignored(5));
  table.note_opened(7);
  EXPECT_EQ(table.last_served(), 3u);
  EXPECT_EQ(table.how_closed(7), Closed::reset_here);
  EXPECT_EQ(table.how_closed(3), Closed::unknown);
}

// Open streams.

TEST(H2StreamTable, FindsOpenStreams) {
  Table all;
  EXPECT_EQ(all.table.find(1), nullptr);
  for (std::uint32_t id = 1; id < 100; id += 2) all.add(id);  // several in one bucket
  EXPECT_EQ(all.table.open_count(), 50u);
  for (std::uint32_t id = 1; id < 100; id += 2) {
    EXPECT_EQ(all.table.find(id), all.streams.at(id).get());
  }
  EXPECT_EQ(all.table.find(101), nullptr);
}

TEST(H2StreamTable, GivesAStreamItsIdentifierAndItsWindows) {
  Table all;
  const H2Stream& stream = all.add(7);
  EXPECT_EQ(stream.id(), 7u);
  EXPECT_EQ(stream.send_window(), 10);
}

TEST(H2StreamTable, RemovesClosedStreams) {
  Table all(1);  // one bucket
  for (std::uint32_t id : {1U, 3U, 5U}) all.add(id);
  all.table.close(*all.streams.at(3), Closed::reset_by_peer);
  EXPECT_EQ(all.table.find(3), nullptr);
  EXPECT_EQ(all.table.find(1), all.streams.at(1).get());
  EXPECT_EQ(all.table.find(5), all.streams.at(5).get());
  EXPECT_TRUE(all.streams.at(3)->closed());
  EXPECT_TRUE(all.streams.at(3)->was_reset());
  EXPECT_EQ(all.table.open_count(), 2u);
  EXPECT_EQ(all.table.held_count(), 3u);
}

TEST(H2StreamTable, VisitsOpenStreams) {
  Table all;
  EXPECT_TRUE(all.table.for_each([](H2Stream&) { return false; })) << "there is none";
  for (std::uint32_t id : {1U, 3U, 5U}) all.add(id);
  std::uint32_t sum = 0;
  const auto add = [&sum](const H2Stream& stream) {
    sum += stream.id();
    return true;
  };
  EXPECT_TRUE(all.table.for_each(add));
  EXPECT_EQ(sum, 9u);
  int calls = 0;
  const auto stop = [&calls](const H2Stream&) { return ++calls < 2; };
  EXPECT_FALSE(all.table.for_each(stop));
  EXPECT_EQ(calls, 2);
}

TEST(H2StreamTable, LimitsOpenAndHeldStreams) {
  Table all(4);
  for (std::uint32_t id : {1U, 3U, 5U}) all.add(id);
  EXPECT_TRUE(all.table.has_room(all.limits));
  all.add(7);
  EXPECT_FALSE(all.table.has_room(all.limits)) << "four are open";
  for (auto& [id, stream] : all.streams) all.table.close(*stream, Closed::ended);
  EXPECT_TRUE(all.table.has_room(all.limits));
  all.table.close(all.add(9), Closed::ended);
  EXPECT_TRUE(all.table.has_room(all.limits)) << "five are held, and six may be";
  all.table.close(all.add(11), Closed::ended);
  EXPECT_FALSE(all.table.has_room(all.limits));
  all.release(1);
  EXPECT_TRUE(all.table.has_room(all.limits));
}

TEST(H2StreamTable, TakesClosedStreamsOutOfTheSenders) {
  Table all;
  EXPECT_EQ(all.table.next_sender(), nullptr);
  H2Stream& stream = all.add(1);
  all.table.scheduler().want(stream);
  EXPECT_EQ(all.table.next_sender(), &stream);
  all.table.close(stream, Closed::ended);
  EXPECT_EQ(all.table.next_sender(), nullptr);
}

// Closed streams.

TEST(H2StreamTable, RemembersTheEndOfAStream) {
  Table all;
  all.table.close(all.add(1), Closed::ended);
  all.table.close(all.add(3), Closed::reset_by_peer);
  all.table.remember(5, Closed::reset_here);
  EXPECT_EQ(all.table.how_closed(1), Closed::ended);
  EXPECT_FALSE(all.streams.at(1)->was_reset());
  EXPECT_EQ(all.table.how_closed(3), Closed::reset_by_peer);
  EXPECT_EQ(all.table.how_closed(5), Closed::reset_here);
  EXPECT_EQ(all.table.how_closed(7), Closed::unknown);
  EXPECT_EQ(all.table.how_closed(2), Closed::unknown);
}

TEST(H2StreamTable, ForgetsTheOldestStream) {
  StreamTable table;
  for (std::uint32_t at = 0; at < 11; ++at) table.remember(2 * at + 1, Closed::ended);
  EXPECT_FALSE(table.has_forgotten());
  table.remember(23, Closed::reset_here);
  EXPECT_TRUE(table.has_forgotten()) << "the next one takes the place of the first";
  EXPECT_EQ(table.how_closed(1), Closed::ended);
  table.remember(25, Closed::ended);
  EXPECT_EQ(table.how_closed(1), Closed::unknown);
  EXPECT_EQ(table.how_closed(3), Closed::ended);
  EXPECT_EQ(table.how_closed(23), Closed::reset_here);
}

// Memory.

TEST(H2StreamTable, FreesItsBlockWhenNoStreamIsOpen) {
  Table all;
  H2Stream& stream = all.add(1);
  all.table.drop_idle_memory();
  EXPECT_EQ(all.table.find(1), &stream) << "the stream is open";
  all.table.close(stream, Closed::ended);
  all.table.drop_idle_memory();
  EXPECT_EQ(all.table.next_sender(), nullptr);
  EXPECT_EQ(all.table.find(1), nullptr);
  EXPECT_EQ(all.table.how_closed(1), Closed::ended) << "it is remembered";
  all.add(3);
  EXPECT_EQ(all.table.open_count(), 1u);
}

TEST(H2StreamTable, BoundsItsBlock) {
  H2Limits limits;
  limits.streams_max = 1;
  const std::size_t least = StreamTable::block_bytes(limits);
  limits.streams_max = 1U << 30;
  EXPECT_EQ(StreamTable::block_bytes(limits), least + 255 * sizeof(H2Stream*));
}

}  // namespace
}  // namespace weir::http::stream_table_test
