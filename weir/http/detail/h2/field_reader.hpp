// The common part of the readers of fields (RFC 9113 §8.2): decoding, rules and trailers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/detail/fast_equal.hpp"
#include "weir/http/detail/h2/hpack_decoder.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/http/detail/h2/priority.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {

/// The result of reading a block of fields.
struct FieldsResult {
  enum class Kind : std::uint8_t {
    complete,       ///< the head or the trailers are filled
    rejected,       ///< the rules or limits of HTTP/1.1 reject the message; see `error`
    malformed,      ///< a stream error of type PROTOCOL_ERROR (RFC 9113 §8.1.1)
    invalid_block,  ///< a connection error of type COMPRESSION_ERROR (RFC 9113 §4.3)
  };
  Kind kind = Kind::complete;
  ParseError error = ParseError::none;  ///< none unless rejected
  bool is_https = false;                ///< true if :scheme is https
  bool is_extended_connect = false;     ///< true for a CONNECT with :protocol
  std::optional<Priority> priority{};   ///< value of a request's header `priority`, if it has one
};

/// The base of the readers of requests and responses. It has the memory in which they write the
/// text of a head.
/// Threads: one at a time.
class FieldReader {
 public:
  FieldReader(const FieldReader&) = delete;
  FieldReader& operator=(const FieldReader&) = delete;

  /// Reads a whole block of trailers and appends them to `trailers`, which stays incomplete unless
  /// the result is `complete`. The trailers that a ChunkedDecoder rejects are rejected.
  /// Errors: throws std::bad_alloc.
  FieldsResult read_trailers(HpackTable& table, Bytes block, Headers& trailers);

  /// Forgets a table before its end. Another one may come to its place.
  void forget(const HpackTable& table) noexcept {
    if (repeated_.table == &table) repeated_.table = nullptr;
  }

  /// Decodes a whole block of a stream that was refused, to keep the table in step.
  /// Returns: complete or invalid_block.
  /// Errors: throws std::bad_alloc if there is no memory for the table.
  FieldsResult skip(HpackTable& table, Bytes block);

 protected:
  using Field = HpackDecoder::Field;
  using Kind = FieldsResult::Kind;

  struct Limits {
    std::uint32_t list_bytes_max;
    std::uint32_t trailers_max;        ///< of ChunkLimits
    std::uint32_t trailers_bytes_max;  ///< of ChunkLimits
  };

  /// Returns the limit of a field list, which is at most 16 MiB.
  static constexpr std::uint32_t list_max(std::uint32_t list_bytes_max) noexcept {
    constexpr std::uint32_t limit_max = 16 * 1024 * 1024;
    return list_bytes_max < limit_max ? list_bytes_max : limit_max;
  }
  /// Returns the room for the text of a list: the overhead of its fields is larger than what
  /// separates their texts. The rest is for the first line and for what the reader adds.
  static constexpr std::size_t text_size(std::uint32_t list_bytes_max) noexcept {
    return std::size_t{list_max(list_bytes_max)} + 128;
  }
  static constexpr std::size_t memory(std::uint32_t list_bytes_max, std::size_t more) noexcept {
    return HpackDecoder::scratch_size(list_max(list_bytes_max)) + text_size(list_bytes_max) + more;
  }

  /// Allocates memory(limits.list_bytes_max, more).
  FieldReader(const Limits& limits, std::size_t more);
  ~FieldReader() = default;

  /// Returns a decoder without a field, for a new message. Forgets the repeated block.
  HpackDecoder begin(HpackTable& table, Bytes block) noexcept;
  /// Notes the end of the block. Returns false if it is invalid.
  bool finish(HpackDecoder::Step step, const HpackDecoder& decoder, ParseError exceeded) noexcept;
  void fail(Kind kind, ParseError error = ParseError::none) noexcept;
  bool failed() const noexcept { return result_.kind != Kind::complete; }

  void write(std::string_view text) noexcept;
  void write_line(std::string_view name, std::string_view value) noexcept;
  /// Writes a field as a line. It is malformed unless its name is a token in lower case, its value
  /// is valid, and it does not describe a connection of HTTP/1.1 (RFC 9113 §8.2.1 and §8.2.2).
  void write_field(const Field& field) noexcept;
  /// Returns true if a value, which was copied to the memory of the reader, has no NUL, CR or LF,
  /// and no white space at its ends (RFC 9113 §8.2.1). The HeadParser rejects the other control
  /// characters.
  bool is_valid_value(std::string_view value) const noexcept;
  /// Returns the text that was written since begin().
  std::string_view text() const noexcept { return {text_start(), text_end_}; }
  /// Returns true if the memory still has the text of this block, and decoding it again with
  /// this table would give the same text.
  bool is_repeated(const HpackTable& table, Bytes block) const noexcept {
    return repeated_.table == &table &&
           fast_equal(to_text({repeated_.block.data(), repeated_.size}), to_text(block));
  }
  /// Notes a block that a later message may repeat, if it was complete and has not changed the
  /// table.
  void note_block(const HpackTable& table, Bytes block, const HpackDecoder& decoder) noexcept;
  /// Returns true if the last block of a message was noted.
  bool has_noted_block() const noexcept { return repeated_.table != nullptr; }
  /// Returns the start of the additional memory.
  char* more() const noexcept { return text_start() + text_size(limits_.list_bytes_max); }

  FieldsResult result_;

 private:
  HpackDecoder decoder_of(HpackTable& table, Bytes block, std::uint32_t list_bytes_max) noexcept;
  bool is_valid_name(std::string_view name) const noexcept;
  char* text_start() const noexcept {
    return memory_.get() + HpackDecoder::scratch_size(limits_.list_bytes_max);
  }

  /// The last block, whose text is in the memory. Clients that repeat a request index all of its
  /// fields, so that the blocks are equal and short.
  struct Repeated {
    const HpackTable* table = nullptr;  ///< nullptr: no block
    std::size_t size = 0;
    std::array<std::byte, 64> block;
  };

  Limits limits_;
  Repeated repeated_;
  std::unique_ptr<char[]> memory_;  ///< the decoder's scratch memory, the text, and more
  char* text_end_ = nullptr;
};

// The two functions that run for each field.

[[gnu::always_inline]] inline void FieldReader::write(std::string_view text) noexcept {
  text_end_ += text.copy(text_end_, text.size());
}

[[gnu::always_inline]] inline void FieldReader::write_line(std::string_view name,
                                                           std::string_view value) noexcept {
  write(name);
  write(": ");
  write(value);
  write("\r\n");
}

}  // namespace weir::http
