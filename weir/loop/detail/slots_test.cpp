#include "weir/loop/detail/slots.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace weir::loop::slots_test {
namespace {

struct Number {
  explicit Number(int of = 7) noexcept : value(of) {}
  int value;
};
struct Another {
  int value = 1;
};

TEST(Slots, HasOneObjectOfEachType) {
  Slots slots;
  EXPECT_EQ(slots.find<Number>(), nullptr);
  Number& number = slots.get<Number>(3);
  EXPECT_EQ(number.value, 3);
  EXPECT_EQ(&slots.get<Number>(4), &number);
  EXPECT_EQ(number.value, 3) << "the first call made it";
  EXPECT_EQ(slots.find<Number>(), &number);
  EXPECT_EQ(slots.find<Another>(), nullptr);
  Another& another = slots.get<Another>();
  EXPECT_EQ(another.value, 1);
  EXPECT_EQ(slots.find<Another>(), &another);
  EXPECT_EQ(&slots.get<Number>(), &number);
}

TEST(Slots, HaveObjectsOfTheirOwn) {
  Slots one;
  Slots two;
  EXPECT_NE(&one.get<Number>(), &two.get<Number>());
}

template <int index>
struct Ending {
  explicit Ending(std::vector<int>& to) : ends(to) {}
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  ~Ending() { ends.push_back(index); }
  std::vector<int>& ends;
  std::array<std::byte, 100> much{};
};

TEST(Slots, DestroyTheNewestObjectFirst) {
  std::vector<int> ends;
  {
    Slots slots;
    slots.get<Ending<1>>(ends);
    slots.get<Ending<2>>(ends);
    slots.get<Ending<3>>(ends);
    slots.get<Ending<4>>(ends);
    slots.get<Ending<5>>(ends);
  }
  EXPECT_EQ(ends, (std::vector<int>{5, 4, 3, 2, 1}));
}

TEST(Slots, AlignObjectsAndKeepThemApart) {
  struct alignas(64) Wide {
    std::array<std::byte, 64> bytes{};
  };
  struct Byte {
    char value = 'a';
  };
  Slots slots;
  Byte& byte = slots.get<Byte>();
  Wide& wide = slots.get<Wide>();
  Number& number = slots.get<Number>();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&wide) % 64, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&number) % alignof(Number), 0U);
  number.value = -1;
  EXPECT_EQ(byte.value, 'a');
}

/// Takes the room of a small object, so that the room in the Slots is used up soon.
template <int index>
struct Small {
  int value = index;
};

template <int... index>
void expect_small_objects(Slots& slots, std::integer_sequence<int, index...>) {
  (slots.get<Small<index>>(), ...);
  EXPECT_TRUE(((slots.find<Small<index>>()->value == index) && ...));
}

TEST(Slots, HoldMoreObjectsThanTheirOwnRoomHas) {
  Slots slots;
  expect_small_objects(slots, std::make_integer_sequence<int, 40>());
}

TEST(Slots, MakeAnObjectAgainAfterItsConstructorThrew) {
  struct Failing {
    explicit Failing(bool fails) {
      if (fails) throw std::runtime_error("no");
    }
  };
  Slots slots;
  EXPECT_THROW(slots.get<Failing>(true), std::runtime_error);
  EXPECT_EQ(slots.find<Failing>(), nullptr);
  slots.get<Failing>(false);
  EXPECT_NE(slots.find<Failing>(), nullptr);
}

TEST(Slots, AConstructorMayUseOtherSlots) {
  struct Outer {
    explicit Outer(Slots& slots) : inner(slots.get<Number>(5)) {}
    Number& inner;
  };
  Slots slots;
  EXPECT_EQ(slots.get<Outer>(slots).inner.value, 5);
}

TEST(SlotsOfThreads, MakeAnObjectOnce) {
  static std::atomic<int> made;
  struct Counted {
    Counted() { ++made; }
  };
  made = 0;
  for (int round = 1; round <= 100; ++round) {
    Slots slots;
    std::array<Counted*, 2> got{};
    {
      std::jthread other([&] {
        slots.get<Number>();
        got[1] = &slots.get<Counted>();
      });
      got[0] = &slots.get<Counted>();
      slots.get<Another>();
    }
    EXPECT_TRUE(got[0] == got[1] && made.load() == round);
  }
}

}  // namespace
}  // namespace weir::loop::slots_test
