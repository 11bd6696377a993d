// The tables of HPACK (RFC 7541 §2.3): the static one, and the dynamic one of a decoder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/http/message/headers.hpp"

namespace weir::http {

/// The static table (RFC 7541 appendix A). Index 1 is its first field.
inline constexpr std::array<HeaderField, 61> hpack_static_fields{{
    {":authority", ""},
    {":method", "GET"},
    {":method", "POST"},
    {":path", "/"},
    {":path", "/index.html"},
    {":scheme", "http"},
    {":scheme", "https"},
    {":status", "200"},
    {":status", "204"},
    {":status", "206"},
    {":status", "304"},
    {":status", "400"},
    {":status", "404"},
    {":status", "500"},
    {"accept-charset", ""},
    {"accept-encoding", "gzip, deflate"},
    {"accept-language", ""},
    {"accept-ranges", ""},
    {"accept", ""},
    {"access-control-allow-origin", ""},
    {"age", ""},
    {"allow", ""},
    {"authorization", ""},
    {"cache-control", ""},
    {"content-disposition", ""},
    {"content-encoding", ""},
    {"content-language", ""},
    {"content-length", ""},
    {"content-location", ""},
    {"content-range", ""},
    {"content-type", ""},
    {"cookie", ""},
    {"date", ""},
    {"etag", ""},
    {"expect", ""},
    {"expires", ""},
    {"from", ""},
    {"host", ""},
    {"if-match", ""},
    {"if-modified-since", ""},
    {"if-none-match", ""},
    {"if-range", ""},
    {"if-unmodified-since", ""},
    {"last-modified", ""},
    {"link", ""},
    {"location", ""},
    {"max-forwards", ""},
    {"proxy-authenticate", ""},
    {"proxy-authorization", ""},
    {"range", ""},
    {"referer", ""},
    {"refresh", ""},
    {"retry-after", ""},
    {"server", ""},
    {"set-cookie", ""},
    {"strict-transport-security", ""},
    {"transfer-encoding", ""},
    {"user-agent", ""},
    {"vary", ""},
    {"via", ""},
    {"www-authenticate", ""},
}};

/// The bytes that the size of a field includes beside its name and value (RFC 7541 §4.1).
inline constexpr std::uint32_t hpack_field_overhead = 32;

/// Returns the size of a field in a table and in a field list (RFC 7541 §4.1, RFC 9113 §6.5.2).
constexpr std::uint64_t hpack_size(const HeaderField& field) noexcept {
  return std::uint64_t{field.name.size()} + field.value.size() + hpack_field_overhead;
}

/// The dynamic table of one decoder. Its memory is one block, which insert() allocates and
/// enlarges. The block holds texts from its start upwards and records of them from its end
/// downwards. It never exceeds size_max bytes, because a record is smaller than
/// hpack_field_overhead. Threads: one at a time. Lifetime: a view into the table is valid until the
/// next insert() or set_size_max().
class HpackTable {
 public:
  /// The maximum of SETTINGS_HEADER_TABLE_SIZE that Weir sends; also its initial value.
  static constexpr std::uint32_t size_max_limit = 4096;
  /// The maximum number of bytes that the table allocates.
  static constexpr std::uint32_t memory_max = size_max_limit;

  HpackTable() noexcept = default;
  HpackTable(HpackTable&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)), state_(std::exchange(other.state_, {})) {}
  HpackTable& operator=(HpackTable&& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(state_, other.state_);
    return *this;
  }
  ~HpackTable() { BlockPool::release(block_); }

  /// Returns the sum of the sizes of the fields.
  std::uint32_t size() const noexcept { return state_.size; }
  std::uint32_t size_max() const noexcept { return state_.size_max; }
  std::uint32_t count() const noexcept { return state_.count; }
  /// Returns the number of bytes that the table has allocated.
  std::uint32_t memory() const noexcept { return state_.capacity; }

  /// Returns a field; 0 is the newest one. `index` is less than count().
  HeaderField operator[](std::uint32_t index) const noexcept {
    const Record& record = this->record(state_.count - 1 - index);
    return {{block_ + record.offset, record.name_size},
            {block_ + record.offset + record.name_size, record.value_size}};
  }

  /// Inserts a field as the newest one and evicts the oldest ones if their sizes would exceed
  /// size_max(). A field that is larger than the whole table empties the table. `name` may
  /// point into the table, also to a field that is evicted.
  /// Returns: true if the table now has the field.
  /// Errors: throws std::bad_alloc; the table is then unchanged except for evicted fields.
  bool insert(std::string_view name, std::string_view value);

  /// Evicts all fields. The block stays.
  void clear() noexcept;

  /// Sets the maximum size, at most size_max_limit, and evicts fields. Frees the block if no field
  /// is left.
  void set_size_max(std::uint32_t size_max) noexcept;

 private:
  struct Record {
    std::uint16_t offset;  ///< the position of the name, which the value follows
    std::uint16_t name_size;
    std::uint16_t value_size;
  };
  static_assert(sizeof(Record) < hpack_field_overhead);

  struct State {
    std::uint16_t capacity = 0;  ///< bytes of the block
    std::uint16_t begin = 0;     ///< the offset of the oldest field
    std::uint16_t end = 0;       ///< the end of the newest field
    std::uint16_t evicted = 0;   ///< records before those of the fields
    std::uint16_t count = 0;     ///< fields
    std::uint16_t size = 0;
    std::uint16_t size_max = size_max_limit;
  };

  /// Returns the record of a field; 0 is the oldest one.
  Record& record(std::uint32_t age) const noexcept {
    return *(reinterpret_cast<Record*>(block_ + state_.capacity) - 1 - state_.evicted - age);
  }
  void evict_oldest() noexcept;
  std::uint32_t live_bytes() const noexcept;
  bool has_room(std::size_t bytes) const noexcept;
  void make_room(std::size_t bytes);
  void append(std::string_view name, std::string_view value) noexcept;

  char* block_ = nullptr;
  State state_;
};

}  // namespace weir::http
