#include "weir/web/encoding/compress.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/compression/compressor_pool.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/web/encoding/accept_encoding.hpp"
#include "weir/web/encoding/detail/compressing_sink.hpp"
#include "weir/web/encoding/detail/encoding_core.hpp"
#include "weir/web/encoding/detail/weak_etag.hpp"

namespace weir::http {
namespace {

using compression::CodingLevel;

constexpr std::string_view vary_value = "Accept-Encoding";
constexpr std::size_t media_type_max = 127;

/// Returns true if a list of header values, such as that of Vary, has the token.
bool has_token(std::string_view list, std::string_view token) noexcept {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (equals_ignoring_case(trim(list.substr(0, end)), token)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

bool any_has_token(const Response& response, std::string_view name, std::string_view token) {
  if (response.is_plain()) return false;
  for (const HeaderField each : response.headers()) {
    if (equals_ignoring_case(each.name, name) && has_token(each.value, token)) return true;
  }
  return false;
}

/// Returns true if a header describes the bytes of the body, so that these must stay.
bool describes_bytes(const Response& response) noexcept {
  if (response.is_plain()) return false;
  for (const HeaderField each : response.headers()) {
    if (is_coding_field(each.name) || equals_ignoring_case(each.name, "content-range")) return true;
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

/// Returns false if the status, the size or the media type exclude a coding. A 304 may keep the
/// content and the type of its 200, as etag() does. What it does not keep excludes nothing.
bool has_compressible_content(const Response& response, const CompressOptions& options) {
  const Status status = response.status();
  const bool unchanged = status == Status::not_modified;
  const bool has_body =
      may_have_body(status) && status != Status::reset_content && status != Status::partial_content;
  if (!has_body && !unchanged) return false;
  const auto length = response.body().length();
  const bool knows_length = !unchanged || length != 0;
  if (knows_length && length && *length < options.size_min) return false;
  const bool knows_type = !unchanged || !type_of(response).empty();
  return !knows_type || has_compressible_type(response, options);
}

/// Returns true if another request of this resource may get a coding.
bool is_candidate(const Request& request, const Response& response,
                  const CompressOptions& options) {
  if (!has_compressible_content(response, options)) return false;
  if (request.get<NoCompression>() != nullptr) return false;
  return !describes_bytes(response) && !any_has_token(response, "cache-control", "no-transform");
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

/// Compresses the body of a candidate, if there is a compressor for it and it becomes smaller.
void encode(Response& response, const CodingLevel& level, const CompressOptions& options,
            Loop& loop) {
  compression::CompressorPool& pool = detail::EncodingCore::of(loop).compressors();
  Body& body = response.body();
  if (!body.is_stream() && body.text().size() <= options.whole_max) {
    auto small = pool.compress(level, to_bytes(body.text()));
    if (!small || small->size() >= body.text().size()) return;
    body = Body(std::move(*small));
  } else {
    auto compressor = pool.borrow(level, options.streams_max);
    if (!compressor) return;
    detail::CompressedBody coded(std::move(body), std::move(*compressor));
    body = Body(StreamFunction(std::move(coded)));
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

Compress::Compress(CompressOptions options) {
  std::erase_if(options.codings, [](const CodingLevel& each) { return !is_valid(each); });
  for (const CodingLevel& each : options.codings) offered_.push_back(each.coding);
  options_ = std::make_shared<const CompressOptions>(std::move(options));
}

void Compress::after(Request& request, Response& response) const {
  if (request.loop() == nullptr || !is_candidate(request, response, *options_)) return;
  response.add_vary(vary_value);
  const ContentCoding chosen = AcceptEncoding(request.head()).choose(offered_);
  const auto level = std::ranges::find(options_->codings, chosen, &CodingLevel::coding);
  if (level == options_->codings.end()) return;
  // A 304 has the ETag that its 200 would have (RFC 9110 §15.4.5).
  if (response.status() == Status::not_modified) return weaken_etag(response);
  encode(response, *level, *options_, *request.loop());
}

Compress compress(CompressOptions options) {
  return Compress(std::move(options));
}

}  // namespace weir::http
