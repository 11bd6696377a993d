// Tests with generated values that Weir and nlohmann-json read each other's texts.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "weir/json/test/json_fixture.hpp"

namespace weir::json {

enum class Shade { red, green };
template <>
inline constexpr std::array enumerators<Shade>{Named{Shade::red, "red"},
                                               Named{Shade::green, "gr\"ün"}};

namespace {

struct Part {
  std::string name;
  std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<int>> value;
  bool operator==(const Part&) const = default;
};
struct Whole {
  std::int64_t number = 0;
  std::uint64_t large = 0;
  std::int8_t small = 0;
  double real = 0;
  bool flag = false;
  Shade color = Shade::red;
  std::string text;
  std::optional<std::string> maybe;
  std::vector<Part> parts;
  std::map<std::string, std::array<double, 2>> points;
  std::map<std::int32_t, std::vector<bool>> flags;
  std::tuple<int, std::string> pair;
  bool operator==(const Whole&) const = default;
};

/// A Generator makes random values in which corner cases are frequent.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  template <class T>
  T integer() {
    if (below(4) == 0) {
      constexpr std::array<T, 3> corners{std::numeric_limits<T>::min(),
                                         std::numeric_limits<T>::max(), T{0}};
      return corners[below(corners.size())];
    }
    return static_cast<T>(random_() >> below(64));
  }
  double real() {
    switch (below(3)) {
      case 0:
        return static_cast<double>(integer<std::int16_t>());
      case 1:
        return static_cast<double>(integer<std::int32_t>()) / 100;
      default: {
        const auto value = std::bit_cast<double>(random_());
        return std::isfinite(value) ? value : -0.0;
      }
    }
  }
  std::string text() {
    constexpr std::array<std::string_view, 16> pieces{"a",      "word",
                                                      " ",      "\"",
                                                      "\\",     "\n",
                                                      "\t",     "\x01",
                                                      "/",      "ä",
                                                      "€",      "\U0001F600",
                                                      "\x7f",   "some longer piece of text",
                                                      "\u0080", std::string_view("\0", 1)};
    std::string text;
    for (std::uint64_t count = below(8); count > 0; --count) text += pieces[below(pieces.size())];
    return text;
  }
  Part part() {
    Part part{text(), {}};
    switch (below(6)) {
      case 1:
        part.value = below(2) == 0;
        break;
      case 2:
        part.value = integer<std::int64_t>();
        break;
      case 3:
        part.value = real();
        break;
      case 4:
        part.value = text();
        break;
      case 5:
        part.value = std::vector<int>(below(4), integer<int>());
        break;
      default:
        break;
    }
    return part;
  }
  Whole whole() {
    Whole whole;
    whole.number = integer<std::int64_t>();
    whole.large = integer<std::uint64_t>();
    whole.small = integer<std::int8_t>();
    whole.real = real();
    whole.flag = below(2) == 0;
    whole.color = below(2) == 0 ? Shade::red : Shade::green;
    whole.text = text();
    if (below(2) == 0) whole.maybe = text();
    for (std::uint64_t count = below(4); count > 0; --count) whole.parts.push_back(part());
    for (std::uint64_t count = below(4); count > 0; --count) {
      whole.points[text()] = {real(), real()};
      whole.flags[integer<std::int32_t>()] = std::vector<bool>(below(3), true);
    }
    whole.pair = {integer<int>(), text()};
    return whole;
  }

 private:
  std::mt19937_64 random_;
};

nlohmann::ordered_json expected_of(const Part& part) {
  nlohmann::ordered_json value;
  std::visit(
      [&value]<class T>(const T& held) {
        if constexpr (!std::is_same_v<T, std::monostate>) value = held;
      },
      part.value);
  return {{"name", part.name}, {"value", value}};
}

nlohmann::ordered_json expected_of(const Whole& whole) {
  nlohmann::ordered_json json;
  json["number"] = whole.number;
  json["large"] = whole.large;
  json["small"] = whole.small;
  json["real"] = whole.real;
  json["flag"] = whole.flag;
  json["color"] = whole.color == Shade::red ? "red" : "gr\"ün";
  json["text"] = whole.text;
  if (whole.maybe) json["maybe"] = *whole.maybe;
  json["parts"] = nlohmann::ordered_json::array();
  for (const Part& part : whole.parts) json["parts"].push_back(expected_of(part));
  json["points"] = nlohmann::ordered_json::object();
  for (const auto& [name, point] : whole.points) json["points"][name] = point;
  json["flags"] = nlohmann::ordered_json::object();
  for (const auto& [number, flags] : whole.flags) json["flags"][std::to_string(number)] = flags;
  json["pair"] = {std::get<0>(whole.pair), std::get<1>(whole.pair)};
  return json;
}

/// Returns the seed from WEIR_TEST_SEED, else the same seed in each run.
std::uint64_t seed() {
  const char* const text = std::getenv("WEIR_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20'241'122;
}

TEST(RoundTrip, AnotherLibraryReadsWhatWeWrite) {
  SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed()));
  Generator generator(seed());
  for (int round = 0; round < 2000; ++round) {
    const Whole whole = generator.whole();
    const std::string text = write(whole);
    const auto parsed = nlohmann::ordered_json::parse(text, nullptr, false);
    ASSERT_EQ(parsed, expected_of(whole)) << text;
    ASSERT_EQ(parsed["number"].get<std::int64_t>(), whole.number);
    ASSERT_EQ(parsed["large"].get<std::uint64_t>(), whole.large);
    const auto back = read<Whole>(text);
    ASSERT_TRUE(back) << back.error().message() << "\n" << text;
    ASSERT_EQ(*back, whole) << text;
  }
}

TEST(RoundTrip, WeReadWhatAnotherLibraryWrites) {
  SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed()));
  Generator generator(seed());
  for (int round = 0; round < 2000; ++round) {
    const Whole whole = generator.whole();
    // The texts have blanks or none, escapes for all non-ASCII characters or few, and sorted
    // names or not.
    const auto ordered = expected_of(whole);
    const int indent = static_cast<int>(generator.below(3)) - 1;
    const bool ascii = generator.below(2) == 0;
    const std::string text = generator.below(2) == 0
                                 ? ordered.dump(indent, ' ', ascii)
                                 : nlohmann::json(ordered).dump(indent, '\t', ascii);
    const auto back = read<Whole>(text);
    ASSERT_TRUE(back) << back.error().message() << "\n" << text;
    ASSERT_EQ(*back, whole) << text;
  }
}

TEST(RoundTrip, BothLibrariesJudgeDamagedTextsAlike) {
  SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed()));
  Generator generator(seed());
  constexpr std::string_view bytes = "{}[]:,\"\\/ \t\n0123456789.+-eEtrufalsn\x80\xC3\xED\x01";
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = write(generator.part());
    for (std::uint64_t count = 1 + generator.below(3); count > 0; --count) {
      const std::size_t place = generator.below(text.size());
      const char byte = bytes[generator.below(bytes.size())];
      switch (generator.below(3)) {
        case 0:
          text[place] = byte;
          break;
        case 1:
          text.insert(place, 1, byte);
          break;
        default:
          text.erase(place, 1);
          if (text.empty()) text = "x";
          break;
      }
    }
    const auto value = read_any(text);
    if (!value && value.error().what == "given twice") continue;
    ASSERT_EQ(value.has_value(), nlohmann::json::accept(text)) << text;
    // A number may be too large only for its type, and the reader reports this before other
    // errors.
    const bool too_large = !value && value.error().what.starts_with("a number out of range");
    ASSERT_TRUE(too_large || value.has_value() == can_skip(text)) << text;
    if (!value) continue;
    ++accepted;
    ASSERT_EQ(nlohmann::json::parse(write(*value)), nlohmann::json::parse(text)) << text;
  }
  EXPECT_GT(accepted, 1000);  // both verdicts are tested
}

}  // namespace
}  // namespace weir::json
