#include "weir/web/files/media_types.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "weir/http/message/response.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

struct Entry {
  std::string_view extension;
  MediaType type;
};

// Sorted by extension.
constexpr auto table = std::to_array<Entry>({
    {"7z", "application/x-7z-compressed"},
    {"aac", "audio/aac"},
    {"apng", "image/apng"},
    {"atom", "application/atom+xml"},
    {"avif", "image/avif"},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"css", "text/css; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"eot", "application/vnd.ms-fontobject"},
    {"epub", "application/epub+zip"},
    {"flac", "audio/flac"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"htm", html_type},
    {"html", html_type},
    {"ico", "image/x-icon"},
    {"ics", "text/calendar; charset=utf-8"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", json_type},
    {"jsonld", "application/ld+json"},
    {"jxl", "image/jxl"},
    {"m4a", "audio/mp4"},
    {"m4v", "video/mp4"},
    {"map", json_type},
    {"md", "text/markdown; charset=utf-8"},
    {"mid", "audio/midi"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"mkv", "video/x-matroska"},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mpd", "application/dash+xml"},
    {"oga", "audio/ogg"},
    {"ogg", "audio/ogg"},
    {"ogv", "video/ogg"},
    {"opus", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"rss", "application/rss+xml"},
    {"rtf", "application/rtf"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"ts", "video/mp2t"},
    {"ttf", "font/ttf"},
    {"txt", text_type},
    {"vtt", "text/vtt; charset=utf-8"},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"weba", "audio/webm"},
    {"webm", "video/webm"},
    {"webmanifest", "application/manifest+json"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xml", "text/xml; charset=utf-8"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
});
static_assert(std::ranges::is_sorted(table, {}, &Entry::extension));

constexpr std::size_t extension_max = 12;

}  // namespace

std::string_view extension_of(std::string_view name) noexcept {
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  const std::size_t dot = name.rfind('.');
  return dot == name.npos || dot == 0 ? std::string_view() : name.substr(dot + 1);
}

MediaType media_type_of(std::string_view name) noexcept {
  const std::string_view extension = extension_of(name);
  std::array<char, extension_max> lower;
  if (extension.size() > lower.size()) return unknown_media_type;
  std::ranges::transform(extension, lower.begin(), to_lower);
  const std::string_view key(lower.data(), extension.size());
  const auto found = std::ranges::lower_bound(table, key, {}, &Entry::extension);
  return found != table.end() && found->extension == key ? found->type : unknown_media_type;
}

}  // namespace weir::http
