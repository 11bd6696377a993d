#include "weir/compression/detail/codec.hpp"

#include <utility>

namespace weir::compression::detail {

std::unique_ptr<Encoder> make_encoder(const CodingLevel& level) {
  switch (level.coding) {
    case Coding::identity:
      return nullptr;
    case Coding::gzip:
      return make_deflate_encoder({.format = DeflateFormat::gzip, .level = level.level});
    case Coding::deflate:
      return make_deflate_encoder({.format = DeflateFormat::zlib, .level = level.level});
    case Coding::brotli:
      return make_brotli_encoder(level.level);
    case Coding::zstd:
      return make_zstd_encoder(level.level);
  }
  std::unreachable();
}

}  // namespace weir::compression::detail
