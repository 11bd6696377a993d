#include "weir/http/server/detail/request_trace.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "weir/http/router/router.hpp"
#include "weir/http/server/detail/server_state.hpp"

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

std::string_view RequestTrace::id(IdBuffer room) const noexcept {
  const std::string_view trusted = server_.router().id_header();
  if (!trusted.empty()) {
    const auto given = head_.header(trusted);
    if (given && is_request_id(*given)) return *given;
  }
  const std::string_view prefix = server_.id_prefix();
  std::memcpy(room.data(), prefix.data(), prefix.size());
  const auto made = std::to_chars(room.data() + prefix.size(), room.data() + room.size(), number_);
  return {room.data(), made.ptr};
}

}  // namespace weir::http
