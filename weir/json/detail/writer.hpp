// A Writer writes the tokens of one JSON text. Codecs use it.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/json/detail/reader.hpp"

namespace weir::json {

/// A Writer collects the text in a chunk of its own and passes each full chunk to the derived
/// class. It does not check the grammar; the caller makes a correct sequence of calls.
/// Threads: one at a time.
class Writer {
 public:
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Write punctuation and whole keys without a change.
  void put(char character) {
    *room(1) = character;
    ++position_;
  }
  template <std::size_t N>
  void put(const std::array<char, N>& token) {
    static_assert(N <= chunk_size);
    std::memcpy(room(N), token.data(), N);
    position_ += N;
  }
  void put(std::string_view text);

  template <Integer T>
  void write(T value) {
    if constexpr (std::is_signed_v<T>) {
      write_signed(value);
    } else {
      write_unsigned(value);
    }
  }
  void write(bool value) { put(value ? std::string_view("true") : std::string_view("false")); }
  /// Writes the shortest text that gives the same number again, with a point or an exponent. It
  /// writes `null` for a number that is not finite, since JSON has no such numbers.
  void write(double value);
  void write(float value);
  /// Writes a string in quotes. Each byte that is not part of valid UTF-8 is written as U+FFFD.
  void write(std::string_view text);

 protected:
  Writer() noexcept : position_(chunk_) {}
  ~Writer() = default;

  /// Returns the text that has not been passed to append() yet.
  std::string_view buffered() const noexcept {
    return {chunk_, static_cast<std::size_t>(position_ - chunk_)};
  }

 private:
  static constexpr std::size_t chunk_size = 1024;

  /// Takes the next part of the text.
  virtual void append(std::string_view part) = 0;

  char* room(std::size_t size) {
    if (static_cast<std::size_t>(chunk_ + chunk_size - position_) < size) flush();
    return position_;
  }
  void flush();
  void write_signed(std::int64_t value);
  void write_unsigned(std::uint64_t value);
  template <class T>
  void write_real(T value);
  void write_special(const char*& position, const char* end);

  char* position_;
  char chunk_[chunk_size];  // valid before position_
};

/// A StringWriter appends to a string.
class StringWriter final : public Writer {
 public:
  explicit StringWriter(std::string& out) noexcept : out_(out) {}
  void finish() { out_.append(buffered()); }

 private:
  void append(std::string_view part) override { out_.append(part); }
  std::string& out_;
};

/// A BufferWriter appends to a buffer of the core.
class BufferWriter final : public Writer {
 public:
  explicit BufferWriter(Buffer& out) noexcept : out_(out) {}
  void finish() { append(buffered()); }

 private:
  void append(std::string_view part) override {
    if (part.empty()) return;
    out_.make_room(part.size());
    std::memcpy(out_.room().data(), part.data(), part.size());
    out_.commit(part.size());
  }
  Buffer& out_;
};

/// Appends a string in quotes, safe to show and to log. It also escapes the characters that JSON
/// permits and that are not printable; see to_printable_json().
void append_printable(std::string& out, std::string_view text);

}  // namespace weir::json
