#include "weir/http/server/detail/request_trace.hpp"

#include <charconv>
#include <cstring>
#include <string_view>

#include "weir/http/router/router.hpp"
#include "weir/http/server/detail/request_id.hpp"
#include "weir/http/server/detail/server_state.hpp"

namespace weir::http {

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

std::string_view RequestTrace::name(IdBuffer room) const noexcept {
  if (route_ == nullptr) return {};
  std::size_t used = 0;
  for (const std::string_view part : {std::string_view(route_->method), std::string_view(" "),
                                      std::string_view(route_->pattern.text())}) {
    used += part.copy(room.data() + used, room.size() - used);
  }
  return {room.data(), used};
}

}  // namespace weir::http
