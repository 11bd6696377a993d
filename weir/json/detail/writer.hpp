// Writes the tokens of one JSON text; what codecs are made of.
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

/// Gathers the text in a chunk of its own and hands it over whenever that is full; derived classes
/// say to whom. Whoever uses it makes a correct sequence of calls: it does not look at the grammar.
/// Threads: one at a time.
class Writer {
 public:
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Punctuation and whole keys: what is written as it is.
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
  /// The shortest text that gives the same number again, with a point or an exponent; `null` for
  /// what is not finite, since JSON has no such numbers.
  void write(double value);
  void write(float value);
  /// In quotes. What is not UTF-8 is written as U+FFFD, one for each byte of it.
  void write(std::string_view text);

 protected:
  Writer() noexcept : position_(chunk_) {}
  ~Writer() = default;

  /// What has not been handed over yet.
  std::string_view gathered() const noexcept {
    return {chunk_, static_cast<std::size_t>(position_ - chunk_)};
  }

 private:
  static constexpr std::size_t chunk_size = 1024;

  /// Takes the next part of the text.
  virtual void take(std::string_view part) = 0;

  char* room(std::size_t size) {
    if (static_cast<std::size_t>(chunk_ + chunk_size - position_) < size) hand_over();
    return position_;
  }
  void hand_over();
  void write_signed(std::int64_t value);
  void write_unsigned(std::uint64_t value);
  template <class T>
  void write_real(T value);
  void write_special(const char*& position, const char* end);

  char* position_;
  char chunk_[chunk_size];  // only what is before position_ means something
};

/// Appends to a string.
class StringWriter final : public Writer {
 public:
  explicit StringWriter(std::string& out) noexcept : out_(out) {}
  void finish() { out_.append(gathered()); }

 private:
  void take(std::string_view part) override { out_.append(part); }
  std::string& out_;
};

/// Appends to a buffer of the core's.
class BufferWriter final : public Writer {
 public:
  explicit BufferWriter(Buffer& out) noexcept : out_(out) {}
  void finish() { take(gathered()); }

 private:
  void take(std::string_view part) override {
    if (part.empty()) return;
    out_.make_room(part.size());
    std::memcpy(out_.room().data(), part.data(), part.size());
    out_.grow(part.size());
  }
  Buffer& out_;
};

}  // namespace weir::json
