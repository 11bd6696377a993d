// Tests of the reader and the writers of HTTP/2 frames.
#include "weir/http/detail/h2/frame.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/h2_frames.hpp"

namespace weir::http::h2_frame_test {
namespace {

using namespace frames;
using Kind = FrameEvent::Kind;

constexpr std::uint8_t end_stream = FrameFlag::end_stream;
constexpr std::uint8_t end_headers = FrameFlag::end_headers;
constexpr std::uint8_t padded = FrameFlag::padded;
constexpr std::uint8_t priority = FrameFlag::priority;

/// Expects the same events for each way to cut the input.
void expect_events(const std::string& input, const std::string& expected) {
  EXPECT_EQ(read_frames(input), expected);
  for (const std::size_t step : {1U, 2U, 3U, 5U, 7U, 11U})
    EXPECT_EQ(read_frames(input, step), expected);
}

/// One frame that violates a rule, with its event.
struct Violation {
  const char* name;
  std::string input;
  H2Error error;
  bool of_stream = false;
};

std::string entry(std::uint32_t dependency) {
  return u32(dependency) + "\x10";
}

std::vector<Violation> violations() {
  constexpr auto protocol = H2Error::protocol_error;
  constexpr auto size = H2Error::frame_size_error;
  const std::string open = headers(1, "ab", 0);
  const std::string reserved_bit = u32(0x80000000);
  return {
      {"DATA on stream 0", data(0, "x"), protocol},
      {"DATA without room for its padding length", data(1, "", padded), size},
      {"DATA with too much padding", data(1, std::string("\2a", 2), padded), protocol},
      {"a frame above 16,384 bytes", data(1, std::string(16'385, 'x')), size},
      {"HEADERS on stream 0", headers(0, "x"), protocol},
      {"HEADERS without room for its padding length", headers(1, "", padded), size},
      {"HEADERS with too much padding", headers(1, std::string("\2a", 2), padded), protocol},
      {"HEADERS with too little priority", headers(1, "1234", priority), size},
      {"HEADERS with padding and too little priority",
       headers(1, std::string("\0001234", 5), priority | padded), size},
      {"PRIORITY on stream 0", frame(FrameType::priority, 0, 0, entry(1)), protocol},
      {"PRIORITY of 4 bytes", frame(FrameType::priority, 0, 3, "1234"), size, true},
      {"PRIORITY of 6 bytes", frame(FrameType::priority, 0, 3, "123456"), size, true},
      {"PRIORITY of itself", frame(FrameType::priority, 0, 3, entry(3)), protocol, true},
      {"RST_STREAM on stream 0", rst_stream(0), protocol},
      {"RST_STREAM of 3 bytes", frame(FrameType::rst_stream, 0, 1, "123"), size},
      {"RST_STREAM of 5 bytes", frame(FrameType::rst_stream, 0, 1, "12345"), size},
      {"SETTINGS on a stream", frame(FrameType::settings, 0, 1), protocol},
      {"SETTINGS of 5 bytes", frame(FrameType::settings, 0, 0, "12345"), size},
      {"SETTINGS ACK with an entry",
       frame(FrameType::settings, FrameFlag::ack, 0, setting(SettingId::enable_push, 0)), size},
      {"PUSH_PROMISE", frame(FrameType::push_promise, end_headers, 1, u32(2)), protocol},
      {"PING on a stream", frame(FrameType::ping, 0, 1, "8 bytes."), protocol},
      {"PING of 7 bytes", ping("7 bytes"), size},
      {"PING of 9 bytes", ping("9 bytes.."), size},
      {"GOAWAY on a stream", frame(FrameType::goaway, 0, 1, u32(0) + u32(0)), protocol},
      {"GOAWAY of 7 bytes", frame(FrameType::goaway, 0, 0, "1234567"), size},
      {"WINDOW_UPDATE of 3 bytes", frame(FrameType::window_update, 0, 0, "123"), size},
      {"WINDOW_UPDATE of 0 for the connection", window_update(0, 0), protocol},
      {"WINDOW_UPDATE of 0 with the reserved bit",
       frame(FrameType::window_update, 0, 0, reserved_bit), protocol},
      {"WINDOW_UPDATE of 0 for a stream", window_update(5, 0), protocol, true},
      {"CONTINUATION on stream 0", continuation(0, "x"), protocol},
      {"CONTINUATION without HEADERS", continuation(1, "x"), protocol},
      {"CONTINUATION after the end of the block", headers(1, "ab") + continuation(1, "x"),
       protocol},
      {"CONTINUATION of another stream", open + continuation(3, "x"), protocol},
      {"DATA in a field block", open + data(1, "x"), protocol},
      {"HEADERS in a field block", open + headers(1, "x"), protocol},
      {"PING in a field block", open + ping(), protocol},
      {"a frame of an unknown type in a field block",
       open + frame(static_cast<FrameType>(99), 0, 1), protocol},
      {"PRIORITY_UPDATE on a stream", frame(FrameType::priority_update, 0, 1, u32(1) + "u=1"),
       protocol},
      {"PRIORITY_UPDATE of 3 bytes", frame(FrameType::priority_update, 0, 0, "123"), size},
      {"PRIORITY_UPDATE for stream 0", frame(FrameType::priority_update, 0, 0, u32(0) + "u=1"),
       protocol},
  };
}

TEST(FrameReader, ReportsEachViolationWithItsErrorCode) {
  for (const Violation& each : violations()) {
    SCOPED_TRACE(each.name);
    const std::string code = " e" + std::to_string(static_cast<int>(each.error));
    for (const std::size_t step : {std::size_t{100'000}, std::size_t{1}}) {
      const std::string events = read_frames(each.input + ping(), step);
      if (each.of_stream) {
        EXPECT_TRUE(events.starts_with("stream_error ")) << events;
        EXPECT_NE(events.find(code + "\nping f0 8 bytes.\n"), std::string::npos) << events;
      } else {
        EXPECT_TRUE(events.ends_with("connection_error" + code + "\n")) << events;
        EXPECT_EQ(events.find("ping"), std::string::npos) << events;
      }
    }
  }
}

TEST(FrameReader, ReturnsNothingAfterAConnectionError) {
  FrameReader reader;
  const std::string bad = ping("bad");
  EXPECT_EQ(reader.next(to_bytes(bad)).kind, Kind::connection_error);
  const FrameEvent again = reader.next(to_bytes(ping()));
  EXPECT_EQ(again.kind, Kind::connection_error);
  EXPECT_EQ(again.error, H2Error::frame_size_error);
  EXPECT_EQ(again.consumed, 0u);
}

TEST(FrameReader, ReadsEachTypeOfFrame) {
  const std::string pad(3, '\0');
  expect_events(
      settings(setting(SettingId::max_frame_size, 65'536) + setting(SettingId{0xFFFF}, 7)) +
          settings() + frame(FrameType::settings, FrameFlag::ack, 0) +
          headers(1, "block", end_headers) + data(1, "content") +
          data(1, "\3padded" + pad, padded | end_stream) +
          headers(3,
                  "\3"
                  "bl" +
                      pad,
                  padded) +
          continuation(3, "", 0) + continuation(3, "ock") +
          headers(5, entry(3) + "block", end_headers | priority) +
          headers(7, "\3" + entry(7) + "block" + pad, end_headers | priority | padded) +
          frame(FrameType::priority, 0, 9, entry(1)) + rst_stream(1, H2Error::refused_stream) +
          ping() + ping("01234567", FrameFlag::ack) +
          frame(FrameType::goaway, 0, 0, u32(5) + u32(11) + "debug data") +
          window_update(0, 0x7FFFFFFF) + window_update(3, 1) +
          frame(FrameType::priority_update, 0, 0, u32(3) + "u=1, i") +
          frame(FrameType::priority_update, 0, 0, u32(3)) +
          frame(FrameType::priority_update, 0, 0, u32(3) + std::string(29, ' ')) +
          frame(static_cast<FrameType>(99), 0xFF, 1, "unknown") + data(1, "", end_stream),
      "setting 5 65536\nsetting 65535 7\nsettings_end\nsettings_end\nsettings_ack\n"
      "block 1 5 f4 [block]\ndata 1 7 f0 [content]\ndata 1 10 f9 [padded]\n"
      "block 3 6 f8 [bl]\nblock 3 0 f0 []\nblock 3 3 f4 [ock]\n"
      "block 5 10 f36 [block]\nblock 7 14 f44 [block] e1\nignored 2\nreset 1 7\n"
      "ping f0 8 bytes.\nping f1 01234567\ngoaway 5 e11\n"
      "window_update 0 2147483647\nwindow_update 3 1\n"
      "priority_update 3 [u=1, i]\npriority_update 3 []\nignored 16\n"
      "ignored 99\ndata 1 0 f1 []\n");
}

TEST(FrameReader, IgnoresTheReservedBitOfAStream) {
  std::string input = headers(1, "x");
  input[5] = static_cast<char>(0x80);
  expect_events(input, "block 1 1 f5 [x]\n");
}

TEST(FrameReader, ReturnsContentInPlace) {
  const std::string input = data(1, "hello");
  FrameReader reader;
  const FrameEvent event = reader.next(to_bytes(input));
  EXPECT_EQ(to_text(event.bytes).data(), input.data() + frame_header_size);
  EXPECT_EQ(event.consumed, input.size());
  EXPECT_TRUE(event.first && event.last);
}

TEST(FrameReader, ReturnsThePartOfTheContentThatHasArrived) {
  const std::string input = data(1, "hello");
  FrameReader reader;
  const FrameEvent first = reader.next(to_bytes(input).first(frame_header_size + 2));
  EXPECT_EQ(to_text(first.bytes), "he");
  EXPECT_TRUE(first.first && !first.last);
  EXPECT_EQ(first.value, 5u);
  const FrameEvent second = reader.next(to_bytes(input).subspan(first.consumed));
  EXPECT_EQ(to_text(second.bytes), "llo");
  EXPECT_TRUE(!second.first && second.last);
}

TEST(FrameReader, AcceptsTheLargestFrame) {
  const std::string large(16'384, 'x');
  EXPECT_EQ(read_frames(data(1, large)), "data 1 16384 f0 [" + large + "]\n");
}

TEST(FrameReader, ReportsAFrameBeforeItsPaddingAndItsUnknownPartArrive) {
  FrameReader reader;
  const std::string input = data(1, "\5x" + std::string(5, '\0'), padded);
  const FrameEvent event = reader.next(to_bytes(input).first(frame_header_size + 2));
  EXPECT_EQ(event.kind, Kind::data);
  EXPECT_TRUE(event.last);
  EXPECT_FALSE(reader.between_frames());
  EXPECT_EQ(reader.next(to_bytes(input).subspan(event.consumed)).kind, Kind::need_more);
  EXPECT_TRUE(reader.between_frames());
}

TEST(FrameWriter, WritesWhatTheReaderReads) {
  std::array<char, 256> room{};
  char* out = room.data();
  const std::array entries{Setting{SettingId::initial_window_size, 70'000},
                           Setting{SettingId::enable_push, 0}};
  out = write_settings(entries, out);
  EXPECT_EQ(out - room.data(), static_cast<std::ptrdiff_t>(frame_header_size + 2 * setting_size));
  out = write_settings_ack(out);
  out = write_ping(to_bytes("8 bytes."), FrameFlag::ack, out);
  out = write_goaway(7, H2Error::enhance_your_calm, out);
  out = write_window_update(9, 0x7FFFFFFF, out);
  out = write_rst_stream(0x7FFFFFFF, H2Error::cancel, out);
  out = write_priority_update(3, "u=5", out);
  out = write_priority_update(3, {}, out);
  out = write_frame_header({0, FrameType::data, end_stream, 1}, out);
  const std::string_view written(room.data(), static_cast<std::size_t>(out - room.data()));
  EXPECT_EQ(read_frames(written),
            "setting 4 70000\nsetting 2 0\nsettings_end\nsettings_ack\nping f1 8 bytes.\n"
            "goaway 7 e11\nwindow_update 9 2147483647\nreset 2147483647 8\n"
            "priority_update 3 [u=5]\npriority_update 3 []\ndata 1 0 f1 []\n");
  EXPECT_EQ(written.size(), frame_header_size + 2 * setting_size + frame_header_size + ping_size +
                                goaway_size + window_update_size + rst_stream_size +
                                2 * (frame_header_size + 4) + 3 + frame_header_size);
}

TEST(FrameWriter, WritesALengthOf24Bits) {
  std::array<char, frame_header_size> room{};
  write_frame_header({0x123456, FrameType::continuation, 4, 0x01020304}, room.data());
  EXPECT_EQ(std::string_view(room.data(), room.size()),
            std::string_view("\x12\x34\x56\x09\x04\x01\x02\x03\x04", 9));
}

}  // namespace
}  // namespace weir::http::h2_frame_test
