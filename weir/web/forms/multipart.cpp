#include "weir/web/forms/multipart.hpp"

#include <array>
#include <functional>
#include <tuple>
#include <utility>

#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/files.hpp"
#include "weir/task/context.hpp"
#include "weir/tls/crypto/detail/random.hpp"
#include "weir/web/forms/detail/multipart_parser.hpp"

namespace weir::http {
namespace detail {

/// Reads the body of a request through a parser.
class FormReader {
 public:
  using Event = MultipartParser::Event;

  FormReader(BodySource& body, std::string_view boundary, const MultipartLimits& limits)
      : body_(body), parser_(boundary, limits) {}

  const PartHead& head() const noexcept { return parser_.head(); }

  Task<Result<Part*>> next_part() {
    for (;;) {
      WEIR_CO_TRY(const Event event, co_await next());
      if (event == Event::part) {
        in_part_ = true;
        co_return &part_;
      }
      in_part_ = in_part_ && event != Event::part_end;
      if (event == Event::end) co_return nullptr;
    }
  }

  Task<Result<Bytes>> read() {
    while (in_part_) {
      WEIR_CO_TRY(const Event event, co_await next());
      if (event == Event::data) co_return to_bytes(parser_.data());
      in_part_ = event != Event::part_end;
    }
    co_return Bytes();
  }

 private:
  /// Returns the next event. The end comes when the whole body has been read, so that a body behind
  /// the last boundary is within its limits.
  Task<Result<Event>> next() {
    for (;;) {
      if (ended_) co_return Event::end;
      const Event event = parser_.next(input_);
      if (event == Event::error) co_return fail(parser_.error());
      if (event != Event::need_input && event != Event::end) co_return event;
      if (event == Event::end) continue;
      WEIR_CO_TRY(const Bytes piece, co_await body_.read());
      input_ = to_text(piece);
      if (!input_.empty()) continue;
      if (!parser_.finish()) co_return fail(parser_.error());
      ended_ = true;
    }
  }

  BodySource& body_;
  MultipartParser parser_;
  std::string_view input_;
  Part part_{*this};
  bool in_part_ = false;
  bool ended_ = false;
};

}  // namespace detail

namespace {

Result<std::string> random_path(std::string folder) {
  std::array<std::byte, 16> bytes;
  if (!tls::detail::fill_random(bytes)) return fail(Errc::unsupported);
  folder.append("/upload-");
  for (const std::byte each : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    folder += digits[std::to_integer<std::size_t>(each >> 4)];
    folder += digits[std::to_integer<std::size_t>(each & std::byte{15})];
  }
  return folder;
}

/// Writes the rest of a part to a file, and its size to `bytes`.
Task<Result<>> write_part(files::File& file, Part& part, std::uint64_t bytes_max,
                          std::uint64_t& bytes) {
  for (;;) {
    WEIR_CO_TRY(const Bytes piece, co_await part.read());
    if (piece.empty()) co_return {};
    if (piece.size() > bytes_max - bytes) co_return fail(MultipartError::part_too_long);
    WEIR_CO_TRY(co_await file.write(piece));
    bytes += piece.size();
  }
}

/// Returns the only Content-Type of a request that is not encoded; nullopt if there is another
/// number of them.
std::optional<std::string_view> content_type_of(const Request& request) {
  std::optional<std::string_view> type;
  const RequestHead& head = request.head();
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField header = head.header_at(index);
    if (equals_ignoring_case(header.name, "Content-Type")) {
      if (type) return std::nullopt;
      type = header.value;
    } else if (equals_ignoring_case(header.name, "Content-Encoding") &&
               !request.has_decoded_body() && !header.value.empty() &&
               !equals_ignoring_case(header.value, "identity")) {
      return std::nullopt;
    }
  }
  return type;
}

}  // namespace

std::string_view Part::name() const noexcept {
  return form_.head().name;
}

std::optional<std::string_view> Part::file_name() const noexcept {
  return form_.head().file_name;
}

std::string Part::safe_file_name() const {
  return detail::safe_file_name(file_name().value_or(""));
}

std::string_view Part::content_type() const noexcept {
  return form_.head().content_type;
}

std::optional<std::string_view> Part::header(std::string_view name) const noexcept {
  for (const HeaderField& each : form_.head().headers) {
    if (equals_ignoring_case(each.name, name)) return each.value;
  }
  return std::nullopt;
}

Task<Result<Bytes>> Part::read() {
  return form_.read();
}

Task<Result<std::string>> Part::text(std::size_t bytes_max) {
  std::string text;
  for (;;) {
    WEIR_CO_TRY(const Bytes piece, co_await form_.read());
    if (piece.empty()) co_return text;
    if (piece.size() > bytes_max - text.size()) co_return fail(MultipartError::part_too_long);
    text.append(to_text(piece));
  }
}

Task<Result<SavedFile>> Part::save_to(std::string folder, std::uint64_t bytes_max) {
  WEIR_CO_TRY(std::string path, random_path(std::move(folder)));
  std::uint64_t bytes = 0;
  loop::FileSystem& files = (co_await this_context()).loop->platform().files();
  WEIR_CO_TRY(
      co_await files::replace(path, &write_part, std::ref(*this), bytes_max, std::ref(bytes)));
  co_return SavedFile(files, std::move(path), bytes);
}

SavedFile::~SavedFile() {
  if (files_ != nullptr) std::ignore = files_->remove(path_);
}

std::expected<Multipart, Response> Multipart::of(const Request& request,
                                                 const MultipartLimits& limits) {
  constexpr std::string_view type = "multipart/form-data";
  const std::string_view content_type = content_type_of(request).value_or("");
  const auto boundary = detail::boundary_of(content_type);
  if (!boundary) {
    const bool is_form = equals_ignoring_case(content_type.substr(0, type.size()), type);
    if (is_form) return std::unexpected(Response(make_error_code(MultipartError::bad_boundary)));
    return std::unexpected(
        problem(Status::unsupported_media_type, "the body must be multipart/form-data"));
  }
  return Multipart(std::make_unique<detail::FormReader>(request.body_source(), *boundary, limits));
}

Multipart::Multipart(std::unique_ptr<detail::FormReader> reader) noexcept
    : reader_(std::move(reader)) {}
Multipart::Multipart(Multipart&& other) noexcept = default;
Multipart::~Multipart() = default;

Task<Result<Part*>> Multipart::next_part() {
  return reader_->next_part();
}

}  // namespace weir::http
