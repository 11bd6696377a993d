// Writes numbers, strings and escapes.
#include "weir/json/detail/writer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "weir/base/text/detail/printable.hpp"
#include "weir/base/text/detail/utf8.hpp"
#include "weir/json/text/detail/plain_text.hpp"

namespace weir::json {
namespace {

constexpr std::size_t number_size_max = 32;
constexpr std::size_t escape_size_max = 6;
constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

template <class Word>
Word load(const char* from) noexcept {
  Word word = 0;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

/// Copies `size` bytes, fewer than a block. Returns true if all of them are plain.
bool copy_plain(char* out, const char* from, std::size_t size) noexcept {
  const auto copy_words = [out, from, size]<class Word>(Word first) {
    const Word last = load<Word>(from + size - sizeof(Word));
    std::memcpy(out, &first, sizeof(first));
    std::memcpy(out + size - sizeof(last), &last, sizeof(last));
    return detail::all_plain(first) && detail::all_plain(last);
  };
  if (size >= sizeof(std::uint64_t)) return copy_words(load<std::uint64_t>(from));
  if (size >= sizeof(std::uint32_t)) return copy_words(load<std::uint32_t>(from));
  bool plain = true;
  for (std::size_t index = 0; index < size; ++index) {
    out[index] = from[index];
    plain = plain && detail::is_plain(from[index]);
  }
  return plain;
}

/// Returns the second character of an escape that has two, or 0.
char escape_letter(char character) noexcept {
  switch (character) {
    case '"':
    case '\\':
      return character;
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return '\0';
  }
}

}  // namespace

void Writer::flush() {
  append(buffered());
  position_ = chunk_;
}

void Writer::put(std::string_view text) {
  if (text.size() > chunk_size) {
    flush();
    append(text);
  } else if (!text.empty()) {
    std::memcpy(room(text.size()), text.data(), text.size());
    position_ += text.size();
  }
}

void Writer::write_signed(std::int64_t value) {
  char* const out = room(number_size_max);
  position_ = std::to_chars(out, out + number_size_max, value).ptr;
}

void Writer::write_unsigned(std::uint64_t value) {
  char* const out = room(number_size_max);
  position_ = std::to_chars(out, out + number_size_max, value).ptr;
}

template <class T>
void Writer::write_real(T value) {
  if (!std::isfinite(value)) return put(std::string_view("null"));
  char* const out = room(number_size_max);
  position_ = std::to_chars(out, out + number_size_max, value).ptr;
  const bool like_an_integer =
      std::none_of(out, position_, [](char each) { return each == '.' || each == 'e'; });
  if (like_an_integer) put(std::string_view(".0"));
}

void Writer::write(double value) {
  write_real(value);
}

void Writer::write(float value) {
  write_real(value);
}

void Writer::write(std::string_view text) {
  if (text.size() < detail::block_size) {
    char* const out = room(detail::block_size + 2);
    if (copy_plain(out + 1, text.data(), text.size())) {
      *out = '"';
      out[text.size() + 1] = '"';
      position_ += text.size() + 2;
      return;
    }
  }
  put('"');
  const char* position = text.data();
  const char* const end = position + text.size();
  while (position != end) {
    const char* const plain_end = detail::find_not_plain(text.data(), position, end);
    put(std::string_view(position, static_cast<std::size_t>(plain_end - position)));
    position = plain_end;
    if (position != end) write_special(position, end);
  }
  put('"');
}

/// Writes a character that needs an escape, or a run of UTF-8.
void Writer::write_special(const char*& position, const char* end) {
  const char character = *position;
  const char* const start = position;
  if (static_cast<unsigned char>(character) >= 0x80) {
    while (position != end && static_cast<unsigned char>(*position) >= 0x80) {
      const std::size_t length = utf8_length(position, end);
      if (length == 0) break;
      position += length;
    }
    if (position != start) {
      return put(std::string_view(start, static_cast<std::size_t>(position - start)));
    }
    ++position;
    return put(replacement);
  }
  ++position;
  char* const out = room(escape_size_max);
  *out = '\\';
  if (const char letter = escape_letter(character); letter != '\0') {
    out[1] = letter;
    position_ += 2;
    return;
  }
  constexpr std::string_view digits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(character);
  std::memcpy(out + 1, "u00", 3);
  out[4] = digits[code >> 4];
  out[5] = digits[code & 15U];
  position_ += escape_size_max;
}

void append_printable(std::string& out, std::string_view text) {
  std::string quoted;
  StringWriter writer(quoted);
  writer.write(text);
  writer.finish();
  out += to_printable_json(std::move(quoted));
}

}  // namespace weir::json
