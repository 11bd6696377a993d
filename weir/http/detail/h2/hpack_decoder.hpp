// The decoder of HPACK field blocks (RFC 7541 §3 and §6).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/detail/bytes.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"

namespace weir::http {

/// Decodes one whole field block. The dynamic table of the connection outlives it; an error
/// leaves the table useless and must end the connection with COMPRESSION_ERROR (RFC 9113 §4.3).
///
/// The sum of the sizes of all fields has a limit. The decoder checks it before it gives a field.
/// Beyond the limit it returns no further fields, but it still updates the table.
/// Threads: one at a time.
class HpackDecoder {
 public:
  enum class Step : std::uint8_t {
    field,  ///< field() is the next field
    end,    ///< the block is complete
    error,  ///< the block is invalid
  };
  struct Field {
    std::string_view name;
    std::string_view value;
    std::uint8_t static_index = 0;  ///< the index of a name that is from the static table, else 0
    bool never_indexed = false;     ///< an intermediary must not index it (RFC 7541 §7.1.3)
  };

  /// Returns the bytes of scratch memory that a decoder with this limit needs.
  static constexpr std::size_t scratch_size(std::size_t list_bytes_max) noexcept {
    return std::max<std::size_t>(list_bytes_max, HpackTable::size_max_limit);
  }

  /// `scratch` has scratch_size(list_bytes_max) bytes.
  HpackDecoder(HpackTable& table, Bytes block, std::uint32_t list_bytes_max,
               std::span<char> scratch) noexcept
      : table_(table),
        position_(block.data()),
        end_(block.data() + block.size()),
        scratch_(scratch),
        list_bytes_max_(list_bytes_max) {}

  /// Decodes until the next field, the end or an error.
  /// Errors: throws std::bad_alloc if there is no memory for the table.
  Step next();

  /// Returns the last field. Its views are valid until the next call of next().
  const Field& field() const noexcept { return field_; }

  /// Returns the sum of the sizes of all fields so far (RFC 9113 §6.5.2). A text that is longer
  /// than the scratch memory counts as that memory and one byte.
  std::uint64_t list_bytes() const noexcept { return list_bytes_; }
  /// Returns true if list_bytes() exceeds the limit, so that fields are missing.
  bool exceeded() const noexcept { return list_bytes_ > list_bytes_max_; }
  /// Returns true if the block may have changed the table.
  bool changed_table() const noexcept { return changed_table_; }

 private:
  enum class Text : std::uint8_t { complete, too_long, invalid };
  enum class Indexing : std::uint8_t { none, incremental };

  bool read_integer(unsigned prefix_bits, std::uint32_t& value) noexcept;
  Text read_text(std::span<char>& room, std::string_view& text) noexcept;
  bool find(std::uint32_t index, Field& field) const noexcept;
  bool read_indexed() noexcept;
  bool read_literal(unsigned prefix_bits, Indexing indexing);
  bool read_size_update() noexcept;

  HpackTable& table_;
  const std::byte* position_;
  const std::byte* end_;
  std::span<char> scratch_;
  std::uint64_t list_bytes_ = 0;
  std::uint32_t list_bytes_max_;
  bool started_ = false;  ///< true after the first field, when size updates are not allowed
  bool changed_table_ = false;
  Field field_;
};

}  // namespace weir::http
