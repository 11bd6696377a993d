// Tests of the masking, the reader and the writers of WebSocket frames.
#include "weir/http/ws/detail/frame.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/test/ws_frames.hpp"

namespace weir::http::ws_frame_test {
namespace {

using namespace ws;
using Kind = WsFrameEvent::Kind;

MutableBytes bytes_of(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}
WsMaskKey key_of(std::string_view text) {
  WsMaskKey key;
  std::ranges::transform(text, key.begin(), [](char each) { return std::byte(each); });
  return key;
}

/// Reads frames in pieces of `step` bytes. Returns a text of the events.
std::string read_frames(WsRole role, std::string input, std::size_t step = whole) {
  WsFrameReader reader(role);
  std::string out;
  for (std::size_t at = 0; at < input.size(); at += step) {
    MutableBytes rest = bytes_of(input).subspan(at);
    rest = rest.first(std::min(step, rest.size()));
    for (;;) {
      const WsFrameEvent event = reader.next(rest);
      rest = rest.subspan(event.consumed);
      if (event.kind == Kind::need_more) break;
      if (event.kind == Kind::error) return out + "error";
      if (event.first) {
        out += std::to_string(static_cast<int>(event.opcode)) + (event.begins ? "b" : "") + " " +
               std::to_string(event.length) + " ";
      }
      out += to_text(event.bytes);
      if (event.last) out += event.ends ? ".\n" : "\n";
    }
    EXPECT_TRUE(rest.empty());
  }
  return out + (reader.between_frames() ? "" : "...") + (reader.within_message() ? "+" : "");
}

TEST(WsMask, EqualsAByteLoopForAllSizesAndPieces) {
  std::string payload;
  for (int each = 0; each < 300; ++each) payload += static_cast<char>(each * 7);
  for (std::size_t size = 0; size <= payload.size(); ++size) {
    const std::string expected = masked(payload.substr(0, size));
    std::string in_place = payload.substr(0, size);
    WsMask(key_of(mask_key)).apply(bytes_of(in_place), bytes_of(in_place).data());
    ASSERT_EQ(in_place, expected);
    std::string copy(size, '\0');
    WsMask(key_of(mask_key)).apply(to_bytes(payload).first(size), bytes_of(copy).data());
    ASSERT_EQ(copy, expected);
  }
  for (std::size_t step = 1; step < 140; ++step) {
    std::string pieces = payload;
    WsMask mask(key_of(mask_key));
    for (std::size_t at = 0; at < pieces.size(); at += step) {
      const MutableBytes rest = bytes_of(pieces).subspan(at);
      const MutableBytes piece = rest.first(std::min(step, rest.size()));
      mask.apply(piece, piece.data());
    }
    ASSERT_EQ(pieces, masked(payload)) << step;
  }
}

TEST(WsFrameReader, ReadsTheExamplesOfTheRfc) {
  EXPECT_EQ(read_frames(WsRole::client, "\x81\x05Hello"), "1b 5 Hello.\n");
  EXPECT_EQ(read_frames(WsRole::server, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
            "1b 5 Hello.\n");
  EXPECT_EQ(read_frames(WsRole::client, std::string("\x01\x03Hel\x80\x02lo")),
            "1b 3 Hel\n1 2 lo.\n");
  EXPECT_EQ(read_frames(WsRole::client, "\x89\x05Hello"), "9 5 Hello\n");
  EXPECT_EQ(read_frames(WsRole::server, "\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
            "10 5 Hello\n");
  const std::string medium(256, 'm');
  const std::string large(65'536, 'l');
  EXPECT_EQ(read_frames(WsRole::client, std::string("\x82\x7e\x01\x00", 4) + medium),
            "2b 256 " + medium + ".\n");
  EXPECT_EQ(read_frames(WsRole::client, std::string("\x82\x7f\0\0\0\0\0\1\0\0", 10) + large),
            "2b 65536 " + large + ".\n");
}

TEST(WsFrameReader, ReadsAllFormsOfLengthsInAnyPieces) {
  for (const WsRole role : {WsRole::server, WsRole::client}) {
    for (const std::size_t size : {0U, 1U, 124U, 125U, 126U, 127U, 65'535U, 65'536U}) {
      const std::string payload(size, 'x');
      const std::string input =
          frame_to(role, fin | binary_frame, payload) + frame_to(role, fin | ping_frame);
      const std::string expected = "2b " + std::to_string(size) + " " + payload + ".\n9 0 \n";
      for (const std::size_t step : {whole, std::size_t{1}, std::size_t{3}, std::size_t{4'096}}) {
        ASSERT_EQ(read_frames(role, input, step), expected) << size << " " << step;
      }
    }
  }
}

TEST(WsFrameReader, ReturnsPayloadsInPlace) {
  std::string input = frame_to(WsRole::server, fin | text_frame, "Hello") +
                      frame_to(WsRole::server, fin | ping_frame, "World");
  WsFrameReader reader(WsRole::server);
  const WsFrameEvent message = reader.next(bytes_of(input));
  EXPECT_EQ(to_text(message.bytes).data(), input.data() + 6);
  EXPECT_EQ(input.substr(6, 5), "Hello");
  EXPECT_EQ(message.consumed, 11u);
  const WsFrameEvent control = reader.next(bytes_of(input).subspan(11));
  EXPECT_EQ(to_text(control.bytes).data(), input.data() + 17);
}

TEST(WsFrameReader, AnnouncesAPayloadBeforeItsFirstByte) {
  std::string input = header(fin | binary_frame, std::uint64_t{1} << 62);
  WsFrameReader reader(WsRole::client);
  const WsFrameEvent event = reader.next(bytes_of(input));
  EXPECT_EQ(event.kind, Kind::payload);
  EXPECT_TRUE(event.first && !event.last && event.bytes.empty());
  EXPECT_EQ(event.length, std::uint64_t{1} << 62);
}

struct Violation {
  const char* name;
  std::string bytes;        // with a mask bit of 0
  bool masks = true;        // the bit is set for servers
  std::string before = {};  // frames that are valid
};

std::vector<Violation> violations(WsRole role) {
  const std::string open = frame_to(role, text_frame, "a");
  std::vector<Violation> all{
      {"RSV1", header(0x40 | fin | text_frame, 1)},
      {"RSV2", header(0x20 | fin | text_frame, 1)},
      {"RSV3", header(0x10 | fin | text_frame, 1)},
      {"RSV1 of a ping", header(0x40 | fin | ping_frame, 1)},
      {"RSV1 of a continuation", header(0x40 | fin | continuation_frame, 1), true, open},
      {"a wrong mask bit", header(fin | text_frame, 1), false},
      {"a wrong mask bit of a ping", header(fin | ping_frame, 0), false},
      {"a fragmented close", header(close_frame, 0)},
      {"a fragmented ping", header(ping_frame, 0)},
      {"a fragmented pong", header(pong_frame, 1)},
      {"a close of 126 bytes", header(fin | close_frame, 126)},
      {"a ping of 126 bytes", header(fin | ping_frame, 126)},
      {"a pong of 65,536 bytes", header(fin | pong_frame, 65'536)},
      {"a continuation of nothing", header(fin | continuation_frame, 1)},
      {"an open continuation of nothing", header(continuation_frame, 1)},
      {"a continuation after the end", header(fin | continuation_frame, 1), true,
       open + frame_to(role, fin | continuation_frame, "b")},
      {"text in text", header(fin | text_frame, 1), true, open},
      {"binary in text", header(binary_frame, 1), true, open},
      {"125 in 16 bits", "\x82\x7e" + number(125, 2)},
      {"0 in 16 bits", "\x82\x7e" + number(0, 2)},
      {"65,535 in 64 bits", "\x82\x7f" + number(65'535, 8)},
      {"1 in 64 bits", "\x82\x7f" + number(1, 8)},
      {"the 64th bit", "\x82\x7f" + number(std::uint64_t{1} << 63, 8)},
      {"all 64 bits", "\x82\x7f" + number(~std::uint64_t{0}, 8)},
  };
  for (const int opcode : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    all.push_back({"a reserved opcode", header(fin | opcode, 0)});
    all.push_back({"a reserved opcode, open", header(opcode, 1)});
    all.push_back({"a reserved opcode in a message", header(fin | opcode, 0), true, open});
  }
  return all;
}

TEST(WsFrameReader, RejectsEachViolation) {
  for (const WsRole role : {WsRole::server, WsRole::client}) {
    for (const Violation& each : violations(role)) {
      SCOPED_TRACE(each.name);
      std::string bytes = each.bytes;
      if (each.masks == (role == WsRole::server)) bytes[1] = static_cast<char>(bytes[1] | 0x80);
      const std::string before = read_frames(role, each.before);
      const std::string input = each.before + bytes + std::string(20, 'x');
      for (const std::size_t step : {whole, std::size_t{1}, std::size_t{2}, std::size_t{5}}) {
        const std::string events = read_frames(role, input, step);
        ASSERT_EQ(events, before.substr(0, before.find('+')) + "error");
      }
    }
  }
}

TEST(WsFrameReader, ReturnsNothingAfterAnError) {
  std::string input = "\x83" + std::string(1, '\0') + "\x81\x01x";
  WsFrameReader reader(WsRole::client);
  EXPECT_EQ(reader.next(bytes_of(input)).kind, Kind::error);
  EXPECT_EQ(reader.next(bytes_of(input).subspan(2)).kind, Kind::error);
}

TEST(WsFrameWriter, WritesTheShortestHeader) {
  const std::uint64_t largest = (std::uint64_t{1} << 63) - 1;
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{125}, std::uint64_t{126},
                                     std::uint64_t{65'535}, std::uint64_t{65'536}, largest}) {
    char room[ws_header_size_max];
    const char* end = write_ws_header({WsOpcode::binary, true, length, {}}, room);
    EXPECT_EQ(between(room, end), header(fin | binary_frame, length));
    end = write_ws_header({WsOpcode::continuation, false, length, key_of(mask_key)}, room);
    EXPECT_EQ(between(room, end), header(0, length, true).append(mask_key));
  }
}

TEST(WsFrameWriter, WritesControlFrames) {
  char room[ws_control_frame_max];
  const char* end = write_ws_control(WsOpcode::ping, to_bytes("Hello"), {}, room);
  EXPECT_EQ(between(room, end), "\x89\x05Hello");
  end = write_ws_control(WsOpcode::pong, to_bytes("Hello"), key_of(mask_key), room);
  EXPECT_EQ(between(room, end), "\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
  const std::string longest(ws_control_max, 'c');
  end = write_ws_control(WsOpcode::close, to_bytes(longest), key_of(mask_key), room);
  EXPECT_EQ(end, room + ws_control_frame_max);
}

}  // namespace
}  // namespace weir::http::ws_frame_test
