// Multipart: a form with files (multipart/form-data, RFC 7578), read while it arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/task/task.hpp"
#include "weir/web/forms/multipart_error.hpp"
#include "weir/web/forms/multipart_limits.hpp"

namespace weir::loop {
class FileSystem;
}  // namespace weir::loop

namespace weir::http {

namespace detail {
class FormReader;
}

/// A file that Part::save_to() has made. It is removed with this object unless keep() was called,
/// so that an upload that fails later leaves none of its files. The removal is one short call of
/// the kernel on this thread.
/// Threads: one at a time.
/// Lifetime: not longer than the platform of the loop that made it.
class SavedFile {
 public:
  SavedFile(loop::FileSystem& files, std::string path, std::uint64_t bytes) noexcept
      : files_(&files), path_(std::move(path)), bytes_(bytes) {}
  SavedFile(SavedFile&& other) noexcept
      : files_(std::exchange(other.files_, nullptr)),
        path_(std::move(other.path_)),
        bytes_(other.bytes_) {}
  SavedFile& operator=(SavedFile&& other) noexcept {
    std::swap(files_, other.files_);
    std::swap(path_, other.path_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SavedFile();

  const std::string& path() const noexcept { return path_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Leaves the file in place.
  void keep() noexcept { files_ = nullptr; }

 private:
  loop::FileSystem* files_;  // nullptr: nothing to remove
  std::string path_;
  std::uint64_t bytes_;
};

/// One field or file of a form. Its functions return views that are valid until the next part.
/// Threads: those of the request.
/// Lifetime: the form owns it, until next_part() is called again.
class Part {
 public:
  /// Returns the name of the form's field. Names may repeat.
  std::string_view name() const noexcept;
  /// Returns true for a file, which may have an empty name.
  bool is_file() const noexcept { return file_name().has_value(); }
  /// Returns the name of the file as the client sent it, if the part is a file. A client can send
  /// any text, such as "../../etc/passwd": never use it as a path; see safe_file_name().
  std::optional<std::string_view> file_name() const noexcept;
  /// Returns the last part of file_name() for readers and for lists: without separators and control
  /// characters, at most 255 bytes, and not empty, "." or "..". Different files may have the same
  /// name. Escape it in HTML.
  std::string safe_file_name() const;
  /// Returns the media type that the client claims; "text/plain" if it sent none.
  std::string_view content_type() const noexcept;
  /// Returns the value of the first header of the part with this name, compared without case.
  std::optional<std::string_view> header(std::string_view name) const noexcept;

  /// Returns the next bytes of the content; empty at its end.
  /// Errors: those of Request::body(), and a MultipartError.
  /// Cancel: no data is lost; the next call returns the bytes.
  /// Lifetime: the bytes are valid until the next call of this part or of its form.
  Task<Result<Bytes>> read();
  /// Returns the rest of the content.
  /// Errors: those of read(); part_too_long for more than `bytes_max`.
  /// Cancel: the bytes that were read are lost.
  Task<Result<std::string>> text(std::size_t bytes_max = 64 * 1024);
  /// Writes the rest of the content to a new file in `folder`. The name of the file is "upload-"
  /// and 32 random hexadecimal digits. It does not come from the client. The file gets it when all
  /// its data has reached the disk; see files::replace().
  /// Returns: the file, which its owner keeps or removes.
  /// Errors: those of read() and of files::replace(); part_too_long for more than `bytes_max`. No
  /// file is left then.
  /// Cancel: no file is left.
  Task<Result<SavedFile>> save_to(std::string folder, std::uint64_t bytes_max = ~std::uint64_t{0});

 private:
  friend class detail::FormReader;
  explicit Part(detail::FormReader& form) noexcept : form_(form) {}

  detail::FormReader& form_;
};

/// A form of multipart/form-data. A handler takes it by value, and reads the parts in their order:
///
///     Task<Result<http::Response>> upload(http::Multipart form) {
///       for (;;) {
///         WEIR_CO_TRY(http::Part* const part, co_await form.next_part());
///         if (part == nullptr) break;
///         ...
///       }
///
/// Content is never stored: read() returns views of the bytes that have arrived, and the client
/// waits while the handler does. A form holds at most memory_bound(MultipartLimits), about 22 KiB,
/// and much less as a rule. The limit of the whole body is that of the route. A body that breaks
/// the format is answered with 400, and one beyond a limit with 413; both name the reason. A
/// request of another media type never reaches the handler: 415, or 400 for a Content-Type without
/// a boundary.
/// Threads: those of the request.
/// Lifetime: that of the request; it may be moved.
class Multipart {
 public:
  /// Makes the form of a request with default limits.
  static std::expected<Multipart, Response> from_request(const Request& request) {
    return of(request, {});
  }
  /// Makes the form of a request with other limits.
  static std::expected<Multipart, Response> of(const Request& request,
                                               const MultipartLimits& limits);
  Multipart(Multipart&& other) noexcept;
  Multipart& operator=(Multipart&&) = delete;
  ~Multipart();

  /// Waits for the next part, and drops the rest of the current one.
  /// Returns: the part; nullptr at the end of the form.
  /// Errors: those of Request::body(), and a MultipartError. All later calls fail as well.
  /// Cancel: the next call continues.
  Task<Result<Part*>> next_part();

 private:
  explicit Multipart(std::unique_ptr<detail::FormReader> reader) noexcept;

  std::unique_ptr<detail::FormReader> reader_;
};

}  // namespace weir::http
