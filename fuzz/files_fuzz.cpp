// Parses any bytes as a Range header, a list of entity tags, a date and a path of files(), and
// checks what is accepted.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/http/message/detail/date.hpp"
#include "weir/web/files/byte_ranges.hpp"
#include "weir/web/files/detail/site_path.hpp"
#include "weir/web/files/entity_tag.hpp"

namespace {

using weir::fuzz::require;
using weir::http::SelectedRanges;

void check_ranges(std::string_view header, std::uint64_t size) {
  const SelectedRanges selected = weir::http::select_ranges(header, size);
  require(selected.kind == SelectedRanges::Kind::partial || selected.ranges.empty());
  if (selected.kind != SelectedRanges::Kind::partial) return;
  require(!selected.ranges.empty() && selected.ranges.size() <= weir::http::ranges_max);
  std::uint64_t total = 0;
  for (const auto& each : selected.ranges) {
    require(each.size > 0 && each.first < size && each.size <= size - each.first);
    total += each.size;
  }
  require(total <= size);  // merged ranges do not overlap
  const std::string first = weir::http::content_range(selected.ranges[0], size);
  const auto again =
      weir::http::select_ranges("bytes=" + first.substr(6, first.find('/') - 6), size);
  require(again.kind == SelectedRanges::Kind::partial && again.ranges[0] == selected.ranges[0]);
}

void check_tags(std::string_view list) {
  const auto tag = weir::http::EntityTag::parse(list);
  if (!tag) return;
  using enum weir::http::TagComparison;
  require(tag->opaque.size() >= 2 && list.ends_with(tag->opaque));
  require(weir::http::contains_tag(list, *tag, weak));
  require(weir::http::contains_tag(list, *tag, strong) == !tag->weak);
  require(weir::http::contains_tag(std::string("\"\xff\", ").append(list), *tag, weak));
}

void check_date(std::string_view text) {
  const auto time = weir::http::parse_http_date(text);
  if (!time) return;
  const weir::http::Date date(*time);
  require(weir::http::parse_http_date(date.text()) == time);
}

void check_path(std::string_view raw) {
  std::string storage;
  const auto path = decode_site_path(raw, weir::http::Dotfiles::served, storage);
  if (!path) return;
  const std::string below = "/" + std::string(*path) + "/";
  require(below.find("/../") == below.npos && below.find("/./") == below.npos);
  require(path->find('\0') == path->npos && path->find('\\') == path->npos);
  require(below.substr(0, below.size() - 1).find("//") == below.npos);
  require(weir::http::matches_pattern("**", *path));
  std::string other;
  const auto visible = decode_site_path(raw, weir::http::Dotfiles::hidden, other);
  require(visible.has_value() == (below.find("/.") == below.npos));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // The address sanitizer reports a read beyond the end of this copy.
  const weir::fuzz::ExactCopy copy({reinterpret_cast<const char*>(data) + 1, size - 1});
  const std::string_view text = copy.view();
  for (const std::uint64_t length : {std::uint64_t{data[0]}, std::uint64_t{data[0]} << 40}) {
    check_ranges(text, length);
  }
  check_tags(text);
  check_date(text);
  check_path(text);
  return 0;
}
