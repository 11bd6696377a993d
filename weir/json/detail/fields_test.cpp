// Tests of structs with every number of fields: each field has its own name, position and value.
#include "weir/json/detail/fields.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>

#include "weir/json/read.hpp"
#include "weir/json/write.hpp"

namespace weir::json::fields_test {
namespace {

struct Fields1 {
  int f1;
};
struct Fields2 {
  int f1, f2;
};
struct Fields3 {
  int f1, f2, f3;
};
struct Fields4 {
  int f1, f2, f3, f4;
};
struct Fields5 {
  int f1, f2, f3, f4, f5;
};
struct Fields6 {
  int f1, f2, f3, f4, f5, f6;
};
struct Fields7 {
  int f1, f2, f3, f4, f5, f6, f7;
};
struct Fields8 {
  int f1, f2, f3, f4, f5, f6, f7, f8;
};
struct Fields9 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9;
};
struct Fields10 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10;
};
struct Fields11 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11;
};
struct Fields12 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12;
};
struct Fields13 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13;
};
struct Fields14 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14;
};
struct Fields15 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15;
};
struct Fields16 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16;
};
struct Fields17 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17;
};
struct Fields18 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18;
};
struct Fields19 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19;
};
struct Fields20 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20;
};
struct Fields21 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21;
};
struct Fields22 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22;
};
struct Fields23 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23;
};
struct Fields24 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23, f24;
};
struct Fields25 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23, f24, f25;
};
struct Fields26 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23, f24, f25, f26;
};
struct Fields27 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23, f24, f25, f26, f27;
};
struct Fields28 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23, f24, f25, f26, f27, f28;
};
struct Fields29 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23, f24, f25, f26, f27, f28, f29;
};
struct Fields30 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23, f24, f25, f26, f27, f28, f29, f30;
};
struct Fields31 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31;
};
struct Fields32 {
  int f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32;
};

/// Returns the text of a struct whose field n has the value 100 + n.
std::string text_of(std::size_t count) {
  std::string text;
  for (std::size_t number = 1; number <= count; ++number) {
    text += (number == 1 ? "{\"f" : ",\"f") + std::to_string(number) +
            "\":" + std::to_string(100 + number);
  }
  return text + "}";
}
/// Returns the same members, with the last one first and blanks between them.
std::string reversed_text_of(std::size_t count) {
  std::string text = "{ ";
  for (std::size_t number = count; number > 0; --number) {
    text += "\"f" + std::to_string(number) + "\" : " + std::to_string(100 + number) +
            (number == 1 ? " }" : " , ");
  }
  return text;
}

/// Checks a struct of `Count` fields. They lie one behind the other in their order of declaration.
template <class T, std::size_t Count>
void expect_all_fields() {
  static_assert(detail::field_count<T> == Count);
  static_assert(sizeof(T) == Count * sizeof(int));
  SCOPED_TRACE(Count);
  for (const std::string& text : {text_of(Count), reversed_text_of(Count)}) {
    const auto value = read<T>(text);
    ASSERT_TRUE(value) << value.error().message();
    std::array<int, Count> numbers{};
    std::memcpy(numbers.data(), &*value, sizeof(T));
    for (std::size_t index = 0; index < Count; ++index) {
      EXPECT_EQ(numbers[index], static_cast<int>(101 + index));
    }
    EXPECT_EQ(write(*value), text_of(Count));
  }
  // Each field is required, and the error names it.
  for (std::size_t missing = 1; missing <= Count; ++missing) {
    std::string text = text_of(Count);
    const std::string member =
        "\"f" + std::to_string(missing) + "\":" + std::to_string(100 + missing);
    const std::size_t place = text.find(member);
    const bool last = missing == Count;
    text.erase(last && Count > 1 ? place - 1 : place, member.size() + (Count > 1 ? 1 : 0));
    const auto value = read<T>(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().path, "f" + std::to_string(missing)) << text;
    EXPECT_EQ(value.error().what, "missing");
  }
  // No field may be given twice, wherever the second one stands.
  for (std::size_t twice = 1; twice <= Count; ++twice) {
    const std::string member = "\"f" + std::to_string(twice) + "\":1";
    const std::string text = text_of(Count);
    for (const std::string& doubled : {text.substr(0, text.size() - 1) + "," + member + "}",
                                       "{" + member + "," + text.substr(1)}) {
      const auto value = read<T>(doubled);
      ASSERT_FALSE(value) << doubled;
      EXPECT_EQ(value.error().path, "f" + std::to_string(twice)) << doubled;
      EXPECT_EQ(value.error().what, "given twice");
    }
  }
}

TEST(Fields, OfEveryNumberAreReadAndWrittenInTheirOrder) {
  expect_all_fields<Fields1, 1>();
  expect_all_fields<Fields2, 2>();
  expect_all_fields<Fields3, 3>();
  expect_all_fields<Fields4, 4>();
  expect_all_fields<Fields5, 5>();
  expect_all_fields<Fields6, 6>();
  expect_all_fields<Fields7, 7>();
  expect_all_fields<Fields8, 8>();
  expect_all_fields<Fields9, 9>();
  expect_all_fields<Fields10, 10>();
  expect_all_fields<Fields11, 11>();
  expect_all_fields<Fields12, 12>();
  expect_all_fields<Fields13, 13>();
  expect_all_fields<Fields14, 14>();
  expect_all_fields<Fields15, 15>();
  expect_all_fields<Fields16, 16>();
  expect_all_fields<Fields17, 17>();
  expect_all_fields<Fields18, 18>();
  expect_all_fields<Fields19, 19>();
  expect_all_fields<Fields20, 20>();
  expect_all_fields<Fields21, 21>();
  expect_all_fields<Fields22, 22>();
  expect_all_fields<Fields23, 23>();
  expect_all_fields<Fields24, 24>();
  expect_all_fields<Fields25, 25>();
  expect_all_fields<Fields26, 26>();
  expect_all_fields<Fields27, 27>();
  expect_all_fields<Fields28, 28>();
  expect_all_fields<Fields29, 29>();
  expect_all_fields<Fields30, 30>();
  expect_all_fields<Fields31, 31>();
  expect_all_fields<Fields32, 32>();
}

}  // namespace
}  // namespace weir::json::fields_test
