// Tests attributes and their limits, and the decisions of samplers.
#include "weir/telemetry/traces/attributes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "weir/telemetry/traces/sampler.hpp"

namespace weir::telemetry::attributes_test {
namespace {

/// Returns "key=value" of each attribute.
std::vector<std::string> texts(const Attributes& attributes) {
  std::vector<std::string> out;
  attributes.for_each([&](std::string_view key, const AttributeValue& value) {
    std::string text(key);
    text += '=';
    if (const auto* const view = std::get_if<std::string_view>(&value)) {
      text += *view;
    } else if (const auto* const truth = std::get_if<bool>(&value)) {
      text += *truth ? "true" : "false";
    } else if (const auto* const number = std::get_if<std::int64_t>(&value)) {
      text += std::to_string(*number);
    } else {
      text += std::to_string(*std::get_if<double>(&value));
    }
    out.push_back(text);
  });
  return out;
}

using Texts = std::vector<std::string>;

TEST(Attributes, KeepValuesOfEachTypeInTheirOrder) {
  Attributes attributes;
  attributes.set("text", "a");
  attributes.set("empty", std::string());
  attributes.set("truth", true);
  attributes.set("int", -7);
  attributes.set("unsigned", std::numeric_limits<std::uint64_t>::max());
  attributes.set("real", 1.5F);
  EXPECT_EQ(texts(attributes), (Texts{"text=a", "empty=", "truth=true", "int=-7",
                                      "unsigned=9223372036854775807", "real=1.500000"}));
  EXPECT_EQ(attributes.size(), 6U);
}

TEST(Attributes, ReplaceTheValueOfAName) {
  Attributes attributes;
  attributes.set("a", 1);
  attributes.set("b", "two");
  attributes.set("c", 3);
  attributes.set("b", false);
  EXPECT_EQ(texts(attributes), (Texts{"a=1", "c=3", "b=false"}));
  attributes.set("b", false);
  attributes.set("a", "x");
  EXPECT_EQ(texts(attributes), (Texts{"c=3", "b=false", "a=x"}));
  EXPECT_EQ(attributes.dropped(), 0U);
}

TEST(Attributes, CountWhatExceedsALimit) {
  Attributes attributes;
  attributes.set("", 1);
  attributes.set(std::string(Attributes::key_max + 1, 'k'), 1);
  EXPECT_EQ(attributes.dropped(), 2U);
  for (int count = 0; count < 200; ++count) attributes.set("k" + std::to_string(count), count);
  EXPECT_EQ(attributes.size(), Attributes::count_max);
  EXPECT_EQ(attributes.dropped(), 2U + 200 - Attributes::count_max);

  Attributes large;
  const std::string value(Attributes::value_max, 'v');
  for (int count = 0; count < 8; ++count) large.set("k" + std::to_string(count), value);
  EXPECT_EQ(large.size(), 3U);
  EXPECT_EQ(large.dropped(), 5U);
  EXPECT_LE(large.bytes(), 2 * Attributes::bytes_max);
}

TEST(Attributes, CutALongTextBetweenCharacters) {
  Attributes attributes;
  attributes.set("a", std::string(Attributes::value_max - 1, 'x') + "\xc3\xa4");
  EXPECT_EQ(texts(attributes)[0].size(), 2 + Attributes::value_max - 1);
}

TraceId id_of(std::uint64_t low) {
  TraceId id{};
  for (std::size_t byte = 0; byte < 8; ++byte) {
    id[15 - byte] = static_cast<std::uint8_t>(low >> (8 * byte));
  }
  return id;
}

TEST(Sampler, DecidesByTheLast8BytesOfTheId) {
  // The bounds are those of OpenTelemetry's SDK for Go: the highest 63 bits, below ratio * 2^63.
  constexpr Sampler half = Sampler::ratio(0.5);
  EXPECT_TRUE(half.samples(id_of(0)));
  EXPECT_TRUE(half.samples(id_of(0x7fffffffffffffff)));
  EXPECT_FALSE(half.samples(id_of(0x8000000000000000)));
  EXPECT_FALSE(half.samples(id_of(0xffffffffffffffff)));
  constexpr Sampler hundredth = Sampler::ratio(0.01);
  EXPECT_TRUE(hundredth.samples(id_of(0x028f000000000000)));
  EXPECT_FALSE(hundredth.samples(id_of(0x0290000000000000)));
  EXPECT_TRUE(Sampler::always_on().samples(id_of(~std::uint64_t{0})));
  EXPECT_FALSE(Sampler::always_off().samples(id_of(0)));
  EXPECT_FALSE(Sampler::ratio(-1).samples(id_of(0)));
  EXPECT_TRUE(Sampler::ratio(7).samples(id_of(~std::uint64_t{0})));
}

TEST(Sampler, DecidesByItselfAtAPublicEdge) {
  constexpr Sampler edge = Sampler::public_edge(Sampler::ratio(0.5));
  EXPECT_FALSE(edge.trusts_callers());
  EXPECT_TRUE(edge.samples(id_of(0)));
  EXPECT_FALSE(edge.samples(id_of(~std::uint64_t{0})));
  constexpr Sampler off = Sampler::public_edge(Sampler::parent_based(Sampler::always_off()));
  EXPECT_FALSE(off.samples(id_of(0), true));
  for (const Sampler each : {Sampler(), Sampler::ratio(1), Sampler::always_off(),
                             Sampler::parent_based(Sampler::always_on())}) {
    EXPECT_TRUE(each.trusts_callers());
  }
}

TEST(Sampler, FollowsTheParentIfItIsParentBased) {
  constexpr Sampler follows = Sampler::parent_based(Sampler::always_off());
  EXPECT_TRUE(follows.samples(id_of(1), true));
  EXPECT_FALSE(follows.samples(id_of(1), false));
  EXPECT_FALSE(follows.samples(id_of(1)));
  constexpr Sampler ignores = Sampler::always_on();
  EXPECT_TRUE(ignores.samples(id_of(1), false));
  EXPECT_TRUE(Sampler().samples(id_of(1)));
  EXPECT_FALSE(Sampler().samples(id_of(1), false));
}

}  // namespace
}  // namespace weir::telemetry::attributes_test
