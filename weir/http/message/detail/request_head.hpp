// The parsed head of a message: its headers and the framing of its body; for a request also its
// target.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/http/message/body_length.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/http/syntax/uri.hpp"

namespace weir::http {

/// The head of a received message as offsets into its bytes. It does not own the bytes; the caller
/// may move them together, see rebase(). A HeadParser fills it; its content is defined only after
/// the parser returned `complete`. One object can be filled any number of times, at no cost per
/// header. A copy copies only the headers that are present. Headers beyond inline_max need memory
/// of the heap. Threads: one at a time.
class MessageHead {
 public:
  /// The number of headers that need no heap memory.
  static constexpr std::uint32_t inline_max = 100;

  MessageHead() noexcept { headers_ = first_.data(); }  // NOLINT: first_ stays uninitialized
  /// Errors: throws std::bad_alloc if there are more than inline_max headers.
  MessageHead(const MessageHead& other) {  // NOLINT: copies first_
    headers_ = first_.data();
    copy(other);
  }
  MessageHead& operator=(const MessageHead& other) {
    if (this != &other) copy(other);
    return *this;
  }
  ~MessageHead() { release(); }

  /// Returns an upper bound of the heap memory of a head with this number of headers. The array
  /// doubles while the old one still exists.
  static constexpr std::uint64_t heap_bytes_max(std::uint64_t headers) noexcept {
    return headers <= inline_max ? 0 : 3 * headers * sizeof(HeaderSlices);
  }

  /// Returns 0 or 1; a higher minor version counts as 1 (RFC 9112 §2.3).
  int version_minor() const noexcept { return info_.version_minor; }

  std::size_t header_count() const noexcept { return info_.header_count; }

  /// Returns the header at `index`, in the order of arrival.
  HeaderField header_at(std::size_t index) const noexcept {
    assert(index < info_.header_count);
    return {view(headers_[index].name), view(headers_[index].value)};
  }

  /// Returns the value of the first header called `name`, in any letter case.
  std::optional<std::string_view> header(std::string_view name) const noexcept;

  /// Returns true if there are several headers called `name`, in any letter case. A header of one
  /// value must not be repeated, because another reader may take another one (RFC 9110 §5.3).
  bool repeats(std::string_view name) const noexcept;

  bool has_content_length() const noexcept { return info_.has_content_length; }
  std::uint64_t content_length() const noexcept { return info_.content_length; }
  bool chunked() const noexcept { return info_.chunked; }
  /// Returns the length of the body of a message of HTTP/2 whose stream goes on behind this head
  /// (RFC 9113 §8.1.1). A message that announces no byte may still have trailers.
  BodyLength length_in_stream() const noexcept {
    return info_.content_length > 0 ? BodyLength::of(info_.content_length) : BodyLength::unknown();
  }

  /// Removes the headers for whose names `remove(name)` is true from this object. The framing of
  /// the body and bytes() stay.
  template <class Remove>
  void remove_headers(const Remove& remove) noexcept {
    std::uint32_t kept = 0;
    for (std::size_t index = 0; index < info_.header_count; ++index) {
      if (!remove(view(headers_[index].name))) headers_[kept++] = headers_[index];
    }
    info_.header_count = kept;
  }
  /// Replaces the value of the header at `index`. The new value lies at most 4 GiB behind the
  /// address of bytes(), in memory that the caller moves together with them.
  void set_value(std::size_t index, std::string_view value) noexcept {
    assert(index < info_.header_count);
    headers_[index].value = slice_of(value);
  }

  /// Returns true if the connection may be used again after this message (RFC 9112 §9.3).
  bool keep_alive() const noexcept {
    return !info_.close && (info_.version_minor > 0 || info_.keep_alive);
  }

  /// Returns the bytes of the head, including the empty lines before it.
  std::string_view bytes() const noexcept { return {base_, info_.size}; }

  /// Sets the new address of bytes() after the caller copied them there.
  void rebase(const char* base) noexcept { base_ = base; }

 protected:
  friend class HeadParser;

  struct Slice {
    std::uint32_t offset;
    std::uint32_t length;
  };

  struct HeaderSlices {
    Slice name;
    Slice value;
  };

  /// All fields except the headers; they are reset together.
  struct HeadInfo {
    Slice method_text{};
    Slice target{};
    Slice path{};
    Slice query{};
    Slice authority{};
    std::uint64_t content_length = 0;
    std::uint32_t size = 0;
    std::uint32_t header_count = 0;
    Method method = Method::other;
    TargetForm form = TargetForm::origin;
    std::uint8_t version_minor = 0;
    bool has_query = false;
    bool path_has_escapes = false;
    bool has_host = false;
    bool has_content_length = false;
    bool chunked = false;
    bool close = false;
    bool keep_alive = false;
    bool upgrade = false;
    bool has_upgrade = false;
    bool expects_continue = false;
    bool expects_other = false;
    Status status{};  // of a response
  };

  std::string_view view(Slice slice) const noexcept { return {base_ + slice.offset, slice.length}; }

  Slice slice_of(std::string_view text) const noexcept {
    if (text.empty()) return {};
    return {static_cast<std::uint32_t>(text.data() - base_),
            static_cast<std::uint32_t>(text.size())};
  }

  void copy(const MessageHead& other);
  /// Makes room for one more header at least. Returns false if there is no memory.
  bool grow() noexcept;
  /// Frees the memory of the heap.
  void release() noexcept {
    if (headers_ != first_.data()) delete[] headers_;
  }

  const char* base_ = nullptr;
  HeadInfo info_;
  std::uint32_t capacity_ = inline_max;
  HeaderSlices* headers_;  // only the first header_count are valid
  std::array<HeaderSlices, inline_max> first_;
};

/// The head of a request; see MessageHead.
class RequestHead : public MessageHead {
 public:
  Method method() const noexcept { return info_.method; }

  /// Returns the method as it was sent, which a Method::other needs.
  std::string_view method_text() const noexcept { return view(info_.method_text); }

  TargetForm target_form() const noexcept { return info_.form; }

  /// Returns the request target as it was sent.
  std::string_view target() const noexcept { return view(info_.target); }

  /// Returns the raw path, which starts with '/'; "*" for the asterisk form, empty for CONNECT.
  std::string_view path() const noexcept {
    return info_.form == TargetForm::asterisk ? "*" : view(info_.path);
  }

  /// Returns true if decoding would change the path.
  bool path_has_escapes() const noexcept { return info_.path_has_escapes; }

  /// Returns the raw query without '?'; empty if there is none. See UrlencodedPairs.
  std::string_view query() const noexcept { return view(info_.query); }
  bool has_query() const noexcept { return info_.has_query; }

  /// Returns the host[:port] that the request is for: that of the target, or else of the Host
  /// header. It is empty only in HTTP/1.0.
  std::string_view authority() const noexcept { return view(info_.authority); }

  /// Returns true if the framing of HTTP/1 says that bytes of a body follow this head (RFC 9112
  /// §6.3). Over HTTP/2, END_STREAM says it: Request::body_length() holds for all carriers.
  bool has_body() const noexcept { return info_.chunked || info_.content_length > 0; }

  /// Returns true if the client waits for 100 (Continue) before it sends the body (RFC 9110
  /// §10.1.1).
  bool expects_continue() const noexcept { return info_.expects_continue; }

  /// Forgets all of a head that is rejected, except its method, which decides if the response has a
  /// body.
  void clear(Method method) noexcept {
    base_ = nullptr;
    info_ = {};
    info_.method = method;
  }

  /// True for HTTP/1.1 with an Upgrade header that Connection names (RFC 9110 §7.8).
  bool requests_upgrade() const noexcept {
    return info_.has_upgrade && info_.upgrade && info_.version_minor > 0;
  }
};

/// The head of a received response; see MessageHead.
class ReceivedResponseHead : public MessageHead {
 public:
  /// Returns the status, from 100 to 599.
  Status status() const noexcept { return info_.status; }
};

}  // namespace weir::http
