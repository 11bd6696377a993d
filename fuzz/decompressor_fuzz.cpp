// Decompresses any bytes, whole and in pieces, within small limits. The first byte chooses the
// coding. All ways give the same content or fail alike, and no limit is exceeded. The content is
// compressed and decompressed again. The rest of the input is also read as raw DEFLATE.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "fuzz/require.hpp"
#include "weir/compression.hpp"

namespace {

using namespace weir::compression;
using weir::Bytes;
using weir::fuzz::ExactCopy;
using weir::fuzz::require;

constexpr DecompressLimits limits{
    .output_max = 100'000, .ratio_max = 100, .ratio_free = 10'000, .window_max = 1 << 16};

struct Outcome {
  std::string content;
  std::error_code error;
};

Outcome decompress(Coding coding, std::string_view text, std::size_t step, std::size_t size) {
  Outcome outcome;
  Decompressor by = std::move(Decompressor::make(coding, limits).value());
  std::vector<std::byte> room(size);
  while (!text.empty() && !outcome.error) {
    const ExactCopy copy(text.substr(0, step));
    text.remove_prefix(copy.view().size());
    Bytes rest = weir::to_bytes(copy.view());
    for (bool complete = false; !complete;) {
      const auto progress = by.decompress(rest, room);
      if (!progress) {
        outcome.error = progress.error();
        break;
      }
      require(progress->consumed > 0 || progress->produced > 0 || progress->complete);
      outcome.content += weir::to_text(Bytes(room).first(progress->produced));
      rest = rest.subspan(progress->consumed);
      complete = progress->complete;
    }
  }
  if (const auto finished = by.finish(); !finished) outcome.error = finished.error();
  require(outcome.content.size() <= limits.output_max);
  require(by.memory_bytes() <= decompressor_bytes_max(coding, limits));
  return outcome;
}

void inflate_raw(std::string_view text) {
  auto by = RawInflater::make(15);
  if (!by) return;
  std::array<std::byte, 4096> room;
  Bytes rest = weir::to_bytes(text);
  for (std::size_t produced = 0; produced < limits.output_max;) {
    const auto progress = by->decompress(rest, room);
    if (!progress || progress->complete) return;
    require(progress->consumed > 0 || progress->produced > 0);
    produced += progress->produced;
    rest = rest.subspan(progress->consumed);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  constexpr std::array codings{Coding::gzip, Coding::deflate, Coding::brotli, Coding::zstd};
  const Coding coding = codings[data[0] % codings.size()];
  inflate_raw(text);
  if (!is_available(coding)) return 0;
  const Outcome whole = decompress(coding, text, std::max<std::size_t>(text.size(), 1), 4096);
  const Outcome pieces = decompress(coding, text, 1 + size % 13, 1 + size % 1000);
  require(whole.error.value() == 0 || pieces.error.value() != 0);
  if (whole.error) return 0;
  require(whole.content == pieces.content);
  CompressorPool pool;
  const auto again = pool.compress({coding, 1}, weir::to_bytes(whole.content));
  require(again.has_value());
  Decompressor by = std::move(Decompressor::make(coding, {.ratio_max = 1 << 30}).value());
  std::vector<std::byte> room(whole.content.size() + 1);
  const auto progress = by.decompress(again->bytes(), room);
  require(progress && progress->complete && by.finish());
  require(weir::to_text(Bytes(room).first(progress->produced)) == whole.content);
  return 0;
}
