#include "weir/http/server/detail/request_id.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/loop/contract/detail/trace_context.hpp"

namespace weir::http {

bool is_request_id(std::string_view text) noexcept {
  return !text.empty() && text.size() <= TraceContext::id_bytes_max &&
         std::ranges::all_of(text, [](char each) {
           return each > ' ' && each < '\x7f' && each != '"' && each != '\\';
         });
}

std::string request_id_prefix(WallTime now, unsigned core) {
  // Six digits of the nanosecond within about two seconds are enough to tell the servers of one
  // service apart.
  constexpr int base = 36;
  constexpr std::int64_t moments = std::int64_t{base} * base * base * base * base * base;
  std::string prefix(6, '0');
  std::int64_t left = (now.time_since_epoch().count() % moments + moments) % moments;
  for (auto digit = prefix.rbegin(); digit != prefix.rend(); ++digit, left /= base) {
    *digit = "0123456789abcdefghijklmnopqrstuvwxyz"[left % base];
  }
  return prefix + "-" + std::to_string(core) + "-";
}

}  // namespace weir::http
