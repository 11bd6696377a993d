// Whole contents in the formats zlib and gzip by libdeflate.
#include "weir/compression/detail/codec.hpp"

#if WEIR_LIBDEFLATE
#include <libdeflate.h>

#include <new>
#endif

namespace weir::compression::detail {

#if WEIR_LIBDEFLATE

namespace {

struct LibdeflateDeleter {
  void operator()(libdeflate_compressor* compressor) const noexcept {
    libdeflate_free_compressor(compressor);
  }
};

class LibdeflateEncoder final : public WholeEncoder {
 public:
  LibdeflateEncoder(DeflateFormat format, int level)
      : compressor_(libdeflate_alloc_compressor(level)),
        function_(format == DeflateFormat::gzip ? &libdeflate_gzip_compress
                                                : &libdeflate_zlib_compress) {
    if (compressor_ == nullptr) throw std::bad_alloc();
  }
  std::size_t compress(Bytes input, MutableBytes output) noexcept override {
    return function_(compressor_.get(), input.data(), input.size(), output.data(), output.size());
  }

 private:
  const std::unique_ptr<libdeflate_compressor, LibdeflateDeleter> compressor_;
  decltype(&libdeflate_gzip_compress) const function_;
};

}  // namespace

std::unique_ptr<WholeEncoder> make_libdeflate_encoder(DeflateFormat format, int level) {
  return std::make_unique<LibdeflateEncoder>(format, level);
}

#else  // The build is without libdeflate.

std::unique_ptr<WholeEncoder> make_libdeflate_encoder(DeflateFormat, int) {
  return nullptr;
}

#endif

}  // namespace weir::compression::detail
