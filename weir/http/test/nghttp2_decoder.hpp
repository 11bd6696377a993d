// The HPACK decoder of nghttp2, which judges Weir's. Programs that include it link nghttp2.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/text_field.hpp"

namespace weir::http {

/// Decodes the field blocks of one connection.
class Nghttp2Decoder {
 public:
  Nghttp2Decoder() { nghttp2_hd_inflate_new(&inflater_); }
  ~Nghttp2Decoder() { nghttp2_hd_inflate_del(inflater_); }
  Nghttp2Decoder(const Nghttp2Decoder&) = delete;
  Nghttp2Decoder& operator=(const Nghttp2Decoder&) = delete;

  /// Changes the limit of the table. Returns false without memory.
  bool set_size_max(std::size_t size_max) {
    return nghttp2_hd_inflate_change_table_size(inflater_, size_max) == 0;
  }
  std::size_t table_size() const { return nghttp2_hd_inflate_get_dynamic_table_size(inflater_); }

  /// Returns the fields of a block, or std::nullopt if it is invalid.
  std::optional<std::vector<TextField>> decode(std::string_view block) {
    std::vector<TextField> fields;
    const auto* position = reinterpret_cast<const std::uint8_t*>(block.data());
    std::size_t left = block.size();
    while (true) {
      nghttp2_nv pair{};
      int flags = 0;
      const auto used = nghttp2_hd_inflate_hd2(inflater_, &pair, &flags, position, left, 1);
      if (used < 0) return std::nullopt;
      position += used;
      left -= static_cast<std::size_t>(used);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
        fields.push_back({std::string(reinterpret_cast<char*>(pair.name), pair.namelen),
                          std::string(reinterpret_cast<char*>(pair.value), pair.valuelen),
                          (pair.flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0});
      }
      if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 && left == 0) return std::nullopt;
    }
    nghttp2_hd_inflate_end_headers(inflater_);
    return fields;
  }

 private:
  nghttp2_hd_inflater* inflater_ = nullptr;
};

}  // namespace weir::http
