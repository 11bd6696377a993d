// Cases of WebSocket sessions in the order of the classes 1 to 7 of the Autobahn suite: echo,
// pings, reserved bits, opcodes, fragments, UTF-8 and closing. Each runs for both roles and all
// cuts.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/ws_frames.hpp"
#include "weir/http/test/ws_session_fixture.hpp"
#include "weir/http/ws/detail/session.hpp"

namespace weir::http::session_cases_test {
namespace {

using namespace ws;

/// A first byte and a payload, for each frame of a peer.
struct Part {
  int first;
  std::string payload = {};
};

struct Case {
  const char* name;
  std::vector<Part> parts;
  std::string events;
};

void expect_all(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    expect_events(
        [&](WsRole role) {
          std::string input;
          for (const Part& part : each.parts) input += frame_to(role, part.first, part.payload);
          return input;
        },
        each.events);
  }
}

TEST(WsCases, Class1ReturnsMessagesOfAllSizes) {
  std::vector<Case> cases;
  for (const std::size_t size : {0U, 1U, 125U, 126U, 127U, 128U, 65'535U, 65'536U, 65'537U}) {
    const std::string payload(size, '*');
    cases.push_back({"text", {{fin | text_frame, payload}}, "text [" + payload + "]"});
    cases.push_back({"binary", {{fin | binary_frame, payload}}, "binary [" + payload + "]"});
  }
  std::string any;
  for (int byte = 0; byte < 256; ++byte) any += static_cast<char>(byte);
  cases.push_back({"any bytes", {{fin | binary_frame, any}}, "binary [" + any + "]"});
  expect_all(cases);
}

TEST(WsCases, Class2ReturnsPingsAndPongs) {
  const std::string bytes("\x00\xff\xfe\xfd\xfc\xfb\x00\xff", 8);
  const std::string longest(125, '\xfe');
  std::vector<Case> cases{
      {"a ping", {{fin | ping_frame}}, "<ping >"},
      {"a ping of text", {{fin | ping_frame, "Hello"}}, "<ping Hello>"},
      {"a ping of bytes", {{fin | ping_frame, bytes}}, "<ping " + bytes + ">"},
      {"the longest ping", {{fin | ping_frame, longest}}, "<ping " + longest + ">"},
      {"a ping of 126 bytes", {{fin | ping_frame, longest + "x"}}, "<failed 1002>"},
      {"an unexpected pong", {{fin | pong_frame}, {fin | ping_frame}}, "<pong ><ping >"},
      {"a pong of text", {{fin | pong_frame, "x"}, {fin | ping_frame, "y"}}, "<pong x><ping y>"},
  };
  Case ten{"ten pings", {}, {}};
  for (int count = 0; count < 10; ++count) {
    ten.parts.push_back({fin | ping_frame, "payload-" + std::to_string(count)});
    ten.events += "<ping payload-" + std::to_string(count) + ">";
  }
  cases.push_back(ten);
  expect_all(cases);
}

TEST(WsCases, Class3RejectsReservedBits) {
  std::vector<Case> cases;
  for (int bits = 1; bits <= 7; ++bits) {
    const int reserved = bits << 4;
    for (const int opcode :
         {continuation_frame, text_frame, binary_frame, close_frame, ping_frame, pong_frame}) {
      cases.push_back(
          {"reserved bits",
           {{fin | text_frame, "ok"}, {reserved | fin | opcode, "x"}, {fin | ping_frame}},
           "text [ok]<failed 1002>"});
    }
  }
  expect_all(cases);
}

TEST(WsCases, Class4RejectsReservedOpcodes) {
  std::vector<Case> cases;
  for (const int opcode : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    cases.push_back({"alone", {{fin | opcode}}, "<failed 1002>"});
    cases.push_back({"with a payload", {{fin | opcode, "x"}}, "<failed 1002>"});
    cases.push_back({"behind text",
                     {{fin | text_frame, "ok"}, {fin | opcode, "x"}, {fin | ping_frame}},
                     "text [ok]<failed 1002>"});
  }
  expect_all(cases);
}

TEST(WsCases, Class5JoinsFragments) {
  expect_all({
      {"a fragmented ping", {{ping_frame, "a"}, {fin | continuation_frame, "b"}}, "<failed 1002>"},
      {"a fragmented pong", {{pong_frame, "a"}, {fin | continuation_frame, "b"}}, "<failed 1002>"},
      {"two fragments", {{text_frame, "a"}, {fin | continuation_frame, "b"}}, "text [ab]"},
      {"a ping between",
       {{text_frame, "a"}, {fin | ping_frame, "p"}, {fin | continuation_frame, "b"}},
       "text [a<ping p>b]"},
      {"a continuation alone",
       {{fin | continuation_frame, "a"}, {fin | text_frame, "b"}},
       "<failed 1002>"},
      {"an open continuation alone",
       {{continuation_frame, "a"}, {fin | text_frame, "b"}},
       "<failed 1002>"},
      {"text within text", {{text_frame, "a"}, {fin | text_frame, "b"}}, "text [a<failed 1002>"},
      {"open text within text", {{text_frame, "a"}, {text_frame, "b"}}, "text [a<failed 1002>"},
      {"binary within text", {{text_frame, "a"}, {binary_frame, "b"}}, "text [a<failed 1002>"},
      {"a continuation after the end",
       {{text_frame, "a"}, {fin | continuation_frame, "b"}, {continuation_frame, "c"}},
       "text [ab]<failed 1002>"},
      {"five fragments and pings",
       {{text_frame, "1"},
        {continuation_frame, "2"},
        {fin | ping_frame, "p"},
        {continuation_frame, "3"},
        {continuation_frame, "4"},
        {fin | ping_frame, "q"},
        {fin | continuation_frame, "5"}},
       "text [12<ping p>34<ping q>5]"},
      {"two messages",
       {{binary_frame, "a"},
        {fin | continuation_frame, "b"},
        {text_frame, "c"},
        {fin | continuation_frame, "d"}},
       "binary [ab]text [cd]"},
      {"a pong between",
       {{binary_frame, "a"}, {fin | pong_frame, "p"}, {fin | continuation_frame, "b"}},
       "binary [a<pong p>b]"},
      {"a close between",
       {{text_frame, "a"}, {fin | close_frame}, {fin | continuation_frame, "b"}},
       "text [a<close 1005 >"},
  });
}

/// A text of class 6: the bytes that valid text can have, and those behind them. A text that ends
/// within a character has `ends` false, and fails at its end.
struct Text {
  std::string before;
  std::string after = {};  // begins with an impossible byte, or is empty
  bool ends = true;
};

const std::string kosme = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5";

/// The first and the last sequences of each length, boundaries, and non-characters.
std::vector<Text> valid_texts() {
  std::vector<Text> texts;
  for (const std::string& each :
       {std::string("Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4\xc3\xbc-UTF-8!!"), kosme,
        kosme + "\xf4\x8f\xbf\xbf", std::string("\0", 1), std::string("\xc2\x80"),
        std::string("\xe0\xa0\x80"), std::string("\xf0\x90\x80\x80"), std::string("\x7f"),
        std::string("\xdf\xbf"), std::string("\xef\xbf\xbf"), std::string("\xf4\x8f\xbf\xbf"),
        std::string("\xed\x9f\xbf"), std::string("\xee\x80\x80"), std::string("\xef\xbf\xbd"),
        std::string("\xf0\x9f\xbf\xbf"), std::string("\xef\xbf\xbe"),
        std::string("\xef\xb7\x90")}) {
    texts.push_back({each});
  }
  return texts;
}

/// Bytes that are invalid at their start.
std::vector<Text> impossible_starts() {
  std::vector<Text> texts;
  for (const char* const each :
       {"\x80", "\xbf", "\x80\xbf", "\xf8 ", "\xfc ", "\xfe", "\xff", "\xfe\xfe\xff\xff",
        // Sequences of five and six bytes, and beyond U+10FFFF.
        "\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80", "\xfb\xbf\xbf\xbf\xbf",
        "\xfd\xbf\xbf\xbf\xbf\xbf", "\xf7\xbf\xbf\xbf", "\xf5\x80\x80\x80",
        // Overlong sequences.
        "\xc0\xaf", "\xc1\xbf", "\xc0\x80", "\xf8\x80\x80\x80\xaf"}) {
    texts.push_back({"", each});
    texts.push_back({kosme, each});
  }
  return texts;
}

/// Sequences that are invalid behind their start.
std::vector<Text> impossible_ends() {
  std::vector<Text> texts;
  // First bytes alone, and characters without their last bytes.
  for (const char* const each : {"\xc2", "\xdf", "\xe0", "\xef", "\xf0", "\xf4", "\xe0\xa0",
                                 "\xf0\x90", "\xf0\x90\x80", "\xef\xbf", "\xe2\x82"}) {
    texts.push_back({each, " "});
    texts.push_back({each, "\xe2\x82\xac"});
    texts.push_back({each, "", false});
    texts.push_back({kosme + each, "", false});
  }
  // Overlong sequences.
  texts.push_back({"\xe0", "\x80\xaf"});
  texts.push_back({"\xe0", "\x9f\xbf"});
  texts.push_back({"\xf0", "\x80\x80\xaf"});
  texts.push_back({"\xf0", "\x8f\xbf\xbf"});
  // Surrogates, alone and in a pair, and beyond U+10FFFF.
  for (const char* const each : {"\xa0\x80", "\xad\xbf", "\xae\x80", "\xaf\xbf", "\xb0\x80",
                                 "\xbf\xbf", "\xa0\x80\xed\xb0\x80"}) {
    texts.push_back({"\xed", each});
    texts.push_back({kosme + "\xed", each});
  }
  texts.push_back({"\xf4", "\x90\x80\x80"});
  texts.push_back({kosme + "\xf4", "\x90\x80\x80"});
  return texts;
}

std::vector<Text> texts() {
  std::vector<Text> all = valid_texts();
  for (const std::vector<Text>& more : {impossible_starts(), impossible_ends()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

TEST(WsCases, Class6FailsAtTheFirstImpossibleByte) {
  std::vector<Case> cases;
  for (const Text& each : texts()) {
    const bool is_valid = each.after.empty() && each.ends;
    const std::string bytes = each.before + each.after;
    const std::string text_events =
        is_valid ? "text [" + each.before + "]"
                 : (each.before.empty() ? "" : "text [" + each.before) + "<failed 1007>";
    cases.push_back({"one frame", {{fin | text_frame, bytes}}, text_events});
    // One fragment for each byte, and empty ones.
    Case fragments{"fragments of a byte", {{text_frame}}, text_events};
    for (const char byte : bytes)
      fragments.parts.push_back({continuation_frame, std::string(1, byte)});
    fragments.parts.push_back({fin | continuation_frame});
    cases.push_back(fragments);
    cases.push_back({"binary", {{fin | binary_frame, bytes}}, "binary [" + bytes + "]"});
    // A ping between two halves that may split a character.
    const std::size_t half = each.before.size() / 2;
    if (half != 0) {
      std::string events = text_events;
      events.insert(std::string_view("text [").size() + half, "<ping >");
      cases.push_back({"a ping between",
                       {{text_frame, bytes.substr(0, half)},
                        {fin | ping_frame},
                        {fin | continuation_frame, bytes.substr(half)}},
                       events});
    }
  }
  expect_all(cases);
}

TEST(WsCases, Class6FailsBeforeTheEndOfTheMessage) {
  for (const WsRole role : {WsRole::server, WsRole::client}) {
    // The frame announces more bytes than arrive: the failure does not wait for them.
    std::string input = frame_to(role, fin | text_frame, "abc\xff" + std::string(200, 'x'));
    input.resize(input.size() - 200);
    WsDriver driver(role);
    EXPECT_EQ(driver.feed(input), "text [abc<failed 1007>");
    EXPECT_EQ(driver.take_sent(), "close [1007 ]");
  }
}

TEST(WsCases, Class6ChecksEachMessageAlone) {
  expect_all({
      {"a binary message with half a character",
       {{fin | binary_frame, "\xe2\x82"}, {fin | text_frame, "\xe2\x82\xac"}},
       "binary [\xe2\x82]text [\xe2\x82\xac]"},
      {"a ping with bytes",
       {{text_frame, "\xe2\x82"}, {fin | ping_frame, "\xff"}, {fin | continuation_frame, "\xac"}},
       "text [\xe2\x82<ping \xff>\xac]"},
  });
}

TEST(WsCases, Class7ReadsClosePayloads) {
  const auto code = [](int value) { return number(static_cast<std::uint64_t>(value), 2); };
  const std::string longest(123, 'r');
  std::vector<Case> cases{
      {"a message behind",
       {{fin | close_frame, code(1000)}, {fin | text_frame, "x"}},
       "<close 1000 >"},
      {"a ping behind",
       {{fin | close_frame, code(1000)}, {fin | ping_frame, "x"}},
       "<close 1000 >"},
      {"a second close",
       {{fin | close_frame, code(1000)}, {fin | close_frame, code(1001)}},
       "<close 1000 >"},
      {"a message before",
       {{fin | text_frame, "x"}, {fin | close_frame, code(1000)}},
       "text [x]<close 1000 >"},
      {"no payload", {{fin | close_frame}}, "<close 1005 >"},
      {"one byte", {{fin | close_frame, "a"}}, "<failed 1002>"},
      {"a reason", {{fin | close_frame, code(1000) + "Hello"}}, "<close 1000 Hello>"},
      {"the longest reason",
       {{fin | close_frame, code(1000) + longest}},
       "<close 1000 " + longest + ">"},
      {"a longer reason", {{fin | close_frame, code(1000) + longest + "x"}}, "<failed 1002>"},
      {"a reason that is not UTF-8", {{fin | close_frame, code(1000) + "a\xff"}}, "<failed 1007>"},
      {"a reason that is cut off",
       {{fin | close_frame, code(1000) + "a\xe2\x82"}},
       "<failed 1007>"},
      {"a reason with a surrogate",
       {{fin | close_frame, code(1000) + "\xed\xa0\x80"}},
       "<failed 1007>"},
  };
  for (const int valid : {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014,
                          3000, 3999, 4000, 4999}) {
    cases.push_back({"a valid code",
                     {{fin | close_frame, code(valid)}},
                     "<close " + std::to_string(valid) + " >"});
  }
  for (const int invalid :
       {0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65'535}) {
    cases.push_back({"an invalid code", {{fin | close_frame, code(invalid)}}, "<failed 1002>"});
    cases.push_back(
        {"an invalid code, a reason", {{fin | close_frame, code(invalid) + "x"}}, "<failed 1002>"});
  }
  expect_all(cases);
}

TEST(WsCases, Class7AnswersWithTheCodeOfThePeer) {
  for (const int value : {1000, 1001, 1014, 3000, 4999}) {
    WsDriver driver;
    driver.feed(
        driver.frame(fin | close_frame, number(static_cast<std::uint64_t>(value), 2) + "why"));
    EXPECT_EQ(driver.take_sent(), "close [" + std::to_string(value) + " ]");
  }
  WsDriver driver;
  driver.feed(driver.frame(fin | close_frame, number(1005, 2)));
  EXPECT_EQ(driver.take_sent(), "close [1002 ]");
}

}  // namespace
}  // namespace weir::http::session_cases_test
