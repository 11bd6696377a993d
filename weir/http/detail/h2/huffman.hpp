// The Huffman code of HPACK (RFC 7541 §5.2 and appendix B).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/detail/bytes.hpp"

namespace weir::http {

/// The letters that the encoder writes: those of the text, or the lower case of ASCII letters.
enum class LetterCase : std::uint8_t { unchanged, lower };

/// Returns the number of bytes in the code of `text`.
std::size_t huffman_size(std::string_view text,
                         LetterCase letters = LetterCase::unchanged) noexcept;

/// Writes the code of `text` to `out`, which has room for huffman_size() bytes.
/// Returns: the end of the code.
char* huffman_encode(std::string_view text, char* out,
                     LetterCase letters = LetterCase::unchanged) noexcept;

/// The result of huffman_decode().
struct HuffmanText {
  enum class Kind : std::uint8_t {
    complete,  ///< `size` bytes of text were written
    no_room,   ///< the text is longer than the room; the rest of the code was not checked
    invalid,   ///< the code contains EOS, or its padding is not the start of EOS in under 8 bits
  };
  Kind kind = Kind::complete;
  std::size_t size = 0;  ///< 0 unless complete
};

/// Decodes `code` to `room`. A text is at most 8/5 as long as its code. Each step looks up 12 bits
/// in a table of 16 KiB and gives up to two characters; codes of 13 to 30 bits are rare.
HuffmanText huffman_decode(Bytes code, std::span<char> room) noexcept;

}  // namespace weir::http
