// Tests the headers traceparent and tracestate. The cases are those of the test suite of the W3C's
// Trace Context and of its text.
#include "weir/telemetry/traces/trace_headers.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::telemetry::trace_headers_test {
namespace {

constexpr std::string_view example = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

std::string with(std::size_t at, std::string_view part) {
  std::string text(example);
  return text.replace(at, part.size(), part);
}

TEST(TraceParent, ReadsTheExampleOfTheSpecification) {
  const auto parent = parse_traceparent(example);
  ASSERT_TRUE(parent);
  EXPECT_EQ(to_hex(parent->trace_id), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(to_hex(parent->parent_id), "b7ad6b7169203331");
  EXPECT_TRUE(parent->sampled);
  EXPECT_FALSE(parent->random);
  EXPECT_EQ(parent->text(), example);
}

TEST(TraceParent, ReadsTheKnownFlagsOnly) {
  for (const auto& [flags, sampled, random] : {std::tuple{"00", false, false},
                                               {"01", true, false},
                                               {"02", false, true},
                                               {"03", true, true},
                                               {"ff", true, true},
                                               {"fc", false, false}}) {
    const auto parent = parse_traceparent(with(53, flags));
    ASSERT_TRUE(parent) << flags;
    EXPECT_EQ(parent->sampled, sampled) << flags;
    EXPECT_EQ(parent->random, random) << flags;
  }
  EXPECT_EQ(parse_traceparent(with(53, "ff"))->text(), with(53, "03"));
}

TEST(TraceParent, RefusesWhatVersion00DoesNotPermit) {
  const std::string zeros(32, '0');
  for (const std::string& text : {std::string(),
                                  std::string(example.substr(0, 54)),
                                  std::string(example) + "0",
                                  std::string(example) + "-",
                                  std::string(example) + "-00",
                                  " " + std::string(example),
                                  std::string(example) + " ",
                                  with(3, zeros),
                                  with(36, zeros.substr(0, 16)),
                                  with(3, "A"),
                                  with(40, "B"),
                                  with(53, "0A"),
                                  with(53, "0g"),
                                  with(0, "0x"),
                                  with(2, "_"),
                                  with(35, "_"),
                                  with(52, "_"),
                                  with(4, "-"),
                                  with(10, "."),
                                  with(0, "ff"),
                                  with(0, "FF")}) {
    EXPECT_FALSE(parse_traceparent(text)) << text;
  }
}

TEST(TraceParent, ReadsTheKnownPartOfLaterVersions) {
  EXPECT_TRUE(parse_traceparent(with(0, "01")));
  EXPECT_TRUE(parse_traceparent(with(0, "cc") + "-"));
  const auto parent = parse_traceparent(with(0, "cc") + "-what-the-future-will-be-like");
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->text(), example) << "sent on as version 00";
  EXPECT_FALSE(parse_traceparent(with(0, "cc") + ".what-the-future-will-not-be-like"));
  EXPECT_FALSE(parse_traceparent(with(0, "cc") + "0"));
}

TEST(TraceIds, AreReadFromDigitsInLowerCase) {
  EXPECT_EQ(to_hex(*parse_span_id("00000000000000ff")), "00000000000000ff");
  EXPECT_FALSE(parse_span_id("00000000000000fF"));
  EXPECT_FALSE(parse_span_id("00000000000000f"));
  EXPECT_FALSE(parse_span_id("0000000000000000"));
  EXPECT_FALSE(parse_trace_id("00000000000000ff"));
  EXPECT_TRUE(parse_trace_id("00000000000000000000000000000001"));
}

std::string normal(std::string_view text) {
  const auto state = TraceState::parse(text);
  return state ? state->text() : "invalid";
}

TEST(TraceState, ReadsEntriesInTheirOrder) {
  EXPECT_EQ(normal("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
  EXPECT_EQ(normal(" foo=1 \t,\t bar=2, ,,"), "foo=1,bar=2");
  EXPECT_EQ(normal("fw529a3039@dt=FfffAAAA:1 2,0a_-*/z=~"), "fw529a3039@dt=FfffAAAA:1 2,0a_-*/z=~");
  EXPECT_EQ(normal(""), "");
  EXPECT_EQ(normal(" , "), "");
  EXPECT_EQ(TraceState::parse("a=1,b=2")->get("b"), "2");
  EXPECT_FALSE(TraceState::parse("a=1,b=2")->get("c"));
}

TEST(TraceState, RefusesInvalidEntries) {
  for (const std::string_view text :
       {"foo", "foo=", "=1", "foo=1,foo=1", "foo=1,bar", "Foo=1", "foo =1", "foo@=bar=baz", "_a=1",
        "@a=1", "foo=a=b", "foo=\xc3\xa4", "foo=a\tb", "foo.bar=1"}) {
    EXPECT_EQ(normal(text), "invalid") << text;
  }
  EXPECT_EQ(normal(std::string(257, 'a') + "=1"), "invalid");
  EXPECT_EQ(normal("a=" + std::string(257, 'x')), "invalid");
  EXPECT_NE(normal(std::string(256, 'a') + "=1"), "invalid");
}

TEST(TraceState, RefusesMoreThan32Entries) {
  std::string text;
  for (int entry = 0; entry < 32; ++entry) text += "k" + std::to_string(entry) + "=1,";
  EXPECT_EQ(TraceState::parse(text)->size(), 32U);
  EXPECT_EQ(normal(text + "more=1"), "invalid");
}

TEST(TraceState, WritesAtMost512Bytes) {
  const std::string large = "large=" + std::string(200, 'x');
  std::string small;
  for (int entry = 0; entry < 6; ++entry) {
    small += (entry > 0 ? ",k" : "k") + std::to_string(entry) + "=" + std::string(60, 'y');
  }
  EXPECT_EQ(normal(large + "," + small), small) << "entries above 128 bytes are dropped first";
  EXPECT_EQ(normal(large + ",a=1"), large + ",a=1");
  std::string many;
  for (int entry = 10; entry < 30; ++entry) {
    many += "k" + std::to_string(entry) + "=" + std::string(60, 'y') + ",";
  }
  EXPECT_EQ(normal(many), many.substr(0, 7 * 65 - 1)) << "then the last ones";
}

TEST(TraceState, SetMovesAnEntryToTheFront) {
  auto state = TraceState::parse("a=1,b=2").value();
  EXPECT_TRUE(state.set("b", "3"));
  EXPECT_TRUE(state.set("c", "4"));
  EXPECT_EQ(state.text(), "c=4,b=3,a=1");
  EXPECT_EQ(state.set("C", "4").error(), Errc::bad_input);
  EXPECT_EQ(state.set("c", "x,y").error(), Errc::bad_input);
  for (int entry = 0; entry < 40; ++entry) EXPECT_TRUE(state.set("k" + std::to_string(entry), "1"));
  EXPECT_EQ(state.size(), TraceState::entries_max);
  EXPECT_FALSE(state.get("a"));
}

}  // namespace
}  // namespace weir::telemetry::trace_headers_test
