// Tests the description of event types.
#include "weir/event/event.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace weir::detail {
struct NamedEvent {};
template <class T>
struct EventOfEvents {};

namespace {

struct Hidden {};

TEST(EventType, HasTheNameOfTheCxxType) {
  EXPECT_EQ(event_type<int>.name, "int");
  EXPECT_EQ(event_type<NamedEvent>.name, "weir::detail::NamedEvent");
  EXPECT_EQ(event_type<EventOfEvents<NamedEvent>>.name,
            "weir::detail::EventOfEvents<weir::detail::NamedEvent>");
  EXPECT_TRUE(event_type<Hidden>.name.ends_with("::Hidden")) << event_type<Hidden>.name;
  EXPECT_EQ((event_type<std::array<int, 3>>.name), "std::array<int, 3>");
}

TEST(EventType, IsIdentifiedByItsAddress) {
  const EventType* const one = &event_type<NamedEvent>;
  const EventType* const other = &event_type<Hidden>;
  EXPECT_NE(one, other);
  EXPECT_EQ(one, &event_type<NamedEvent>);
}

TEST(EventType, SmallValuesAreStoredInTheRecord) {
  EXPECT_EQ(event_type<char>.record_bytes, 16U);
  EXPECT_EQ(event_type<std::uint64_t>.record_bytes, 16U) << "8 bytes of payload";
  EXPECT_EQ((event_type<std::array<char, 9>>.record_bytes), 24U);
  EXPECT_EQ((event_type<std::array<char, 128>>.record_bytes), 136U);
  EXPECT_EQ((event_type<std::array<char, 129>>.record_bytes), 0U);
  struct alignas(16) Aligned {
    double both[2];
  };
  EXPECT_EQ(event_type<Aligned>.record_bytes, 0U);
}

TEST(EventType, DestroysAValue) {
  EXPECT_EQ(event_type<int>.destroy, nullptr);
  auto shared = std::make_shared<int>(1);
  alignas(std::shared_ptr<int>) std::array<std::byte, sizeof shared> memory;
  void* const copy = std::construct_at(reinterpret_cast<std::shared_ptr<int>*>(&memory), shared);
  EXPECT_EQ(shared.use_count(), 2);
  event_type<std::shared_ptr<int>>.destroy(copy);
  EXPECT_EQ(shared.use_count(), 1);
}

struct ThrowsWhenMoved {
  ThrowsWhenMoved() = default;
  ThrowsWhenMoved(ThrowsWhenMoved&&) noexcept(false) {}
};
struct alignas(64) Wide {};

TEST(EventType, RequiresANothrowMove) {
  EXPECT_TRUE(EventValue<std::string>);
  EXPECT_TRUE(EventValue<std::unique_ptr<int>>);
  EXPECT_FALSE(EventValue<ThrowsWhenMoved>);
  EXPECT_FALSE(EventValue<Wide>);
  EXPECT_FALSE(EventValue<int&>);
  EXPECT_FALSE(EventValue<const int>);
}

constexpr std::array storages = {EventStorage::in_record, EventStorage::shared,
                                 EventStorage::shared_remote};

EventSource source_of(std::uint64_t number) {
  return std::bit_cast<EventSource>(number);
}

// A bus makes 2^46 - 1 sources, and a core numbers 65,536 types.
TEST(EventTag, KeepsEachOfItsParts) {
  for (const std::size_t topic : {0U, 1U, 32'768U, 65'535U}) {
    for (const EventStorage storage : storages) {
      for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 45,
                                         (std::uint64_t{1} << 46) - 1}) {
        const EventTag tag(topic, storage, source_of(number));
        EXPECT_EQ(tag.topic(), topic);
        EXPECT_EQ(tag.storage(), storage);
        EXPECT_EQ(tag.source().number(), number);
      }
    }
  }
}

TEST(EventTag, ComparesTheTopicAndTheStorageWithoutTheSource) {
  for (const std::size_t topic : {0U, 5U, 65'535U}) {
    for (const EventStorage storage : storages) {
      const EventTag tag(topic, storage, source_of(1));
      EXPECT_TRUE(tag.has_same_topic_and_storage(EventTag(topic, storage, source_of(2))));
      EXPECT_FALSE(tag.has_same_topic_and_storage(EventTag(topic ^ 1U, storage, source_of(1))));
      EXPECT_FALSE(
          tag.has_same_topic_and_storage(EventTag(topic ^ 32'768U, storage, source_of(1))));
      for (const EventStorage other : storages) {
        EXPECT_EQ(tag.has_same_topic_and_storage(EventTag(topic, other, source_of(1))),
                  other == storage);
      }
    }
  }
}

}  // namespace
}  // namespace weir::detail
