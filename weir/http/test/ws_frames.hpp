// Frames of WebSocket for tests: their bytes, also of frames that no writer makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/http/ws/detail/frame.hpp"

namespace weir::http::ws {

inline constexpr std::string_view mask_key = "\x37\xfa\x21\x3d";
inline constexpr std::size_t whole = 100'000'000;  // a step for input in one piece

inline constexpr int fin = 0x80;
inline constexpr int continuation_frame = 0;
inline constexpr int text_frame = 1;
inline constexpr int binary_frame = 2;
inline constexpr int close_frame = 8;
inline constexpr int ping_frame = 9;
inline constexpr int pong_frame = 10;

inline std::string number(std::uint64_t value, std::size_t size) {
  std::string out;
  for (std::size_t shift = 8 * size; shift != 0; shift -= 8) {
    out += static_cast<char>(value >> (shift - 8));
  }
  return out;
}

/// Returns a header without a mask: the first byte, and the shortest length.
inline std::string header(int first, std::uint64_t length, bool masked = false) {
  std::string out(1, static_cast<char>(first));
  const std::uint64_t bit = masked ? 0x80 : 0;
  if (length < 126) return out + number(bit | length, 1);
  if (length < 65'536) return out + number(bit | 126, 1) + number(length, 2);
  return out + number(bit | 127, 1) + number(length, 8);
}

inline std::string masked(std::string_view payload, std::string_view key = mask_key) {
  std::string out(payload);
  for (std::size_t at = 0; at < out.size(); ++at)
    out[at] = static_cast<char>(out[at] ^ key[at % 4]);
  return out;
}

/// Returns a frame as the peer of a session with this role sends it.
inline std::string frame_to(WsRole role, int first, std::string_view payload = {}) {
  const bool by_client = role == WsRole::server;
  std::string out = header(first, payload.size(), by_client);
  if (!by_client) return out.append(payload);
  return out.append(mask_key) + masked(payload);
}

}  // namespace weir::http::ws
