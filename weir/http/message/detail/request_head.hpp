// The parsed head of one request: what it asks for, its fields, and how its body is framed.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/uri.hpp"

namespace weir::http {

/// The head of a request as offsets into the bytes it came in, which it does not own: they may move
/// together, see rebase(). It is filled by HeadParser and means something only after it said
/// `complete`. One object serves any number of heads in turn; filling it again costs nothing per
/// field. Copying it copies only the fields that are there. Threads: one at a time.
class RequestHead {
 public:
  /// No head has more fields, whatever HeadLimits say.
  static constexpr std::size_t fields_max = 100;

  RequestHead() noexcept {}  // NOLINT: fields_ is left as it is, on purpose
  RequestHead(const RequestHead& other) noexcept { copy(other); }  // NOLINT: as above
  RequestHead& operator=(const RequestHead& other) noexcept {
    if (this != &other) copy(other);
    return *this;
  }
  ~RequestHead() = default;

  Method method() const noexcept { return about_.method; }

  /// The method as it was sent, for those that are Method::other.
  std::string_view method_text() const noexcept { return view(about_.method_text); }

  /// 0 or 1; a higher minor version counts as 1 (RFC 9112 §2.3).
  int version_minor() const noexcept { return about_.version_minor; }

  TargetForm target_form() const noexcept { return about_.form; }

  /// The request target as it was sent.
  std::string_view target() const noexcept { return view(about_.target); }

  /// The raw path, which starts with '/'; "*" for the asterisk form, empty for CONNECT.
  std::string_view path() const noexcept { return view(about_.path); }

  /// True if decoding would change the path.
  bool path_has_escapes() const noexcept { return about_.path_has_escapes; }

  /// The raw query without '?', empty where there is none. See Query.
  std::string_view query() const noexcept { return view(about_.query); }
  bool has_query() const noexcept { return about_.has_query; }

  /// The host[:port] that the request is for: the target's, else the Host field's; empty only in
  /// HTTP/1.0.
  std::string_view authority() const noexcept { return view(about_.authority); }

  std::size_t field_count() const noexcept { return about_.field_count; }

  /// The field at `index`, in the order of arrival.
  Field field_at(std::size_t index) const noexcept {
    assert(index < about_.field_count);
    return {view(fields_[index].name), view(fields_[index].value)};
  }

  /// The value of the first field of that name, in any letter case.
  std::optional<std::string_view> field(std::string_view name) const noexcept;

  bool has_content_length() const noexcept { return about_.has_content_length; }
  std::uint64_t content_length() const noexcept { return about_.content_length; }
  bool chunked() const noexcept { return about_.chunked; }

  /// True if bytes of a body follow this head (RFC 9112 §6.3).
  bool has_body() const noexcept { return about_.chunked || about_.content_length > 0; }

  /// True if the connection may be used again after the answer (RFC 9112 §9.3).
  bool keep_alive() const noexcept {
    return !about_.close && (about_.version_minor > 0 || about_.keep_alive);
  }

  /// True if the client waits for 100 (Continue) before it sends the body (RFC 9110 §10.1.1).
  bool expects_continue() const noexcept { return about_.expects_continue; }

  /// True for HTTP/1.1 with an Upgrade field that Connection names (RFC 9110 §7.8).
  bool wants_upgrade() const noexcept {
    return about_.has_upgrade && about_.upgrade && about_.version_minor > 0;
  }

  /// The bytes of the head, empty lines before it included.
  std::string_view bytes() const noexcept { return {base_, about_.size}; }

  /// Says that bytes() now stand at `base`, after the caller copied them there.
  void rebase(const char* base) noexcept { base_ = base; }

 private:
  friend class HeadParser;

  struct Slice {
    std::uint32_t offset;
    std::uint32_t length;
  };

  struct FieldSlices {
    Slice name;
    Slice value;
  };

  /// Everything but the fields; reset as a whole.
  struct About {
    Slice method_text{};
    Slice target{};
    Slice path{};
    Slice query{};
    Slice authority{};
    std::uint64_t content_length = 0;
    std::uint32_t size = 0;
    std::uint32_t field_count = 0;
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
  };

  std::string_view view(Slice slice) const noexcept { return {base_ + slice.offset, slice.length}; }

  Slice slice_of(std::string_view text) const noexcept {
    if (text.empty()) return {};
    return {static_cast<std::uint32_t>(text.data() - base_),
            static_cast<std::uint32_t>(text.size())};
  }

  void copy(const RequestHead& other) noexcept;

  const char* base_ = nullptr;
  About about_;
  std::array<FieldSlices, fields_max> fields_;  // only the first field_count mean something
};

}  // namespace weir::http
