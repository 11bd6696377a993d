#include "weir/web/encoding/compress.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/compression/compressor_pool.hpp"
#include "weir/http/message/detail/announced_body.hpp"
#include "weir/http/message/detail/field_search.hpp"
#include "weir/http/message/detail/weak_etag.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/web/encoding/accept_encoding.hpp"
#include "weir/web/encoding/detail/compressing_sink.hpp"
#include "weir/web/encoding/detail/encoding_core.hpp"

namespace weir::http {
namespace {

using compression::CodingLevel;

constexpr std::string_view vary_value = "Accept-Encoding";
constexpr std::size_t media_type_max = 127;

/// Returns true if a header describes the bytes of the body, so that these must stay.
bool describes_bytes(const Response& response) noexcept {
  if (response.is_plain()) return false;
  const bool is_part = response.status() == Status::partial_content;
  for (const HeaderField each : response.headers()) {
    if (is_coding_field(each.name)) return true;
    if (!is_part && equals_ignoring_case(each.name, "content-range")) return true;
  }
  return false;
}

std::string_view type_of(const Response& response) noexcept {
  const std::string_view type = response.content_type();
  if (response.is_plain()) return type;
  return response.headers().get("content-type").value_or(type);
}

bool has_compressible_type(const Response& response, const CompressOptions& options) noexcept {
  std::string_view type = type_of(response);
  type = trim(type.substr(0, type.find(';')));
  std::array<char, media_type_max> lower;
  if (type.empty() || type.size() > lower.size()) return false;
  std::ranges::transform(type, lower.begin(), [](char each) { return to_lower(each); });
  return options.is_compressible({lower.data(), type.size()});
}

/// Returns true if the media type and the size allow a coding. A size that is not known does.
bool has_compressible_content(const Response& response, std::optional<std::uint64_t> length,
                              const CompressOptions& options) {
  return length.value_or(options.size_min) >= options.size_min &&
         has_compressible_type(response, options);
}

/// Returns the size of the whole of which a 206 has a part; std::nullopt if it does not say so.
std::optional<std::uint64_t> whole_length(const Response& part) {
  const std::string_view range = part.headers().get("content-range").value_or("");
  const std::size_t slash = range.find('/');
  if (slash == range.npos) return std::nullopt;
  std::uint64_t length = 0;
  const auto read = std::from_chars(range.data() + slash + 1, range.data() + range.size(), length);
  return read.ec == std::errc() ? std::optional(length) : std::nullopt;
}

/// Returns true if the 200 in place of a 304 may get a coding. The 304 of etag() and files() keeps
/// the content and the type of its 200. If one of them is missing, the client tells its ETag.
bool is_unchanged_candidate(const Request& request, const Response& response,
                            const CompressOptions& options) {
  const bool knows_type = !type_of(response).empty();
  if (knows_type && !has_compressible_type(response, options)) return false;
  const auto length = response.body().length();
  if (length && *length != 0) {
    if (*length < options.size_min) return false;
    if (knows_type) return true;
  }
  const auto etag = response.headers().get("etag");
  return etag && etag->starts_with('"') && knows_weak_etag(request.head(), *etag);
}

/// Returns true if another request of this resource may get a coding.
bool is_candidate(const Request& request, const Response& response,
                  const CompressOptions& options) {
  if (request.get<NoCompression>() != nullptr || describes_bytes(response)) return false;
  if (!response.is_plain() && forbids_transform(response.headers())) return false;
  const Status status = response.status();
  if (status == Status::not_modified) return is_unchanged_candidate(request, response, options);
  if (status == Status::partial_content) {
    if (type_of(response).starts_with("multipart/byteranges")) return true;  // any type
    return has_compressible_content(response, whole_length(response), options);
  }
  return may_have_body(status) && status != Status::reset_content &&
         has_compressible_content(response, response.body().length(), options);
}

/// Makes a strong ETag weak: the bytes of the coding are not those that it names.
void weaken_etag(Response& response) {
  if (response.is_plain()) return;
  const auto etag = response.headers().get("etag");
  if (!etag || etag->starts_with("W/")) return;
  const std::string weak = weak_etag(*etag);
  response.set_header("ETag", weak);
}

void mark_encoded(Response& response, const CodingLevel& level) {
  response.add_header("Content-Encoding", name_of(level.coding));
  weaken_etag(response);
  if (response.headers().contains("accept-ranges")) response.set_header("Accept-Ranges", "none");
}

/// Compresses the body of a candidate, if there is a compressor for it. A body that becomes no
/// smaller is sent with the coding too: HEAD and 304 do not know the bytes, and have its headers.
void encode(Response& response, const CodingLevel& level, const CompressOptions& options,
            const Request& request) {
  detail::EncodingCore& core = detail::EncodingCore::of(*request.loop());
  compression::CompressorPool& pool = core.compressors();
  Body& body = response.body();
  if (!body.is_stream() && body.text().size() <= options.whole_max) {
    auto small = pool.compress(level, to_bytes(body.text()));
    if (!small) return;
    body = Body(std::move(*small));
  } else {
    detail::ClientSlots& slots = core.compressor_slots(options.streams_max);
    auto slot = slots.try_acquire(slots.client_of(request));
    auto compressor = pool.borrow(level, slot ? options.streams_max : 0);  // counts a refusal
    if (!compressor) return;
    const auto duplex = body.duplex();
    detail::CompressedBody coded(std::move(body), std::move(*compressor), std::move(*slot));
    body = Body(StreamFunction(std::move(coded)), std::nullopt, duplex);
  }
  mark_encoded(response, level);
}

constexpr std::array<std::string_view, 18> compressible_types{
    "application/json",
    "application/javascript",
    "application/xml",
    "application/xhtml+xml",
    "application/wasm",
    "application/x-javascript",
    "application/x-ndjson",
    "application/jsonl",
    "application/graphql",
    "application/manifest+json",
    "application/vnd.ms-fontobject",
    "application/x-www-form-urlencoded",
    "application/toml",
    "application/yaml",
    "font/otf",
    "font/ttf",
    "image/svg+xml",
    "image/bmp",
};

}  // namespace

CompressOptions::CompressOptions() noexcept : is_compressible(&is_compressible_type) {}

std::size_t compress_bytes_max(const CompressOptions& options) noexcept {
  constexpr std::size_t whole_encoder = 1024 * 1024;  // of libdeflate, one for each level
  constexpr std::size_t buffer = Buffer::default_capacity;
  std::size_t largest = 0;
  for (const CodingLevel& each : options.codings) {
    if (is_valid(each)) largest = std::max(largest, compressor_bytes_max(each));
  }
  return options.streams_max * (largest + buffer) +
         compression::CompressorPool::idle_max * largest + options.codings.size() * whole_encoder;
}

bool is_compressible_type(std::string_view type) noexcept {
  if (type == "text/event-stream") return false;
  return type.starts_with("text/") || type.ends_with("+json") || type.ends_with("+xml") ||
         type.ends_with("+text") ||
         std::ranges::find(compressible_types, type) != compressible_types.end();
}

std::optional<Response> SetNoCompression::before(Request& request) const {
  request.set(NoCompression());
  return std::nullopt;
}

CoreDemands Compress::demands(Loop& loop) const {
  return {.owner = &detail::EncodingCore::of(loop).compressors(),
          .core_bytes = compress_bytes_max(*options_)};
}

Compress::Compress(CompressOptions options) {
  std::erase_if(options.codings, [](const CodingLevel& each) { return !is_valid(each); });
  for (const CodingLevel& each : options.codings) offered_.push_back(each.coding);
  options_ = std::make_shared<const CompressOptions>(std::move(options));
}

void Compress::after(Request& request, Response& response) const {
  if (request.loop() == nullptr || !is_candidate(request, response, *options_)) return;
  response.add_vary(vary_value);
  if (response.status() == Status::partial_content) return;  // a part of the identity
  const ContentCoding chosen = AcceptEncoding(request.head()).choose(offered_);
  const auto level = std::ranges::find(options_->codings, chosen, &CodingLevel::coding);
  if (level == options_->codings.end()) return;
  // A 304 has the ETag that its 200 would have (RFC 9110 §15.4.5).
  if (response.status() == Status::not_modified) return weaken_etag(response);
  if (request.method() == Method::head) {
    // Nobody gets the bytes, so they are not compressed, and their number is not known.
    response.body() = detail::announced_body(std::nullopt);
    return mark_encoded(response, *level);
  }
  encode(response, *level, *options_, request);
}

Compress compress(CompressOptions options) {
  return Compress(std::move(options));
}

}  // namespace weir::http
