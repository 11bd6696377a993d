// The body of a response or a request: a literal, bytes that it owns, or a function that writes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/task/task.hpp"

namespace weir::os {
struct FilePart;
}  // namespace weir::os

namespace weir::http {

/// Text that lives as long as the program; only a constant converts to it.
class Literal {
 public:
  template <std::size_t N>
  consteval Literal(const char (&text)[N]) : text_(text, N - 1) {}
  constexpr std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

/// A media type that is a constant; text that a header cannot hold does not compile.
class MediaType {
 public:
  template <std::size_t N>
  consteval MediaType(const char (&text)[N]) : text_(text, N - 1) {
    for (const char each : text_) {
      if (each < ' ' || each > '~') throw "a media type has printable characters only";
    }
  }
  constexpr std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

/// Text that is not a literal. A Body copies it, or moves it if it is a std::string rvalue.
template <class S>
concept OwnedText =
    std::is_convertible_v<S, std::string_view> && !std::is_array_v<std::remove_reference_t<S>>;

/// The destination of a streamed body, which is written piece by piece.
class BodySink {
 public:
  virtual ~BodySink() = default;
  /// Sends all of `piece`; an empty piece sends nothing. It waits while the receiver is slow, and
  /// returns when the caller may reuse the memory of the piece. Calls must not overlap
  /// (asserted).
  /// Errors: Errc::bad_input for bytes beyond the length of the body. In a response, those of the
  /// connection, and Errc::timed_out if the client was too slow for Limits::write_rate. In a
  /// request, ClientError (connection_lost, body_timed_out, timed_out). The caller must stop
  /// writing after an error.
  /// Cancel: the message is cut off; the connection closes.
  virtual Task<Result<>> write(Bytes piece) = 0;
  Task<Result<>> write(std::string_view piece) { return write(to_bytes(piece)); }

  /// Sends bytes of an open file without a copy, as many as the receiver takes without a wait. The
  /// rules of Stream::try_write_file() hold. No write() is in progress (asserted).
  /// Returns: the number of bytes. It is 0 if the receiver is slow, or if each byte has to be
  /// copied, as with TLS and HTTP/2. The caller sends the next bytes by write() then.
  /// Errors: those of write().
  virtual Result<std::size_t> try_write_file(const os::FilePart&) { return 0; }

  /// Adds a trailer field (RFC 9110 §6.5), which is sent when the function has returned. A status
  /// that is known only then is an example. HTTP/1.1 has trailers only behind a body whose length
  /// was unknown, and HTTP/1.0 has none; they are left out there. A receiver may ignore them.
  /// Errors: those of Headers::add(), and bad_input for a field that must be in the head, such as
  /// Content-Length or Set-Cookie, or that describes a connection, such as Keep-Alive.
  Result<> add_trailer(std::string_view name, std::string_view value) {
    if (!may_be_trailer(name)) return fail(Errc::bad_input);
    return trailers_.add(name, value);
  }
  const Headers& trailers() const noexcept { return trailers_; }

 private:
  Headers trailers_;
};

using StreamFunction = std::move_only_function<Task<Result<>>(BodySink&)>;

struct WebSocketUpgrade;

/// The content of a response or a request; move-only. A body of at most `inline_max` bytes needs no
/// heap memory. A Buffer uses the memory of its core. Threads: one at a time.
class Body {
 public:
  static constexpr std::size_t inline_max = 62;

  Body() noexcept {}
  explicit Body(Literal literal) noexcept : content_(literal.text()) {}
  explicit Body(std::string&& text) {
    if (text.size() > inline_max) {
      content_.emplace<std::string>(std::move(text));
    } else {
      content_.emplace<Short>(text);
    }
  }
  template <OwnedText S>
    requires(!std::is_same_v<S, std::string>)
  explicit Body(S&& text) {
    const std::string_view view(text);
    if (view.size() > inline_max) {
      content_.emplace<std::string>(view);
    } else {
      content_.emplace<Short>(view);
    }
  }
  explicit Body(Buffer&& bytes) noexcept : content_(std::move(bytes)) {}
  /// Makes a body of a text that others use too, such as a cache. It is not nullptr.
  explicit Body(std::shared_ptr<const std::string> shared) noexcept : content_(std::move(shared)) {}
  /// Makes a body that `stream` writes, of `length` bytes if that is known. The function of a
  /// response may read the body of the request meanwhile if `duplex` has a value; see
  /// DuplexOptions.
  explicit Body(StreamFunction stream, std::optional<std::uint64_t> length = std::nullopt,
                std::optional<Duration> duplex = std::nullopt)
      : content_(std::in_place_type<Streamed>, std::move(stream), length, duplex) {}

  /// Makes the body of a response that accepts a WebSocket.
  explicit Body(std::shared_ptr<WebSocketUpgrade> upgrade) noexcept
      : content_(std::move(upgrade)) {}

  /// Returns what becomes of the connection; nullptr unless the response accepts a WebSocket.
  WebSocketUpgrade* upgrade() const noexcept {
    const auto* const upgrade = std::get_if<Upgrade>(&content_);
    return upgrade != nullptr ? upgrade->get() : nullptr;
  }
  bool is_upgrade() const noexcept { return std::holds_alternative<Upgrade>(content_); }
  /// Returns the function that writes the body, or nullptr if the bytes are stored here.
  StreamFunction* stream() noexcept {
    auto* const streamed = std::get_if<Streamed>(&content_);
    return streamed != nullptr ? &streamed->write : nullptr;
  }
  bool is_stream() const noexcept { return std::holds_alternative<Streamed>(content_); }
  /// Returns the longest wait for bytes of a request that the function reads while it writes;
  /// std::nullopt if it reads none.
  std::optional<Duration> duplex() const noexcept {
    const auto* const streamed = std::get_if<Streamed>(&content_);
    return streamed != nullptr ? streamed->duplex : std::nullopt;
  }
  /// Returns the number of bytes; std::nullopt for a stream whose length is unknown.
  std::optional<std::uint64_t> length() const noexcept {
    if (const auto* streamed = std::get_if<Streamed>(&content_)) return streamed->length;
    return text().size();
  }
  /// Returns the bytes; empty for a stream.
  std::string_view text() const noexcept {
    if (const auto* literal = std::get_if<std::string_view>(&content_)) return *literal;
    if (const auto* shorter = std::get_if<Short>(&content_)) return shorter->view();
    if (const auto* owned = std::get_if<std::string>(&content_)) return *owned;
    if (const auto* buffer = std::get_if<Buffer>(&content_)) return buffer->text();
    if (const auto* shared = std::get_if<Shared>(&content_)) return **shared;
    return {};
  }

 private:
  class Short {
   public:
    explicit Short(std::string_view text) noexcept
        : size_(static_cast<unsigned char>(text.size())) {
      if (!text.empty()) std::memcpy(text_.data(), text.data(), text.size());
    }
    std::string_view view() const noexcept { return {text_.data(), size_}; }

   private:
    std::array<char, inline_max> text_;
    unsigned char size_;
  };

  using Upgrade = std::shared_ptr<WebSocketUpgrade>;

  struct Streamed {
    Streamed(StreamFunction function, std::optional<std::uint64_t> bytes,
             std::optional<Duration> read_timeout) noexcept
        : write(std::move(function)), length(bytes), duplex(read_timeout) {}
    StreamFunction write;
    std::optional<std::uint64_t> length;
    std::optional<Duration> duplex;
  };

  using Shared = std::shared_ptr<const std::string>;

  std::variant<std::string_view, Short, std::string, Buffer, Streamed, Upgrade, Shared> content_;
};

}  // namespace weir::http
