// The responses with the content of a file: the whole, one range or several.
#include "weir/web/files/detail/file_site.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/http/message/detail/announced_body.hpp"
#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/net/files.hpp"
#include "weir/task/detail/next_turn.hpp"
#include "weir/web/encoding/compress.hpp"
#include "weir/web/files/byte_ranges.hpp"
#include "weir/web/files/preconditions.hpp"

namespace weir::http {
namespace {

using Variant = std::shared_ptr<const FileVariant>;

constexpr std::uint64_t small_piece = 4 * 1024;
constexpr std::uint64_t large_piece = 64 * 1024;

/// Most bytes of a turn that are sent without a copy. A client that reads fast costs the time of
/// all packets. For a slower client the packets wait in the socket, so a turn can send more.
constexpr std::uint64_t slice_max = 256 * 1024;
constexpr std::uint64_t waiting_slice_max = 1024 * 1024;

/// Returns true if a part of a file can be read without a disk. It tries the last byte of each
/// slice_max. The kernel reads ahead, so the bytes before it usually can be read too.
bool is_in_memory(loop::FileSystem& files, int file, const ByteRange& part) {
  for (std::uint64_t tried = 0; tried < part.size;) {
    tried += std::min(part.size - tried, slice_max);
    std::byte byte{};
    if (!files.read_cached(file, MutableBytes(&byte, 1), part.first + tried - 1)) return false;
  }
  return true;
}

/// The way in which the next bytes of a large file are sent.
enum class NextPiece : std::uint8_t {
  none,   ///< all bytes are sent
  small,  ///< the client is slow: a small copied piece waits for it
  large,  ///< bytes cannot be sent without a copy
};

/// Sends bytes of a large file without a copy while they are in memory and the client reads fast.
/// Removes them from `part`. `when_full` becomes small when such a send has succeeded.
Task<Result<NextPiece>> send_uncopied(BodySink& sink, loop::FileSystem& files, int file,
                                      ByteRange& part, std::uint64_t most, NextPiece& when_full) {
  Loop& loop = *(co_await this_context()).loop;
  for (;;) {
    const auto size = static_cast<std::size_t>(std::min(part.size, most));
    if (size == 0) co_return NextPiece::none;
    if (!is_in_memory(files, file, {part.first, size})) co_return NextPiece::large;
    const auto sent = sink.try_write_file({file, part.first, size});
    if (!sent) co_return fail(sent.error());
    part.first += *sent;
    part.size -= *sent;
    if (*sent > 0) when_full = NextPiece::small;
    if (*sent < size) co_return when_full;
    if (part.size > 0) co_await weir::detail::NextTurn(loop);
  }
}

/// Sends a part of a file.
/// Errors: EIO if the file is shorter; those of reading and of BodySink::write().
Task<Result<>> send_part(BodySink& sink, Variant variant, ByteRange part) {
  if (variant->bytes != nullptr) {
    const std::string_view all = *variant->bytes;
    co_return co_await sink.write(all.substr(part.first, part.size));
  }
  loop::FileSystem& files = (co_await this_context()).loop->platform().files();
  const int file = variant->file.value();
  NextPiece when_full = NextPiece::large;
  std::uint64_t slice = slice_max;
  Buffer buffer;
  while (part.size > 0) {
    WEIR_CO_TRY(const NextPiece next,
                co_await send_uncopied(sink, files, file, part, slice, when_full));
    if (next == NextPiece::none) break;
    if (next == NextPiece::small) slice = waiting_slice_max;
    const std::uint64_t most = next == NextPiece::small ? small_piece : large_piece;
    const auto size = static_cast<std::uint32_t>(std::min(part.size, most));
    if (buffer.capacity() < size) buffer = Buffer::with_capacity(size);
    buffer.clear();
    const MutableBytes room = buffer.room().first(size);
    Result<std::size_t> count = files.read_cached(file, room, part.first);
    if (!count) count = co_await files::read_some(file, room, part.first);
    if (!count) co_return fail(count.error());
    if (*count == 0) co_return fail(system_error(EIO));  // the file has shrunk
    buffer.commit(*count);
    part.first += *count;
    part.size -= *count;
    if (auto sent = co_await sink.write(buffer.bytes()); !sent) co_return sent;
  }
  co_return {};
}

Task<Result<>> send_parts(BodySink& sink, Variant variant, RangeParts parts,
                          std::vector<ByteRange> ranges) {
  for (const ByteRange& each : ranges) {
    const std::string head = parts.head(each);
    if (auto sent = co_await sink.write(std::string_view(head)); !sent) co_return sent;
    if (auto sent = co_await send_part(sink, variant, each); !sent) co_return sent;
  }
  const std::string end = parts.end();
  co_return co_await sink.write(std::string_view(end));
}

/// Returns the body of a response whose content is not sent, so that its length is known.
Body unsent_body(const FileVariant& variant) {
  if (variant.bytes != nullptr) return Body(variant.bytes);
  return detail::announced_body(variant.size());
}

Body part_body(const Variant& variant, const ByteRange& part) {
  if (variant->bytes == nullptr) {
    return Body([variant, part](BodySink& sink) { return send_part(sink, variant, part); },
                part.size);
  }
  if (part.size == variant->size()) return Body(variant->bytes);
  return Body(variant->bytes->substr(part.first, part.size));
}

/// Returns the value of the only Range header of a GET.
std::optional<std::string_view> range_header(const RequestHead& head) noexcept {
  if (head.method() != Method::get) return std::nullopt;
  const auto found = head.header("Range");
  return found && head.repeats("Range") ? std::nullopt : found;
}

/// Returns true if the last change of the file happened in the second of its time of modification.
/// Otherwise a program has set that time, and another content may have had the same (RFC 9110
/// §8.8.2.2).
bool confirms_date(const os::FileStatus& status) noexcept {
  using std::chrono::floor;
  using std::chrono::seconds;
  return floor<seconds>(status.changed) == floor<seconds>(status.modified);
}

std::string random_boundary(Loop& loop) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string boundary;
  for (std::uint64_t each : {loop.platform().random(), loop.platform().random()}) {
    for (int digit = 0; digit < 16; ++digit, each >>= 4) boundary += digits[each & 15];
  }
  return boundary;
}

Response respond_with_ranges(Loop& loop, const FileEntry& entry, const FileHeads& heads,
                             const Variant& variant, std::vector<ByteRange> ranges) {
  if (ranges.size() == 1) {
    Response response(Status::partial_content, entry.type, part_body(variant, ranges[0]));
    response.set_headers(heads.ok);
    response.add_header("Content-Range", content_range(ranges[0], variant->size()));
    return response;
  }
  const std::string_view type = entry.own_type.empty() ? entry.type.text() : entry.own_type;
  RangeParts parts(random_boundary(loop), type, variant->size());
  const std::uint64_t length = parts.length(ranges);
  Response response(Status::partial_content);
  response.set_headers(heads.ok);
  response.set_header("Content-Type", parts.content_type());
  auto send = [variant, parts = std::move(parts), ranges = std::move(ranges)](BodySink& sink) {
    return send_parts(sink, variant, parts, ranges);
  };
  response.body() = Body(StreamFunction(std::move(send)), length);
  return response;
}

/// Returns 304. It keeps the type and the length of the file, which the server does not send, so
/// that compress() knows the 200. A neighbour has a coding, so compress() leaves its 200 alone.
Response unchanged_response(Request& request, const FileEntry& entry, const FileHeads& heads) {
  const Variant& variant = heads.variant;
  if (variant->coding != ContentCoding::identity) request.set(NoCompression());
  Response response(Status::not_modified);
  if (entry.own_type.empty()) {
    response = Response(Status::not_modified, entry.type, unsent_body(*variant));
  }
  response.set_headers(heads.not_modified);
  return response;
}

}  // namespace

FileHeads make_heads(const FileEntry& entry, Variant variant, bool has_neighbours) {
  FileHeads heads;
  // An invalid value of a CacheRule or an ExtensionType is left out; files() has checked both.
  const auto add = [](Headers& to, std::string_view name, std::string_view value) {
    std::ignore = to.add(name, value);
  };
  for (Headers* const each : {&heads.ok, &heads.not_modified}) {  // RFC 9110 §15.4.5
    add(*each, "ETag", variant->etag);
    add(*each, "Last-Modified", variant->last_modified);
    if (has_neighbours) add(*each, "Vary", "Accept-Encoding");
    if (!entry.cache_control.empty()) add(*each, "Cache-Control", entry.cache_control);
  }
  add(heads.ok, "Accept-Ranges", "bytes");
  if (variant->coding != ContentCoding::identity) {
    add(heads.ok, "Content-Encoding", name_of(variant->coding));
  }
  if (!entry.own_type.empty()) add(heads.ok, "Content-Type", entry.own_type);
  heads.variant = std::move(variant);
  return heads;
}

Response busy_response() {
  Response response(Status::service_unavailable);
  response.set_header("Retry-After", "1");
  return response;
}

Response respond_with_file(Request& request, Loop& loop, const std::shared_ptr<SiteCore>& core,
                           const FileEntry& entry, const FileHeads& heads) {
  const RequestHead& head = request.head();
  Variant variant = heads.variant;
  Validators validators{.etag = variant->etag, .last_modified = variant->modified};
  const Precondition result = evaluate_preconditions(head, validators);
  if (result == Precondition::failed) return Response(Status::precondition_failed);
  if (result == Precondition::not_modified) return unchanged_response(request, entry, heads);
  const bool is_sent = request.method() != Method::head && variant->bytes == nullptr;
  if (is_sent && (variant = SentFile::share(core, request, variant)) == nullptr) {
    return busy_response();
  }
  if (const auto wanted = range_header(head)) {
    validators.now = loop.platform().wall_time();
    if (!confirms_date(variant->status)) validators.last_modified.reset();
    SelectedRanges selected;
    if (range_applies(head, validators)) selected = select_ranges(*wanted, variant->size());
    if (selected.kind == SelectedRanges::Kind::unsatisfiable) {
      Response response(Status::range_not_satisfiable);
      response.add_header("Content-Range", unsatisfied_range(variant->size()));
      return response;
    }
    if (selected.kind == SelectedRanges::Kind::partial) {
      return respond_with_ranges(loop, entry, heads, variant, std::move(selected.ranges));
    }
  }
  const bool has_content = request.method() != Method::head;
  Body body = has_content ? part_body(variant, {0, variant->size()}) : unsent_body(*variant);
  Response response(Status::ok, entry.type, std::move(body));
  response.set_headers(heads.ok);
  return response;
}

}  // namespace weir::http
