// Tests of the life of HTTP/2 sessions and streams, and of the violations that a session detects.
#include "weir/http/detail/h2/session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/detail/block_pool.hpp"
#include "weir/http/test/h2_frames.hpp"
#include "weir/http/test/h2_session_fixture.hpp"

namespace weir::http::h2_session_test {
namespace {

using namespace frames;

constexpr std::string_view preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::uint8_t end_stream = FrameFlag::end_stream;
constexpr std::uint8_t end_headers = FrameFlag::end_headers;

TEST(H2Session, SendsItsSettingsAndWindow) {
  H2Limits limits;
  limits.connect_protocol = true;
  H2Session session(H2Role::server, limits, Instant());
  session.start();
  EXPECT_EQ(read_frames(session.output().text()),
            "setting 4 65536\nsetting 6 65536\nsetting 3 128\nsetting 9 1\nsetting 8 1\n"
            "settings_end\nwindow_update 0 983041\n");
}

TEST(H2Session, AcceptsThePrefaceInAnyPieces) {
  for (const std::size_t step : {1U, 2U, 23U, 24U, 25U}) {
    SessionDriver driver;
    driver.feed(std::string(preface) + settings(), step);
    EXPECT_EQ(driver.take_events(), "settings\n");
    EXPECT_EQ(driver.take_sent(), "settings_ack\n");
  }
}

TEST(H2Session, RejectsAnotherPreface) {
  SessionDriver driver;
  driver.feed("PRI * HTTP/2.0\r\n\r\nSM\r\n\rx");
  EXPECT_EQ(driver.take_events(), "failed e1\n");
  EXPECT_EQ(driver.take_sent(), "goaway 0 e1\n");
  EXPECT_TRUE(driver.session().failed());
  SessionDriver without;
  without.feed(headers(1, "GET"));
  EXPECT_EQ(without.take_events(), "failed e1\n");
}

TEST(H2Session, RequiresSettingsAfterThePreface) {
  for (const std::string& first :
       {headers(1, "x"), ping(), frame(FrameType::settings, FrameFlag::ack, 0), window_update(0, 1),
        frame(static_cast<FrameType>(99), 0, 0)}) {
    for (const std::size_t step : {std::size_t{1'000'000}, preface.size()}) {
      SessionDriver driver;
      driver.feed(std::string(preface) + first, step);
      EXPECT_EQ(driver.take_events(), "failed e1\n");
      EXPECT_EQ(driver.take_sent(), "goaway 0 e1\n");
    }
  }
}

TEST(H2Session, OpensAndEndsARequest) {
  for (const std::size_t step : {1'000'000U, 1U, 10U}) {
    SessionDriver driver;
    driver.handshake();
    driver.feed(headers(1, "GET"), step);
    EXPECT_EQ(driver.take_events(), "open 1 [GET] end\n");
    EXPECT_TRUE(driver.stream(1).remote_ended());
    driver.answer(1, "hello");
    EXPECT_EQ(driver.take_sent(), "block 1 1 f4 [\x88]\ndata 1 5 f1 [hello]\n");
    EXPECT_TRUE(driver.stream(1).closed());
    EXPECT_FALSE(driver.stream(1).was_reset());
    EXPECT_EQ(driver.session().streams_held(), 1u);
    driver.release(1);
    EXPECT_EQ(driver.session().streams_held(), 0u);
  }
}

TEST(H2Session, ReturnsAWholeBlockInPlace) {
  SessionDriver driver;
  driver.handshake();
  const std::string input = headers(1, "GET");
  const H2Event event = driver.session().next(to_bytes(input), Instant());
  EXPECT_EQ(to_text(event.bytes).data(), input.data() + frame_header_size);
  EXPECT_EQ(event.consumed, input.size());
  driver.session().reject(H2Error::protocol_error);
  EXPECT_EQ(driver.take_sent(), "reset 1 1\n");
}

TEST(H2Session, NeverTakesThePayloadOfAFrameForARequest) {
  struct Case {
    std::string before;
    FrameType type;
    std::uint8_t flags;
    std::uint32_t stream;
    std::string_view start;  // of the payload, in an input of its own
    std::string events;
  };
  const std::string request = headers(3, "GET");
  const std::string post = headers(1, "POST", end_headers);
  for (const Case& each : {
           Case{post, FrameType::data, 0, 1, "x", "data 1 [x]\ndata 1 [" + request + "]\n"},
           Case{post, FrameType::data, 0, 1, "", "data 1 [" + request + "]\n"},
           Case{"", static_cast<FrameType>(99), 0, 1, "x", ""},
           Case{"", static_cast<FrameType>(99), 0, 0, "", ""},
           Case{"", FrameType::goaway, 0, 0, "12345678", "goaway 825373492 e892745528\n"},
           Case{"", FrameType::headers, end_headers, 1, "x", "open 1 [x" + request + "]\n"},
           Case{headers(1, "a", 0), FrameType::continuation, end_headers, 1, "x",
                "open 1 [ax" + request + "]\n"},
       }) {
    SCOPED_TRACE(static_cast<int>(each.type));
    SessionDriver driver;
    driver.handshake();
    driver.feed(each.before);
    driver.take_events();
    const std::string whole =
        frame(each.type, each.flags, each.stream, std::string(each.start) + request);
    driver.feed(whole.substr(0, whole.size() - request.size()));
    driver.feed(request);
    EXPECT_EQ(driver.take_events(), each.events);
    EXPECT_FALSE(driver.has_stream(3));
    driver.feed(request);
    EXPECT_EQ(driver.take_events(), "open 3 [GET] end\n");
  }
}

TEST(H2Session, AcceptsNoRequestWithinAFieldBlock) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(headers(1, "one", end_stream));
  driver.feed(headers(3, "GET"));
  EXPECT_EQ(driver.take_events(), "failed e1\n");
  EXPECT_EQ(driver.take_sent(), "goaway 0 e1\n");
}

TEST(H2Session, JoinsTheFragmentsOfABlock) {
  for (const std::size_t step : {1'000'000U, 1U, 7U}) {
    SessionDriver driver;
    driver.handshake();
    driver.feed(headers(1, "one ", end_stream) + continuation(1, "", 0) +
                    continuation(1, "two ", 0) + continuation(1, "three"),
                step);
    EXPECT_EQ(driver.take_events(), "open 1 [one two three] end\n");
    driver.feed(headers(3, "", end_stream) + continuation(3, "whole"), step);
    EXPECT_EQ(driver.take_events(), "open 3 [whole] end\n");
  }
}

TEST(H2Session, DeliversABodyAndTrailers) {
  for (const std::size_t step : {1'000'000U, 1U}) {
    SessionDriver driver;
    driver.handshake();
    driver.feed(headers(1, "POST", end_headers) + data(1, ""), step);
    EXPECT_EQ(driver.take_events(), "open 1 [POST]\n");
    driver.feed(data(1, "hello") + headers(1, "trailers"));
    EXPECT_EQ(driver.take_events(), "data 1 [hello]\ntrailers 1 [trailers] end\n");
    EXPECT_TRUE(driver.stream(1).remote_ended());
    EXPECT_FALSE(driver.stream(1).closed());
  }
}

TEST(H2Session, EndsABodyWithItsLastDataFrame) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(headers(1, "POST", end_headers) + data(1, "hello", end_stream));
  EXPECT_EQ(driver.take_events(), "open 1 [POST]\ndata 1 [hello] end\n");
  driver.feed(headers(3, "POST", end_headers) + data(3, "", end_stream));
  EXPECT_EQ(driver.take_events(), "open 3 [POST]\ndata 3 end\n");
}

TEST(H2Session, ComparesTheBodyWithItsLength) {
  struct Case {
    std::string input;
    std::string_view events;
  };
  for (const Case& each : {
           Case{data(1, "hello", end_stream), "data 1 [hello] end\n"},
           Case{data(1, "hel") + data(1, "lo", end_stream), "data 1 [hel]\ndata 1 [lo] end\n"},
           Case{data(1, "hello") + headers(1, "t"), "data 1 [hello]\ntrailers 1 [t] end\n"},
           Case{data(1, "hell", end_stream), "reset 1 e1\n"},
           Case{data(1, "hello!"), "reset 1 e1\n"},
           Case{data(1, "hell") + headers(1, "t"), "data 1 [hell]\ndiscarded 1 [t] end e1\n"},
           Case{data(1, "", end_stream), "reset 1 e1\n"},
       }) {
    SessionDriver driver;
    driver.handshake();
    driver.length = 5;
    driver.feed(headers(1, "POST", end_headers));
    driver.take_events();
    driver.feed(each.input);
    EXPECT_EQ(driver.take_events(), each.events);
    driver.feed(headers(3, "POST"));
    EXPECT_EQ(driver.take_events(), "open 3 [POST] end\nnot accepted\n");
  }
}

TEST(H2Session, AnswersPings) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(ping("01234567") + ping("76543210", FrameFlag::ack));
  EXPECT_EQ(driver.take_events(), "");
  EXPECT_EQ(driver.take_sent(), "ping f1 01234567\n");
  driver.session().send_ping();
  driver.feed(ping("present?", FrameFlag::ack));
  EXPECT_EQ(driver.take_events(), "ping_ack\n");
}

TEST(H2Session, TellsWhenThePeerResetsAStream) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(headers(1, "GET") + rst_stream(1, H2Error::cancel));
  EXPECT_EQ(driver.take_events(), "open 1 [GET] end\nreset 1 e8\n");
  EXPECT_TRUE(driver.stream(1).was_reset());
  EXPECT_EQ(driver.session().send_data(driver.stream(1), to_bytes("late"), true), 0u);
  driver.session().reset(driver.stream(1), H2Error::cancel);
  EXPECT_EQ(driver.take_sent(), "");
}

/// Frames that violate a rule of the session, after a handshake and `before`.
struct Violation {
  const char* name;
  std::string before;
  std::string input;
  H2Error error;
  std::uint32_t stream = 0;  // 0: an error of the connection
};

std::vector<Violation> violations() {
  constexpr auto protocol = H2Error::protocol_error;
  constexpr auto closed = H2Error::stream_closed;
  constexpr auto flow = H2Error::flow_control_error;
  const std::string get = headers(1, "GET");
  const std::string post = headers(1, "POST", end_headers);
  const std::string was_reset = post + rst_stream(1);
  const auto self = [](std::uint8_t flags) {
    return headers(1,
                   u32(1) +
                       "\x10"
                       "GET",
                   static_cast<std::uint8_t>(flags | FrameFlag::priority));
  };
  return {
      {"DATA on an idle stream", "", data(1, "x"), protocol},
      {"RST_STREAM on an idle stream", "", rst_stream(1), protocol},
      {"WINDOW_UPDATE on an idle stream", "", window_update(1, 1), protocol},
      {"WINDOW_UPDATE of 0 on an idle stream", "", window_update(1, 0), protocol},
      {"DATA on a stream of the server", "", data(2, "x"), protocol},
      {"HEADERS with an even stream", "", headers(2, "GET"), protocol},
      {"HEADERS with a lower stream", headers(5, "GET"), headers(3, "GET"), protocol},
      {"DATA after END_STREAM", get, data(1, "x"), closed, 1},
      {"HEADERS after END_STREAM", get, headers(1, "x"), closed, 1},
      {"DATA after RST_STREAM", was_reset, data(1, "x"), closed, 1},
      {"HEADERS after RST_STREAM", was_reset, headers(1, "x"), closed, 1},
      {"trailers without END_STREAM", post, headers(1, "t", end_headers), protocol, 1},
      {"HEADERS that depend on themselves", "", self(end_headers | end_stream), protocol, 1},
      {"trailers that depend on themselves", post, self(end_headers | end_stream), protocol, 1},
      {"WINDOW_UPDATE of 0", post, window_update(1, 0), protocol, 1},
      {"WINDOW_UPDATE of 0 after RST_STREAM", was_reset, window_update(1, 0), protocol, 1},
      {"WINDOW_UPDATE beyond 2^31-1", "", window_update(0, 0x7FFFFFFF - 65'534), flow},
      {"WINDOW_UPDATE beyond 2^31-1 on a stream", post, window_update(1, 0x7FFFFFFF - 65'534), flow,
       1},
      {"PRIORITY of 4 bytes", post, frame(FrameType::priority, 0, 1, "1234"),
       H2Error::frame_size_error, 1},
      {"ENABLE_PUSH of 2", "", settings(setting(SettingId::enable_push, 2)), protocol},
      {"INITIAL_WINDOW_SIZE of 2^31", "",
       settings(setting(SettingId::initial_window_size, 0x80000000)), flow},
      {"INITIAL_WINDOW_SIZE beyond a stream's window", post + window_update(1, 1),
       settings(setting(SettingId::initial_window_size, 0x7FFFFFFF)), flow},
      {"MAX_FRAME_SIZE of 16,383", "", settings(setting(SettingId::max_frame_size, 16'383)),
       protocol},
      {"MAX_FRAME_SIZE of 2^24", "", settings(setting(SettingId::max_frame_size, 1U << 24)),
       protocol},
      {"ENABLE_CONNECT_PROTOCOL of 2", "", settings(setting(SettingId::enable_connect_protocol, 2)),
       protocol},
      {"ENABLE_CONNECT_PROTOCOL that is withdrawn",
       settings(setting(SettingId::enable_connect_protocol, 1)),
       settings(setting(SettingId::enable_connect_protocol, 0)), protocol},
      {"NO_RFC7540_PRIORITIES of 2", "", settings(setting(SettingId::no_rfc7540_priorities, 2)),
       protocol},
      {"NO_RFC7540_PRIORITIES that changes", "",
       settings(setting(SettingId::no_rfc7540_priorities, 1)), protocol},
      {"a frame that is invalid alone", "", ping("7 bytes"), H2Error::frame_size_error},
  };
}

TEST(H2Session, AnswersEachViolationWithItsErrorCode) {
  for (const Violation& each : violations()) {
    for (const std::size_t step : {1'000'000U, 1U}) {
      SCOPED_TRACE(each.name);
      SessionDriver driver;
      driver.handshake();
      driver.feed(each.before);
      driver.take_sent();
      driver.take_events();
      driver.feed(each.input + ping(), step);
      const auto code = std::to_string(static_cast<int>(each.error));
      const std::string sent = driver.take_sent();
      if (each.stream == 0) {
        EXPECT_TRUE(sent.starts_with("goaway ") && sent.ends_with(" e" + code + "\n")) << sent;
        EXPECT_TRUE(driver.take_events().ends_with("failed e" + code + "\n"));
      } else {
        EXPECT_EQ(sent,
                  "reset " + std::to_string(each.stream) + " " + code + "\nping f1 8 bytes.\n");
        EXPECT_FALSE(driver.session().failed());
      }
    }
  }
}

TEST(H2Session, FailsWhenAnEndedStreamBeginsAgain) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(headers(1, "GET"));
  driver.answer(1);
  driver.release(1);
  driver.take_sent();
  driver.feed(headers(1, "GET"));
  EXPECT_EQ(driver.take_sent(), "goaway 1 e5\n");
}

TEST(H2Session, AnswersFramesOfStreamsThatItHasForgotten) {
  SessionDriver driver;
  driver.handshake();
  for (std::uint32_t id = 1; id < 100; id += 2) {
    driver.feed(headers(id, "GET"));
    driver.answer(id);
    driver.release(id);
  }
  driver.take_sent();
  driver.take_events();
  driver.feed(headers(1, "t") + data(3, "x"));
  EXPECT_EQ(driver.take_sent(), "reset 1 5\nreset 3 5\n");
  EXPECT_EQ(driver.take_events(), "discarded 1 [t] end e5\n");
}

TEST(H2Session, AcceptsLateFramesOnAStreamThatItHasReset) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(headers(1, "POST", end_headers));
  driver.session().reset(driver.stream(1), H2Error::no_error);
  EXPECT_EQ(driver.take_sent(), "reset 1 0\n");
  driver.take_events();
  driver.feed(data(1, "late") + window_update(1, 5) + rst_stream(1) + headers(1, "trailers"));
  EXPECT_EQ(driver.take_sent(), "");
  EXPECT_EQ(driver.take_events(), "discarded 1 [trailers] end\n");
}

TEST(H2Session, RefusesStreamsBeyondItsLimitAndStillDecodesThem) {
  H2Limits limits;
  limits.streams_max = 2;
  SessionDriver driver(limits);
  driver.handshake();
  driver.feed(headers(1, "a") + headers(3, "b") + headers(5, "c"));
  EXPECT_EQ(driver.take_events(), "open 1 [a] end\nopen 3 [b] end\ndiscarded 5 [c] end e7\n");
  EXPECT_EQ(driver.take_sent(), "reset 5 7\n");
  driver.answer(1);
  driver.take_sent();
  driver.feed(headers(7, "d"));
  EXPECT_EQ(driver.take_events(), "open 7 [d] end\n");
  EXPECT_EQ(driver.take_sent(), "");
}

TEST(H2Session, AcceptsLateFramesOnStreamsThatItHasRefused) {
  H2Limits limits;
  limits.streams_max = 1;
  SessionDriver driver(limits);
  driver.handshake();
  driver.feed(headers(1, "a", end_headers) + headers(3, "b", end_headers));
  EXPECT_EQ(driver.take_sent(), "reset 3 7\n");
  driver.take_events();
  driver.feed(data(3, "late") + headers(3, "trailers"));
  EXPECT_EQ(driver.take_events(), "discarded 3 [trailers] end\n");
  EXPECT_EQ(driver.take_sent(), "");
}

TEST(H2Session, CountsResetStreamsUntilTheyAreReleased) {
  H2Limits limits;
  limits.streams_max = 4;
  SessionDriver driver(limits);
  driver.handshake();
  for (std::uint32_t id = 1; id < 2 * streams_held_max(limits); id += 2) {
    driver.feed(headers(id, "a") + rst_stream(id));
  }
  EXPECT_EQ(driver.session().streams_held(), streams_held_max(limits));
  EXPECT_EQ(driver.take_sent(), "");
  driver.feed(headers(101, "b"));
  EXPECT_EQ(driver.take_sent(), "reset 101 7\n");
  driver.release(1);
  driver.feed(headers(103, "c"));
  EXPECT_TRUE(driver.has_stream(103));
}

TEST(H2Session, CutsALongFieldBlockIntoFrames) {
  for (const std::size_t size : {0U, 1U, 16'384U, 16'385U, 40'000U}) {
    SessionDriver driver;
    driver.handshake();
    driver.feed(headers(1, "GET"));
    std::string block;
    for (std::size_t at = 0; at < size; ++at) block += static_cast<char>('a' + at % 23);
    const auto write = [&](char* out) {
      if (size != 0) std::memcpy(out, block.data(), size);
      return out + size;
    };
    driver.session().send_headers(driver.stream(1), size + 100, write, true);
    const Buffer sent = driver.session().take_output();
    std::string joined;
    FrameReader reader;
    Bytes rest = sent.bytes();
    for (FrameEvent event = reader.next(rest); event.kind == FrameEvent::Kind::block;
         event = reader.next(rest)) {
      joined += to_text(event.bytes);
      rest = rest.subspan(event.consumed);
      const bool whole = (event.flags & end_headers) != 0;
      EXPECT_EQ(whole, joined.size() == size);
      EXPECT_EQ((event.flags & end_stream) != 0, event.type == FrameType::headers);
    }
    EXPECT_TRUE(rest.empty());
    EXPECT_EQ(joined, block);
    EXPECT_TRUE(driver.stream(1).closed());
  }
}

TEST(H2Session, DrainsInTwoPhases) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(headers(1, "a"));
  driver.session().begin_drain();
  driver.session().begin_drain();
  EXPECT_EQ(driver.take_sent(), "goaway 2147483647 e0\nping f0 drained?\n");
  driver.feed(headers(3, "b"));
  EXPECT_TRUE(driver.has_stream(3));
  driver.feed(ping("drained?", FrameFlag::ack));
  EXPECT_EQ(driver.take_sent(), "goaway 3 e0\n");
  driver.take_events();
  driver.feed(headers(5, "c", end_headers) + data(5, "late") + headers(5, "trailers"));
  EXPECT_EQ(driver.take_events(), "discarded 5 [c]\ndiscarded 5 [trailers] end\n");
  EXPECT_EQ(driver.take_sent(), "");
  EXPECT_FALSE(driver.session().drained());
  driver.answer(1);
  driver.answer(3);
  driver.release_closed();
  EXPECT_TRUE(driver.session().drained());
}

TEST(H2Session, NeverRaisesTheLastStreamOfGoaway) {
  SessionDriver driver;
  driver.handshake();
  driver.feed(headers(1, "a"));
  driver.session().finish_drain();
  driver.feed(headers(3, "b") + ping("7 bytes"));
  EXPECT_EQ(driver.take_sent(), "goaway 1 e0\ngoaway 1 e6\n");
}

TEST(H2Session, AppliesPriorities) {
  SessionDriver driver;
  driver.handshake();
  const auto update = [](std::uint32_t id, std::string_view value) {
    return frame(FrameType::priority_update, 0, 0, u32(id).append(value));
  };
  driver.feed(update(3, "u=6") + headers(1, "a") + update(1, "u=1, i") + headers(3, "b") +
              headers(5, "c"));
  EXPECT_EQ(driver.stream(1).priority(), (Priority{1, true}));
  EXPECT_EQ(driver.stream(3).priority(), (Priority{6, false}));
  EXPECT_EQ(driver.stream(5).priority(), Priority());
  driver.feed(update(2, "u=1") + update(99, "u=1") + rst_stream(5) + update(5, "u=1"));
  EXPECT_FALSE(driver.session().failed());
}

TEST(H2Session, KeepsTheSettingsOfThePeer) {
  SessionDriver driver;
  driver.handshake(setting(SettingId::header_table_size, 100) +
                   setting(SettingId::max_concurrent_streams, 7) +
                   setting(SettingId::max_header_list_size, 8) +
                   setting(SettingId::enable_connect_protocol, 1) + setting(SettingId{77}, 1));
  const H2PeerSettings& peer = driver.session().peer();
  EXPECT_EQ(peer.header_table_size, 100u);
  EXPECT_EQ(peer.max_concurrent_streams, 7u);
  EXPECT_EQ(peer.max_header_list_size, 8u);
  EXPECT_TRUE(peer.connect_protocol);
}

TEST(H2Session, ServesAsAClient) {
  SessionDriver driver({}, H2Role::client);
  H2Session& session = driver.session();
  driver.feed(settings(setting(SettingId::max_concurrent_streams, 1)));
  driver.take_sent();
  driver.take_events();
  H2Stream first;
  H2Stream second;
  ASSERT_TRUE(session.open(first));
  EXPECT_FALSE(session.open(second));
  session.send_headers(first, 1, [](char* out) { return *out = 'G', out + 1; }, true);
  EXPECT_EQ(driver.take_sent(), "block 1 1 f5 [G]\n");
  driver.feed(headers(1, "103", end_headers) + headers(1, "200", end_headers));
  EXPECT_EQ(driver.take_events(), "headers 1 [103]\nheaders 1 [200]\n");
  session.final_head(first);
  driver.feed(data(1, "body") + headers(1, "t"));
  EXPECT_EQ(driver.take_events(), "data 1 [body]\ntrailers 1 [t] end\n");
  EXPECT_TRUE(first.closed());
  session.release(first);
  driver.feed(goaway(1));
  EXPECT_EQ(driver.take_events(), "goaway 1\n");
  EXPECT_FALSE(session.open(second));
  driver.feed(headers(2, "pushed"));
  EXPECT_EQ(driver.take_sent(), "goaway 0 e1\n");
}

TEST(H2Session, SendsTheClientPreface) {
  const H2Limits limits;
  H2Session session(H2Role::client, limits, Instant());
  session.start();
  ASSERT_TRUE(session.output().text().starts_with(preface));
  EXPECT_EQ(read_frames(session.output().text().substr(preface.size())),
            "setting 4 65536\nsetting 6 65536\nsetting 2 0\nsettings_end\n"
            "window_update 0 983041\n");
}

TEST(H2Session, ARequestThatFindsNoMemoryLeavesNothing) {
  constexpr std::size_t size = 40'000;  // three frames
  const auto write = [](char* out) { return std::fill_n(out, size, 'x'); };
  BlockPool pool;
  const ScopedBlockPool here(pool);
  bool failed = true;
  for (std::size_t count = 0; failed; ++count) {
    ASSERT_LT(count, 9U);
    SessionDriver driver({}, H2Role::client);
    H2Session& session = driver.session();
    H2Stream first;
    H2Stream second;
    ASSERT_TRUE(session.open(first));
    pool.fail_after(count);
    failed = false;
    try {
      session.send_headers(first, size, write, true);
    } catch (const std::bad_alloc&) {
      failed = true;
      EXPECT_TRUE(session.output().empty());
    }
    while (pool.will_fail()) {
      try {
        BlockPool::release(BlockPool::allocate(16));
      } catch (const std::bad_alloc&) {
      }
    }
    session.release(first);
    EXPECT_EQ(driver.take_sent().starts_with("block 1 1"), !failed);
    ASSERT_TRUE(session.open(second));
    session.send_headers(second, 1, [](char* out) { return *out = 'G', out + 1; }, true);
    EXPECT_EQ(driver.take_sent(), "block 3 1 f5 [G]\n");
    session.release(second);
  }
}

TEST(H2Session, ChangesItsFrameNumberAtTheEndOfEachFrame) {
  SessionDriver driver;
  driver.handshake();
  std::uint32_t before = driver.session().frame_number();
  const auto changed = [&](const std::string& input) {
    driver.feed(input);
    return std::exchange(before, driver.session().frame_number()) != before;
  };
  EXPECT_TRUE(changed(headers(1, "GET")));
  EXPECT_TRUE(changed(headers(3, "POST", end_headers)));
  EXPECT_FALSE(changed(data(3, "hello").substr(0, 12)));
  EXPECT_TRUE(changed("lo"));
  EXPECT_FALSE(changed(headers(5, "a", end_stream)));
  EXPECT_TRUE(changed(continuation(5, "b")));
  EXPECT_TRUE(changed(headers(7, "GET")));
}

TEST(H2Session, KnowsWhetherItIsWithinAFrame) {
  SessionDriver begun;
  EXPECT_FALSE(begun.session().within_frame());
  begun.feed("PRI");
  EXPECT_TRUE(begun.session().within_frame());
  SessionDriver driver;
  driver.handshake();
  EXPECT_FALSE(driver.session().within_frame());
  driver.feed(headers(1, "a", end_stream));
  EXPECT_TRUE(driver.session().within_frame());
  driver.feed(continuation(1, "b"));
  EXPECT_FALSE(driver.session().within_frame());
  driver.feed(ping().substr(0, 3));
  EXPECT_TRUE(driver.session().within_frame());
}

}  // namespace
}  // namespace weir::http::h2_session_test
