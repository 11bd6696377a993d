// Options of json::read(): leniency about fields, and limits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::json {

/// The handling of a member whose name is not a field of the struct.
enum class UnknownFields : std::uint8_t {
  refuse,
  /// Skips the member, which must still be valid JSON. Names of skipped members and names inside
  /// them are not stored, so duplicates of these names are not detected.
  skip,
};

/// The handling of a field that the text does not contain.
enum class MissingFields : std::uint8_t {
  /// An error, except for an optional or pointer, which is then empty, and for a field with a
  /// default other than zero, which then has its default; see json.hpp.
  refuse,
  /// The field keeps its value: the one before read_into(), or its default. A value in an optional,
  /// a pointer, a variant, a sequence, a set or a map is always new: its fields have their
  /// defaults. Elements of a std::array, a pair or a tuple are not new.
  keep,
};

/// ReadOptions sets how lenient json::read() is about fields, and the limits of its input.
struct ReadOptions {
  UnknownFields unknown_fields = UnknownFields::refuse;
  MissingFields missing_fields = MissingFields::refuse;
  /// The maximum number of errors that read_all_errors() finds.
  std::size_t errors_max = 8;
  /// The maximum nesting depth of objects and arrays; a value above 1000 means 1000.
  std::size_t depth_max = 64;
  /// The maximum length of the text.
  std::size_t text_bytes_max = std::size_t{64} << 20;
  /// The maximum memory of all elements of arrays and maps together, each counted with its
  /// sizeof. Otherwise two bytes of text could become an element of a kilobyte many times. The
  /// node of an element of a list, map or set is not counted; it takes some 16 to 64 bytes.
  ///
  /// Hash tables have no such protection. std::hash of an integer is the integer, so a sender can
  /// choose keys that all fall into one bucket. Their cost is then the square of their number.
  /// Use std::map and std::set for keys that untrusted senders choose, or a hash with a secret.
  std::size_t element_bytes_max = std::size_t{64} << 20;
};

}  // namespace weir::json
