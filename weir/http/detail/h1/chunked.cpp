// The state machine of the chunked-body decoder.
#include "weir/http/detail/h1/chunked.hpp"

#include <algorithm>
#include <string>

#include "weir/http/detail/h1/framing.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

constexpr int size_digits_max = 16;
constexpr std::uint64_t size_max = 0x7fff'ffff'ffff'ffffU;

}  // namespace

/// The state of trailers, allocated on demand because most bodies have none.
struct ChunkedDecoder::Trailers {
  Headers headers;
  std::string line;           ///< the current line without its CRLF
  std::size_t name_size = 0;  ///< the size of that line's name, once its colon was read
  std::uint32_t bytes = 0;    ///< bytes of all lines
  std::uint32_t count = 0;
};

ChunkedDecoder::ChunkedDecoder() noexcept = default;
ChunkedDecoder::ChunkedDecoder(const ChunkLimits& limits) noexcept : limits_(limits) {}
ChunkedDecoder::ChunkedDecoder(ChunkedDecoder&&) noexcept = default;
ChunkedDecoder& ChunkedDecoder::operator=(ChunkedDecoder&&) noexcept = default;
ChunkedDecoder::~ChunkedDecoder() = default;

const Headers& ChunkedDecoder::trailers() const noexcept {
  static const Headers none{};
  return trailers_ ? trailers_->headers : none;
}

void ChunkedDecoder::reset() noexcept {
  *this = ChunkedDecoder(limits_);
}

ChunkedDecoder::Step ChunkedDecoder::next(std::string_view input) {
  std::size_t consumed = 0;
  while (state_ != State::end && state_ != State::failed) {
    if (consumed == input.size()) return {Step::Kind::need_more, ParseError::none, consumed, {}};
    if (state_ == State::data) {
      const std::string_view data = input.substr(
          consumed, static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size())));
      left_ -= data.size();
      if (left_ == 0) state_ = State::data_return;
      return {Step::Kind::data, ParseError::none, consumed + data.size(), data};
    }
    error_ = read(input[consumed]);
    if (error_ != ParseError::none) {
      state_ = State::failed;
    } else {
      ++consumed;
    }
  }
  if (state_ == State::end) return {Step::Kind::end, ParseError::none, consumed, {}};
  return {Step::Kind::error, error_, consumed, {}};
}

ParseError ChunkedDecoder::expect(char expected, char actual, State next,
                                  ParseError otherwise) noexcept {
  if (actual != expected) return otherwise;
  state_ = next;
  return ParseError::none;
}

/// Processes one byte of framing.
ParseError ChunkedDecoder::read(char character) {
  switch (state_) {
    case State::size_start:
    case State::size:
      return read_size(character);
    case State::size_line_feed:
      line_bytes_ = 0;
      digits_ = 0;
      return expect('\n', character, left_ > 0 ? State::data : State::trailer_start,
                    ParseError::bad_line_end);
    case State::data_return:
      return expect('\r', character, State::data_line_feed, ParseError::bad_chunk_end);
    case State::data_line_feed:
      return expect('\n', character, State::size_start, ParseError::bad_chunk_end);
    case State::trailer_start:
    case State::trailer_name:
    case State::trailer_value:
    case State::trailer_line_feed:
      return read_trailer(character);
    case State::last_line_feed:
      return expect('\n', character, State::end, ParseError::bad_line_end);
    default:
      return read_extension(character);
  }
}

ParseError ChunkedDecoder::read_size(char character) noexcept {
  const int digit = hex_value(character);
  if (digit < 0) {
    if (state_ == State::size_start) return error_at(character, ParseError::bad_chunk_size);
    return after_size(character);
  }
  if (state_ == State::size_start) left_ = 0;
  if (digits_ == size_digits_max || left_ > (size_max >> 4))
    return ParseError::chunk_size_too_large;
  if (line_bytes_ == limits_.line_max) return ParseError::chunk_line_too_long;
  ++digits_;
  ++line_bytes_;
  left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
  state_ = State::size;
  return ParseError::none;
}

ParseError ChunkedDecoder::after_size(char character) noexcept {
  if (character == '\r') {
    state_ = State::size_line_feed;
    return ParseError::none;
  }
  if (character != ';' && !is_space(character))
    return error_at(character, ParseError::bad_chunk_size);
  state_ = State::space_before_semicolon;
  return read_extension(character);
}

/// Reads *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ), RFC 9112 §7.1.1.
ParseError ChunkedDecoder::read_extension(char character) noexcept {
  if (character != '\r') {
    if (line_bytes_ == limits_.line_max) return ParseError::chunk_line_too_long;
    if (extension_bytes_ == limits_.extensions_max) return ParseError::chunk_extensions_too_long;
    ++line_bytes_;
    ++extension_bytes_;
  }
  const bool token = is_in(character, CharClass::token);
  switch (state_) {
    case State::space_before_semicolon:
      if (is_space(character)) return ParseError::none;
      return expect(';', character, State::extension_start,
                    error_at(character, ParseError::bad_chunk_extension));
    case State::extension_start:
      if (is_space(character)) return ParseError::none;
      if (!token) return error_at(character, ParseError::bad_chunk_extension);
      state_ = State::extension_name;
      return ParseError::none;
    case State::extension_name:
      if (token) return ParseError::none;
      if (character == '=') {
        state_ = State::value_start;
        return ParseError::none;
      }
      if (is_space(character)) {
        state_ = State::space_after_name;
        return ParseError::none;
      }
      return after_extension(character);
    case State::space_after_name:
      if (is_space(character)) return ParseError::none;
      if (character == ';') return after_extension(character);
      return expect('=', character, State::value_start,
                    error_at(character, ParseError::bad_chunk_extension));
    default:
      return read_extension_value(character);
  }
}

ParseError ChunkedDecoder::read_extension_value(char character) noexcept {
  const bool token = is_in(character, CharClass::token);
  switch (state_) {
    case State::value_start:
      if (is_space(character)) return ParseError::none;
      if (character != '"' && !token) return error_at(character, ParseError::bad_chunk_extension);
      state_ = token ? State::value_token : State::value_quoted;
      return ParseError::none;
    case State::value_quoted:
    case State::value_escape:
      if (!is_in(character, CharClass::value)) {
        return error_at(character, ParseError::bad_chunk_extension);
      }
      if (state_ == State::value_escape) {
        state_ = State::value_quoted;
      } else if (character == '"') {
        state_ = State::value_quoted_end;
      } else if (character == '\\') {
        state_ = State::value_escape;
      }
      return ParseError::none;
    default:
      if (state_ == State::value_token && token) return ParseError::none;
      return after_extension(character);
  }
}

/// Reads the byte after a name or a value.
ParseError ChunkedDecoder::after_extension(char character) noexcept {
  switch (character) {
    case '\r':
      state_ = State::size_line_feed;
      return ParseError::none;
    case ';':
      state_ = State::extension_start;
      return ParseError::none;
    case ' ':
    case '\t':
      state_ = State::space_before_semicolon;
      return ParseError::none;
    default:
      return error_at(character, ParseError::bad_chunk_extension);
  }
}

ParseError ChunkedDecoder::read_trailer(char character) {
  if (state_ == State::trailer_start) {
    if (character == '\r') {
      state_ = State::last_line_feed;
      return ParseError::none;
    }
    if (const ParseError error = start_trailer(character); error != ParseError::none) return error;
  }
  if (state_ == State::trailer_line_feed) {
    return character == '\n' ? finish_trailer() : ParseError::bad_line_end;
  }
  if (state_ == State::trailer_value && character == '\r') {
    state_ = State::trailer_line_feed;
    return ParseError::none;
  }
  Trailers& trailers = *trailers_;
  if (state_ == State::trailer_value) {
    if (!is_in(character, CharClass::value))
      return error_at(character, ParseError::bad_header_value);
  } else if (character == ':' && !trailers.line.empty()) {
    trailers.name_size = trailers.line.size();
    if (is_forbidden_trailer(trailers.line)) return ParseError::forbidden_trailer;
    state_ = State::trailer_value;
  } else if (!is_in(character, CharClass::token)) {
    const bool space = is_space(character) && !trailers.line.empty();
    return error_at(character,
                    space ? ParseError::space_before_colon : ParseError::bad_header_name);
  }
  if (trailers.bytes == limits_.trailers_bytes_max) return ParseError::trailers_too_long;
  ++trailers.bytes;
  trailers.line.push_back(character);
  return ParseError::none;
}

ParseError ChunkedDecoder::start_trailer(char character) {
  if (is_space(character)) return ParseError::folded_line;
  if (!trailers_) trailers_ = std::make_unique<Trailers>();
  if (trailers_->count == limits_.trailers_max) return ParseError::too_many_trailers;
  ++trailers_->count;
  trailers_->line.clear();
  state_ = State::trailer_name;
  return ParseError::none;
}

ParseError ChunkedDecoder::finish_trailer() {
  const std::string_view line = trailers_->line;
  const std::size_t name_size = trailers_->name_size;
  if (!trailers_->headers.add(line.substr(0, name_size), line.substr(name_size + 1))) {
    return ParseError::bad_header_value;
  }
  state_ = State::trailer_start;
  return ParseError::none;
}

}  // namespace weir::http
