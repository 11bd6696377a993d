#include "weir/profile/detail/route_labels.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "weir/http/matching/route.hpp"
#include "weir/http/server/detail/request_trace.hpp"
#include "weir/os/detail/process/cpu_sampler.hpp"

namespace weir::profile {
namespace {

/// The first two words of a std::string: where its characters are, and how many.
struct StringHead {
  std::uintptr_t data = 0;
  std::size_t size = 0;
};

/// Returns true if the standard library stores a std::string as StringHead assumes. This is so in
/// libstdc++ with its new ABI.
bool begins_with_head(const std::string& text) noexcept {
  StringHead head;
  static_assert(sizeof(std::string) >= sizeof head);
  std::memcpy(&head, static_cast<const void*>(&text), sizeof head);
  return head.data == reinterpret_cast<std::uintptr_t>(text.data()) && head.size == text.size();
}

std::size_t distance(const void* from, const void* to) noexcept {
  return static_cast<std::size_t>(static_cast<const char*>(to) - static_cast<const char*>(from));
}

bool copy(std::uintptr_t from, void* to, std::size_t size) noexcept {
  return os::copy_own_memory(reinterpret_cast<const void*>(from), to, size);
}

}  // namespace

RouteLabels::RouteLabels(std::size_t threads, const TraceContext* example)
    : layout_(layout_of(example)),
      thread_count_(threads),
      threads_(std::make_unique_for_overwrite<Thread[]>(threads)) {}

std::optional<RouteLabels::Layout> RouteLabels::layout_of(const TraceContext* example) {
  const auto* const request = dynamic_cast<const http::RequestTrace*>(example);
  if (request == nullptr) return std::nullopt;
  const auto* const route = static_cast<const http::Route*>(request->origin());
  if (route == nullptr) return std::nullopt;
  if (!begins_with_head(route->method) || !begins_with_head(route->pattern.text()))
    return std::nullopt;
  Layout layout;
  std::memcpy(&layout.type, static_cast<const void*>(request), sizeof layout.type);
  layout.route = request->route_offset();
  layout.method = distance(route, &route->method);
  layout.pattern = distance(route, &route->pattern.text());
  return layout;
}

std::uintptr_t RouteLabels::read(std::size_t thread, const TraceContext* trace) noexcept {
  if (!layout_ || thread >= thread_count_) return 0;
  std::array<std::byte, sizeof(http::RequestTrace)> object;
  if (!os::copy_own_memory(trace, object.data(), object.size())) return 0;
  std::uintptr_t type = 0;
  std::uintptr_t route = 0;
  std::memcpy(&type, object.data(), sizeof type);
  std::memcpy(&route, object.data() + layout_->route, sizeof route);
  if (type != layout_->type || route == 0) return 0;
  Thread& known = threads_[thread];
  const std::size_t count = known.count.load(std::memory_order_relaxed);  // only written here
  Name& name = known.names[count];
  if (!read_name(route, name)) return 0;
  for (std::size_t index = 0; index < count; ++index)
    if (known.names[index].text() == name.text()) return index + 1;
  if (count == routes_max) return 0;
  known.count.store(count + 1, std::memory_order_release);
  return count + 1;
}

/// Returns false if the memory is no route.
bool RouteLabels::read_name(std::uintptr_t route, Name& name) const noexcept {
  StringHead method;
  StringHead pattern;
  constexpr std::size_t method_bytes_max = 32;
  if (!copy(route + layout_->method, &method, sizeof method) ||
      !copy(route + layout_->pattern, &pattern, sizeof pattern) || pattern.size == 0 ||
      method.size == 0 || method.size > method_bytes_max)
    return false;
  pattern.size = std::min(pattern.size, name_bytes_max - method.size - 1);
  char* const text = name.bytes.data();
  if (!copy(method.data, text, method.size) ||
      !copy(pattern.data, text + method.size + 1, pattern.size) || text[method.size + 1] != '/')
    return false;
  text[method.size] = ' ';
  name.size = static_cast<std::uint8_t>(method.size + 1 + pattern.size);
  return true;
}

std::string_view RouteLabels::text(std::size_t thread, std::uintptr_t label) const noexcept {
  // acquire pairs with read(): the name was written before its label was returned.
  if (label == 0 || thread >= thread_count_ ||
      label > threads_[thread].count.load(std::memory_order_acquire))
    return {};
  return threads_[thread].names[label - 1].text();
}

}  // namespace weir::profile
