#include "weir/web/files/detail/site_path.hpp"

#include <algorithm>
#include <cstddef>

#include "weir/http/syntax/uri.hpp"

namespace weir::http {
namespace {

bool is_safe(std::string_view segment, Dotfiles dotfiles) noexcept {
  if (segment == "." || segment == "..") return false;
  if (dotfiles == Dotfiles::hidden && segment.starts_with('.')) return false;
  return std::ranges::none_of(
      segment, [](char each) { return each == '/' || each == '\\' || each == '\0'; });
}

bool matches_glob(std::string_view pattern, std::string_view text) noexcept {
  while (!pattern.empty()) {
    if (pattern.front() != '*') {
      const bool fits = !text.empty() && (pattern.front() == text.front() ||
                                          (pattern.front() == '?' && text.front() != '/'));
      if (!fits) return false;
      pattern.remove_prefix(1);
      text.remove_prefix(1);
      continue;
    }
    const bool crosses = pattern.starts_with("**");
    pattern.remove_prefix(crosses ? 2 : 1);
    for (std::size_t skipped = 0;; ++skipped) {
      if (matches_glob(pattern, text.substr(skipped))) return true;
      if (skipped == text.size() || (!crosses && text[skipped] == '/')) return false;
    }
  }
  return text.empty();
}

}  // namespace

std::optional<std::string_view> decode_site_path(std::string_view raw, Dotfiles dotfiles,
                                                 std::string& storage) {
  const bool has_escapes = raw.find('%') != raw.npos;
  if (has_escapes) storage.clear();
  for (std::string_view rest = raw;;) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const bool is_last = end == rest.size();
    const std::string_view segment = rest.substr(0, end);
    if (segment.empty() && !is_last) return std::nullopt;
    if (has_escapes) {
      const auto decoded = percent_decode(segment);
      if (!decoded || !is_safe(*decoded, dotfiles)) return std::nullopt;
      storage.append(*decoded).append(is_last ? "" : "/");
    } else if (!is_safe(segment, dotfiles)) {
      return std::nullopt;
    }
    if (is_last) return has_escapes ? std::string_view(storage) : raw;
    rest.remove_prefix(end + 1);
  }
}

bool matches_pattern(std::string_view pattern, std::string_view path) noexcept {
  if (pattern.find('/') == pattern.npos && !pattern.starts_with("**")) {
    path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  }
  return matches_glob(pattern, path);
}

}  // namespace weir::http
