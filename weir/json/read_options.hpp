// What is accepted beyond the letter of the struct, and the limits of what is read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::json {

/// What becomes of a member whose name the struct does not have.
enum class UnknownFields : std::uint8_t {
  refuse,
  /// It must be valid JSON all the same, but its names are not kept: one that comes twice is not
  /// noticed, neither beside it nor in it.
  skip,
};

/// What becomes of a field that the text does not mention.
enum class MissingFields : std::uint8_t {
  refuse,  ///< an error; but an optional or a pointer may be missing and is then empty
  keep,    ///< it keeps its value: the one before read_into(), or that the struct was made with
};

struct ReadOptions {
  UnknownFields unknown_fields = UnknownFields::refuse;
  MissingFields missing_fields = MissingFields::refuse;
  /// How deep objects and arrays may be nested; never more than 1000.
  std::size_t depth_max = 64;
  /// How long the text may be.
  std::size_t text_bytes_max = std::size_t{64} << 20;
  /// How much memory the elements of arrays and maps may take together, each counted with its
  /// sizeof: two bytes of text must not become an element of a kilobyte again and again. What
  /// lists, maps and sets need besides for the node of an element is not counted: some 16 to 64
  /// bytes each.
  ///
  /// Nor does a limit here guard hash tables: std::hash of an integer is the integer, so that who
  /// knows it can send keys that all fall into one bucket, whose cost is the square of their
  /// number. For keys that strangers choose take std::map and std::set, or a hash with a secret in
  /// it.
  std::size_t element_bytes_max = std::size_t{64} << 20;
};

}  // namespace weir::json
