// Contents for tests of compression, and helpers that compress and decompress them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "weir/compression/compressor.hpp"
#include "weir/compression/decompressor.hpp"

namespace weir::compression {

inline constexpr Coding all_codings[] = {Coding::gzip, Coding::deflate, Coding::brotli,
                                         Coding::zstd};

/// Returns the codings of this build.
inline std::vector<Coding> available_codings() {
  std::vector<Coding> codings;
  for (const Coding each : all_codings) {
    if (is_available(each)) codings.push_back(each);
  }
  return codings;
}

/// Returns text with a ratio of about 4.
inline std::string words(std::size_t size, unsigned seed = 1) {
  std::minstd_rand random(seed);
  std::string text;
  while (text.size() < size) text += "word" + std::to_string(random() % 997) + ' ';
  text.resize(size);
  return text;
}

/// Returns bytes that no coding makes smaller.
inline std::string noise(std::size_t size) {
  std::minstd_rand random(7);
  std::string bytes(size, '\0');
  std::ranges::generate(bytes, [&] { return static_cast<char>(random() >> 8); });
  return bytes;
}

/// Returns the content compressed in pieces of `step` bytes, with room for `room` bytes of output.
inline std::string compressed(Compressor& by, std::string_view content, std::size_t step = 4096,
                              std::size_t room = 4096) {
  std::string out;
  std::vector<std::byte> piece(room);
  const auto give = [&](Bytes rest, Flush flush) {
    for (bool complete = false; !complete;) {
      const Progress progress = by.compress(rest, piece, flush);
      out += to_text(Bytes(piece).first(progress.produced));
      rest = rest.subspan(progress.consumed);
      complete = progress.complete;
    }
  };
  for (std::size_t begin = 0; begin < content.size(); begin += step) {
    give(to_bytes(content.substr(begin, step)), Flush::none);
  }
  give({}, Flush::finish);
  return out;
}
inline std::string compressed(Coding coding, std::string_view content) {
  Compressor by = std::move(Compressor::make({coding, 1}).value());
  return compressed(by, content);
}

/// Returns the decompressed content, whose bytes come in pieces of `step` bytes.
inline Result<std::string> decompressed(Decompressor& by, std::string_view data,
                                        std::size_t step = 4096, std::size_t room = 4096) {
  std::string out;
  std::vector<std::byte> piece(room);
  for (std::size_t begin = 0; begin < data.size(); begin += step) {
    Bytes rest = to_bytes(data.substr(begin, step));
    for (bool complete = false; !complete;) {
      const auto progress = by.decompress(rest, piece);
      if (!progress) return fail(progress.error());
      out += to_text(Bytes(piece).first(progress->produced));
      rest = rest.subspan(progress->consumed);
      complete = progress->complete;
    }
    EXPECT_TRUE(rest.empty());
  }
  if (const auto finished = by.finish(); !finished) return fail(finished.error());
  return out;
}
inline Result<std::string> decompressed(Coding coding, std::string_view data,
                                        const DecompressLimits& limits = {}) {
  Decompressor by = std::move(Decompressor::make(coding, limits).value());
  return decompressed(by, data);
}

}  // namespace weir::compression
