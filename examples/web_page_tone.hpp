// web_page_tone.hpp: an audio file in memory, which browsers load and seek by ranges.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <weir/web.hpp>

namespace http = weir::http;

/// A tone of 20 minutes: a WAV file with 8,000 samples of one byte per second.
inline std::string make_tone() {
  constexpr std::uint32_t size = 20 * 60 * 8000;
  const std::uint32_t head[] = {0x46464952, size + 36, 0x45564157, 0x20746d66, 16,  0x00010001,
                                8000,       8000,      0x00080001, 0x61746164, size};
  std::string wav(reinterpret_cast<const char*>(head), sizeof head);
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto sample = static_cast<std::uint8_t>(128 + 90 * std::sin(i * 0.345));
    wav += static_cast<char>(sample);
  }
  return wav;
}

/// The audio file, and the first byte of each range that was sent. All cores share it.
struct Tone {
  const std::string wav = make_tone();
  std::mutex mutex;
  std::vector<std::uint64_t> ranges;
};

inline weir::Task<weir::Result<>> write_part(http::BodySink& body, std::string_view part) {
  co_return co_await body.write(part);
}

/// Sends the file, or the first range that a player asks for.
inline http::Response play(const http::Request& request, Tone& tone) {
  const std::size_t size = tone.wav.size();
  const auto selected = http::select_ranges(request.header("Range").value_or(""), size);
  if (selected.kind == http::SelectedRanges::Kind::unsatisfiable)
    return http::Status::range_not_satisfiable;
  const bool is_whole = selected.kind == http::SelectedRanges::Kind::whole;
  const http::ByteRange range = is_whole ? http::ByteRange{0, size} : selected.ranges.front();
  const auto status = is_whole ? http::Status::ok : http::Status::partial_content;
  const auto part = std::string_view(tone.wav).substr(range.first, range.size);
  auto response =
      http::stream("audio/wav", {.length = part.size(), .status = status}, write_part, part);
  response.set_header("Accept-Ranges", "bytes");
  if (!is_whole) response.set_header("Content-Range", http::content_range(range, size));
  const std::lock_guard lock(tone.mutex);
  tone.ranges.push_back(range.first);
  return response;
}
