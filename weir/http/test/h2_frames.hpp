// Frames of HTTP/2 for tests: their bytes, also of frames that no writer makes.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/detail/h2/frame.hpp"

namespace weir::http::frames {

inline std::string u32(std::uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
  return out;
}

/// Returns the bytes of a frame with any payload.
inline std::string frame(FrameType type, std::uint8_t flags, std::uint32_t stream,
                         std::string_view payload = {}) {
  std::string out(frame_header_size, '\0');
  write_frame_header({static_cast<std::uint32_t>(payload.size()), type, flags, stream}, out.data());
  return out.append(payload);
}

inline std::string setting(SettingId id, std::uint32_t value) {
  const auto number = static_cast<std::uint16_t>(id);
  return std::string{static_cast<char>(number >> 8), static_cast<char>(number)} + u32(value);
}

inline std::string settings(std::string_view entries = {}) {
  return frame(FrameType::settings, 0, 0, entries);
}
inline std::string headers(std::uint32_t stream, std::string_view block,
                           std::uint8_t flags = FrameFlag::end_headers | FrameFlag::end_stream) {
  return frame(FrameType::headers, flags, stream, block);
}
inline std::string continuation(std::uint32_t stream, std::string_view block,
                                std::uint8_t flags = FrameFlag::end_headers) {
  return frame(FrameType::continuation, flags, stream, block);
}
inline std::string data(std::uint32_t stream, std::string_view content, std::uint8_t flags = 0) {
  return frame(FrameType::data, flags, stream, content);
}
inline std::string rst_stream(std::uint32_t stream, H2Error error = H2Error::cancel) {
  return frame(FrameType::rst_stream, 0, stream, u32(static_cast<std::uint32_t>(error)));
}
inline std::string window_update(std::uint32_t stream, std::uint32_t increment) {
  return frame(FrameType::window_update, 0, stream, u32(increment));
}
inline std::string ping(std::string_view opaque = "8 bytes.", std::uint8_t flags = 0) {
  return frame(FrameType::ping, flags, 0, opaque);
}
inline std::string goaway(std::uint32_t last, H2Error error = H2Error::no_error) {
  return frame(FrameType::goaway, 0, 0, u32(last) + u32(static_cast<std::uint32_t>(error)));
}

// Descriptions of frames, one line for each.

inline std::string numbered(const char* name, std::uint32_t first) {
  return name + std::string(" ") + std::to_string(first);
}
inline std::string numbered(const char* name, std::uint32_t first, std::uint32_t second) {
  return numbered(name, first) + " " + std::to_string(second);
}

/// Returns a text for an event, with the whole content of its frame.
inline std::string describe(const FrameEvent& event, const std::string& content) {
  const std::string error = " e" + std::to_string(static_cast<int>(event.error));
  const std::string flags = " f" + std::to_string(event.flags);
  switch (event.kind) {
    case FrameEvent::Kind::data:
      return numbered("data", event.stream, event.value) + flags + " [" + content + "]";
    case FrameEvent::Kind::block:
      return numbered("block", event.stream, event.value) + flags + " [" + content + "]" +
             (event.error == H2Error::no_error ? "" : error);
    case FrameEvent::Kind::reset:
      return numbered("reset", event.stream, event.value);
    case FrameEvent::Kind::setting:
      return numbered("setting", static_cast<std::uint32_t>(event.setting), event.value);
    case FrameEvent::Kind::settings_end:
      return "settings_end";
    case FrameEvent::Kind::settings_ack:
      return "settings_ack";
    case FrameEvent::Kind::ping:
      return "ping" + flags + " " + std::string(to_text(event.bytes));
    case FrameEvent::Kind::goaway:
      return numbered("goaway", event.value) + error;
    case FrameEvent::Kind::window_update:
      return numbered("window_update", event.stream, event.value);
    case FrameEvent::Kind::priority_update:
      return numbered("priority_update", event.stream) + " [" + std::string(to_text(event.bytes)) +
             "]";
    case FrameEvent::Kind::ignored:
      return numbered("ignored", static_cast<std::uint32_t>(event.type));
    case FrameEvent::Kind::stream_error:
      return numbered("stream_error", event.stream) + error;
    case FrameEvent::Kind::connection_error:
      return "connection_error" + error;
    case FrameEvent::Kind::need_more:
      break;
  }
  return "need_more";
}

/// Returns the number of streams that a server has ended in the complete frames of `sent`.
inline std::size_t ended_streams(std::string_view sent) {
  constexpr std::size_t header = 9;
  std::size_t ended = 0;
  while (sent.size() >= header) {
    const auto byte = [sent](std::size_t at) -> std::size_t {
      return static_cast<unsigned char>(sent[at]);
    };
    const std::size_t size = header + (byte(0) << 16 | byte(1) << 8 | byte(2));
    if (sent.size() < size) break;
    const auto type = static_cast<FrameType>(byte(3));
    const bool may_end = type == FrameType::data || type == FrameType::headers;
    if (may_end && (byte(4) & FrameFlag::end_stream) != 0) ++ended;
    sent.remove_prefix(size);
  }
  return ended;
}

/// Returns one line for each event of an input that arrives in pieces of `step` bytes. Parts of
/// content are joined.
inline std::string read_frames(std::string_view input, std::size_t step = 1'000'000) {
  FrameReader reader;
  std::string lines;
  std::string content;
  for (std::size_t at = 0; at < input.size(); at += step) {
    // The address sanitizer reports a read beyond a vector.
    const std::string_view text = input.substr(at, step);
    const std::vector<char> piece(text.begin(), text.end());
    Bytes bytes = to_bytes({piece.data(), piece.size()});
    for (;;) {
      const FrameEvent event = reader.next(bytes);
      bytes = bytes.subspan(event.consumed);
      if (event.kind == FrameEvent::Kind::need_more) break;
      if (event.kind == FrameEvent::Kind::data || event.kind == FrameEvent::Kind::block) {
        if (event.first) content.clear();
        content += to_text(event.bytes);
        if (!event.last) continue;
      }
      lines += describe(event, content) + "\n";
      if (event.kind == FrameEvent::Kind::connection_error) return lines;
    }
    EXPECT_TRUE(bytes.empty()) << "need_more with input left";
  }
  return lines + (reader.between_frames() ? "" : "partial\n");
}

}  // namespace weir::http::frames
