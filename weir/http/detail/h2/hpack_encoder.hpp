// The encoder of HPACK field blocks (RFC 7541 §6). It inserts only the date and the media type of
// the most frequent responses, so that the encoder of a connection needs no table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/http/syntax/status.hpp"

namespace weir::http {

/// The literal representation of a field (RFC 7541 §6.2). Only `never` is also used for fields that
/// the static table has.
enum class HpackIndexing : std::uint8_t {
  allowed,  ///< a literal without indexing; an intermediary may index it
  never,    ///< a literal that is never indexed, for secrets (RFC 7541 §7.1.3)
  insert,   ///< a literal that enters the dynamic table; see HpackEncoderState
};

/// Returns the number of bytes that write_hpack_field() needs at most.
constexpr std::size_t hpack_field_size_max(std::string_view name, std::string_view value) noexcept {
  constexpr std::size_t integer_max = 6;
  return 1 + 2 * integer_max + name.size() + value.size();
}

/// Writes a field to `out`: its name in lower case, and Huffman codes where they are shorter. The
/// block does not depend on earlier ones, so that it may be kept and sent again.
/// Returns: the end of the field, as all of these functions do.
char* write_hpack_field(std::string_view name, std::string_view value, char* out,
                        HpackIndexing indexing = HpackIndexing::allowed) noexcept;

/// The number of bytes that write_hpack_status() needs at most.
inline constexpr std::size_t hpack_status_size_max = 5;

/// Writes `:status`.
char* write_hpack_status(Status status, char* out) noexcept;

/// The only state that the encoder of a connection has: the fields that are at the start of the
/// dynamic table, by the number of the block that has put them there.
///
/// A peer that lowers its SETTINGS_HEADER_TABLE_SIZE expects a size update at the start of the next
/// block (RFC 7541 §4.2). The update says 0. The encoder then no longer refers to the table. It
/// needs no further update, because the size stays within each later setting.
/// Threads: one at a time.
class HpackEncoderState {
 public:
  /// The number of bytes that write_size_update() needs at most.
  static constexpr std::size_t size_update_max = 1;

  /// Notes a SETTINGS_HEADER_TABLE_SIZE of the peer.
  void set_peer_size_max(std::uint32_t table_size_max) noexcept {
    if (state_ == State::initial && table_size_max < initial_size_max) state_ = State::owed;
  }
  /// Writes the update if the peer expects one. Called at the start of each block.
  char* write_size_update(char* out) noexcept {
    if (state_ != State::owed) return out;
    state_ = State::sent;
    constexpr char update_to_0 = 0x20;
    *out = update_to_0;
    return out + size_update_max;
  }
  /// Notes that a block with this number inserts its fields. They have at most inserted_size_max
  /// bytes with the overhead of RFC 7541 §4.1. Call it for each block that inserts fields.
  /// Returns: true if the fields are at the start of the table already. The block then refers to
  /// them instead, and the last field has the index first_dynamic_index.
  bool inserted(std::uint64_t number) noexcept {
    if (state_ == State::initial) return std::exchange(inserted_, number) == number;
    return false;  // an insertion into a table of size 0 adds nothing
  }

  static constexpr std::size_t first_dynamic_index = 62;
  static constexpr std::size_t inserted_size_max = 4096;

 private:
  static constexpr std::uint32_t initial_size_max = inserted_size_max;
  enum class State : std::uint8_t { initial, owed, sent };

  std::uint64_t inserted_ = 0;  // the number of the last block that has inserted fields
  State state_ = State::initial;
};

}  // namespace weir::http
