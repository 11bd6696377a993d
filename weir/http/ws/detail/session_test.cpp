// Tests of WebSocket sessions: messages, limits, pings, the closing handshake and output.
#include "weir/http/ws/detail/session.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/test/heap_fixture.hpp"
#include "weir/http/test/ws_frames.hpp"
#include "weir/http/test/ws_session_fixture.hpp"

namespace weir::http::ws_session_test {
namespace {

using namespace ws;

constexpr WsRole roles[] = {WsRole::server, WsRole::client};

TEST(WsSession, ReturnsAWholeMessageAsOneEventInPlace) {
  std::string input = frame_to(WsRole::server, fin | text_frame, "Hello");
  const WebSocketLimits limits;
  WsSession session(WsRole::server, limits);
  const WsEvent event = session.next({reinterpret_cast<std::byte*>(input.data()), input.size()});
  EXPECT_EQ(event.kind, WsEvent::Kind::message);
  EXPECT_TRUE(event.is_text && event.begins && event.ends);
  EXPECT_EQ(to_text(event.bytes).data(), input.data() + 6);
  EXPECT_EQ(to_text(event.bytes), "Hello");
  EXPECT_EQ(event.consumed, input.size());
  EXPECT_FALSE(session.has_control());
}

TEST(WsSession, JoinsFragmentsAroundControlFrames) {
  expect_events(
      [](WsRole role) {
        return frame_to(role, text_frame, "ab") + frame_to(role, fin | ping_frame, "1") +
               frame_to(role, continuation_frame, "") + frame_to(role, continuation_frame, "cd") +
               frame_to(role, fin | pong_frame, "2") +
               frame_to(role, fin | continuation_frame, "ef") + frame_to(role, binary_frame, "") +
               frame_to(role, fin | continuation_frame, "") + frame_to(role, fin | text_frame, "");
      },
      "text [ab<ping 1>cd<pong 2>ef]binary []text []");
}

TEST(WsSession, KnowsWhereItIs) {
  WsDriver driver;
  EXPECT_TRUE(driver.session().between_frames());
  driver.feed(driver.frame(text_frame, "ab").substr(0, 1));
  EXPECT_FALSE(driver.session().between_frames());
  EXPECT_FALSE(driver.session().within_message());
  driver.feed(driver.frame(text_frame, "ab").substr(1));
  EXPECT_TRUE(driver.session().between_frames());
  EXPECT_TRUE(driver.session().within_message());
  driver.feed(driver.frame(fin | continuation_frame));
  EXPECT_FALSE(driver.session().within_message());
}

TEST(WsSession, LimitsTheBytesOfAMessage) {
  const WebSocketLimits limits{.message_bytes_max = 10};
  expect_events([](WsRole role) { return frame_to(role, fin | text_frame, "0123456789"); },
                "text [0123456789]", limits);
  expect_events([](WsRole role) { return frame_to(role, fin | text_frame, "0123456789x"); },
                "<failed 1009>", limits);
  expect_events(
      [](WsRole role) {
        return frame_to(role, text_frame, "01234") + frame_to(role, continuation_frame, "56789") +
               frame_to(role, fin | continuation_frame, "") +
               frame_to(role, fin | text_frame, "next");
      },
      "text [0123456789]text [next]", limits);
  expect_events(
      [](WsRole role) {
        return frame_to(role, text_frame, "01234") + frame_to(role, continuation_frame, "56789") +
               frame_to(role, fin | continuation_frame, "x");
      },
      "text [0123456789<failed 1009>", limits);
}

TEST(WsSession, RejectsALargeFrameAtItsHeader) {
  for (const std::uint64_t length : {std::uint64_t{1'048'577}, (std::uint64_t{1} << 63) - 1}) {
    WsDriver driver(WsRole::client);
    EXPECT_EQ(driver.feed(header(fin | binary_frame, length), 1), "<failed 1009>");
    WsDriver second(WsRole::client);
    second.feed(header(binary_frame, 1) + "x");
    EXPECT_EQ(second.feed(header(fin | continuation_frame, length), 1), "<failed 1009>");
  }
}

TEST(WsSession, HoldsNothingForFragments) {
  const WebSocketLimits limits;
  WsSession session(WsRole::server, limits);
  const std::string fragment = frame_to(WsRole::server, continuation_frame, "x");
  std::string input = frame_to(WsRole::server, binary_frame, "x");
  const auto feed = [&](std::string_view frame) {
    input = frame;
    const WsEvent event = session.next({reinterpret_cast<std::byte*>(input.data()), input.size()});
    return event.bytes.size();
  };
  input.reserve(64);
  const std::uint64_t before = TestHeap::news;
  const std::size_t bytes_before = allocated_bytes();
  std::size_t bytes = feed(frame_to(WsRole::server, binary_frame, "x"));
  for (int count = 1; count < 131'072; ++count) bytes += feed(fragment);
  EXPECT_EQ(bytes, 131'072u);
  EXPECT_FALSE(session.failed());
  EXPECT_EQ(allocated_bytes(), bytes_before);
  if (TestHeap::replaced) {
    EXPECT_LE(TestHeap::news - before, 2u) << "the frame of this test";
  }
  EXPECT_LE(sizeof(WsSession), 384u);
}

TEST(WsSession, AnswersAPingWithItsBytes) {
  for (const WsRole role : roles) {
    for (const std::size_t size : {0U, 1U, 5U, 125U}) {
      std::string payload(size, '\0');
      for (std::size_t at = 0; at < size; ++at) payload[at] = static_cast<char>(at * 3);
      for (const std::size_t step : {whole, std::size_t{1}}) {
        WsDriver driver(role);
        EXPECT_EQ(driver.feed(driver.frame(fin | ping_frame, payload), step),
                  "<ping " + payload + ">");
        EXPECT_TRUE(driver.session().has_control());
        EXPECT_EQ(driver.take_sent(), "pong [" + payload + "]");
        EXPECT_FALSE(driver.session().has_control());
      }
    }
  }
}

TEST(WsSession, AnswersTheNewestOfManyPings) {
  WsDriver driver;
  for (int count = 0; count < 1'000; ++count) {
    driver.feed(driver.frame(fin | ping_frame, std::to_string(count)));
  }
  EXPECT_EQ(driver.take_sent(), "pong [999]");
  driver.answers = true;
  driver.feed(driver.frame(fin | ping_frame, "a") + driver.frame(fin | ping_frame, "b"));
  EXPECT_EQ(driver.take_sent(), "pong [a]pong [b]");
}

TEST(WsSession, AnswersNoPong) {
  WsDriver driver;
  EXPECT_EQ(driver.feed(driver.frame(fin | pong_frame, "x")), "<pong x>");
  EXPECT_FALSE(driver.session().has_control());
}

TEST(WsSession, AnswersACloseOnceAndIgnoresWhatFollows) {
  for (const WsRole role : roles) {
    for (const std::size_t step : {whole, std::size_t{1}}) {
      WsDriver driver(role);
      const std::string input = driver.frame(fin | close_frame, number(1000, 2) + "bye");
      const std::string more = driver.frame(fin | text_frame, "x") +
                               driver.frame(fin | ping_frame, "x") +
                               driver.frame(fin | close_frame, number(1001, 2)) + "\xff\xff\xff";
      EXPECT_TRUE(driver.session().may_send());
      EXPECT_EQ(driver.feed(input + more, step), "<close 1000 bye>");
      EXPECT_TRUE(driver.session().close_received());
      EXPECT_FALSE(driver.session().may_send());
      EXPECT_FALSE(driver.session().finished());
      EXPECT_EQ(driver.take_sent(), "close [1000 ]");
      EXPECT_TRUE(driver.session().finished());
      EXPECT_EQ(driver.feed(more, step), "");
      EXPECT_EQ(driver.take_sent(), "");
    }
  }
}

TEST(WsSession, AnswersACloseWithoutACodeAlike) {
  WsDriver driver;
  EXPECT_EQ(driver.feed(driver.frame(fin | close_frame)), "<close 1005 >");
  EXPECT_EQ(driver.take_sent(), "close []");
}

TEST(WsSession, AnswersAPingBeforeAClose) {
  WsDriver driver;
  EXPECT_EQ(driver.feed(driver.frame(fin | ping_frame, "x") + driver.frame(fin | close_frame)),
            "<ping x><close 1005 >");
  EXPECT_EQ(driver.take_sent(), "pong [x]close []");
}

TEST(WsSession, ClosesWithinAMessageOfThePeer) {
  WsDriver driver;
  EXPECT_EQ(driver.feed(driver.frame(text_frame, "ab") + driver.frame(fin | close_frame)),
            "text [ab<close 1005 >");
  EXPECT_EQ(driver.take_sent(), "close []");
}

TEST(WsSession, WaitsForTheAnswerToItsOwnClose) {
  for (const WsRole role : roles) {
    WsDriver driver(role);
    char room[ws_control_frame_max];
    driver.feed(driver.frame(fin | ping_frame, "dropped"));
    const char* const end =
        driver.session().write_close(WebSocketCloseCode::going_away, "later", driver.mask(), room);
    EXPECT_EQ(driver.describe_frame(between(room, end)), "close [1001 later]");
    EXPECT_FALSE(driver.session().may_send());
    EXPECT_FALSE(driver.session().has_control()) << "nothing follows a Close";
    EXPECT_EQ(
        driver.feed(driver.frame(fin | text_frame, "x") + driver.frame(fin | ping_frame, "y")),
        "text [x]<ping y>");
    EXPECT_FALSE(driver.session().has_control());
    EXPECT_FALSE(driver.session().finished());
    EXPECT_EQ(driver.feed(driver.frame(fin | close_frame, number(1001, 2))), "<close 1001 >");
    EXPECT_TRUE(driver.session().finished());
    EXPECT_FALSE(driver.session().has_control());
  }
}

TEST(WsSession, SendsNoSecondCloseForAViolation) {
  WsDriver driver;
  char room[ws_control_frame_max];
  driver.session().write_close(WebSocketCloseCode::normal, "", driver.mask(), room);
  EXPECT_EQ(driver.feed(driver.frame(0x40 | fin | text_frame)), "<failed 1002>");
  EXPECT_FALSE(driver.session().has_control());
  EXPECT_TRUE(driver.session().finished());
}

TEST(WsSession, ClosesOnceForAViolationAndReadsNoMore) {
  for (const WsRole role : roles) {
    WsDriver driver(role);
    EXPECT_EQ(
        driver.feed(driver.frame(fin | ping_frame, "x") + driver.frame(fin | continuation_frame) +
                    driver.frame(fin | text_frame, "x")),
        "<ping x><failed 1002>");
    EXPECT_TRUE(driver.session().failed());
    EXPECT_FALSE(driver.session().finished());
    EXPECT_EQ(driver.take_sent(), "pong [x]close [1002 ]");
    EXPECT_TRUE(driver.session().finished());
    EXPECT_EQ(driver.feed(driver.frame(fin | text_frame, "x")), "<failed 1002>");
    EXPECT_EQ(driver.take_sent(), "");
  }
}

TEST(WsSession, CutsALongReasonBetweenCharacters) {
  const std::string long_text(122, 'a');
  struct Case {
    std::string reason;
    std::string sent;
  };
  for (const Case& each : {
           Case{"", ""},
           Case{long_text + "bc", long_text + "b"},
           Case{long_text + "\xC3\xA4", long_text},
           Case{long_text.substr(1) + "\xC3\xA4", long_text.substr(1) + "\xC3\xA4"},
           Case{"ab\xFF", "ab"},
           Case{"ab\xC3", "ab"},
       }) {
    WsDriver driver;
    char room[ws_control_frame_max];
    const char* const end =
        driver.session().write_close(WebSocketCloseCode::normal, each.reason, driver.mask(), room);
    EXPECT_EQ(driver.describe_frame(between(room, end)), "close [1000 " + each.sent + "]");
  }
}

TEST(WsSession, WritesMessagesThatThePeerReads) {
  for (const WsRole role : roles) {
    const WsRole peer_role = role == WsRole::server ? WsRole::client : WsRole::server;
    WsDriver driver(role);
    WsDriver peer(peer_role);
    std::string out;
    const auto send = [&](WsOpcode opcode, bool final, std::string_view payload) {
      char room[ws_header_size_max];
      const char* const end =
          driver.session().write_header({opcode, final, payload.size(), driver.mask()}, room);
      out += between(room, end);
      out += role == WsRole::client ? masked(payload) : std::string(payload);
    };
    const auto send_ping = [&](std::string_view payload) {
      char room[ws_control_frame_max];
      const char* const end = driver.session().write_ping(to_bytes(payload), driver.mask(), room);
      out += between(room, end);
    };
    const std::string long_text(70'000, 'x');
    send(WsOpcode::text, true, "one");
    send(WsOpcode::text, false, "t");
    send_ping("p");
    send(WsOpcode::text, false, "w");
    send(WsOpcode::text, true, "o");
    send(WsOpcode::binary, true, long_text);
    EXPECT_EQ(peer.feed(out, 1'000), "text [one]text [t<ping p>wo]binary [" + long_text + "]");
  }
}

TEST(WebSocketCloseCode, IsValidInTheRangesOfTheRegistry) {
  for (unsigned number = 0; number <= 0xFFFF; ++number) {
    const bool is_protocol =
        (number >= 1000 && number <= 1003) || (number >= 1007 && number <= 1014);
    const bool is_private = number >= 3000 && number < 5000;
    ASSERT_EQ(is_valid_close_code(static_cast<WebSocketCloseCode>(number)),
              is_protocol || is_private)
        << number;
  }
}

}  // namespace
}  // namespace weir::http::ws_session_test
