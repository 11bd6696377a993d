#include "weir/loop/detail/handover_state.hpp"

#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

namespace weir::loop {
namespace {

// The limit of a message; see HandoverMessage.
constexpr std::size_t bytes_max = std::size_t{16} * 1024;

void erase(std::string& text) {
  ::explicit_bzero(text.data(), text.size());
}

void append(std::string& bytes, std::string_view text) {
  bytes.push_back(static_cast<char>(text.size() & 0xff));
  bytes.push_back(static_cast<char>(text.size() >> 8 & 0xff));
  bytes.append(text);
}

/// Takes a text from the front; nullopt if it is incomplete.
std::optional<std::string> take_front(std::string_view& rest) {
  if (rest.size() < 2) return std::nullopt;
  const std::size_t size =
      static_cast<unsigned char>(rest[0]) | std::size_t{static_cast<unsigned char>(rest[1])} << 8;
  if (rest.size() - 2 < size) return std::nullopt;
  std::string text(rest.substr(2, size));
  rest.remove_prefix(2 + size);
  return text;
}

}  // namespace

HandoverState::~HandoverState() {
  for (auto& [name, text] : received_) erase(text);
}

void HandoverState::offer(std::string name, Source source) {
  const std::lock_guard lock(mutex_);
  sources_.insert_or_assign(std::move(name), std::move(source));
}

std::string HandoverState::take(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = received_.find(name);
  if (found == received_.end()) return {};
  std::string text = found->second;
  erase(found->second);
  received_.erase(found);
  return text;
}

std::string HandoverState::to_bytes() const {
  const std::lock_guard lock(mutex_);
  std::string bytes;
  bytes.reserve(bytes_max);  // growing would leave secrets in freed memory
  for (const auto& [name, source] : sources_) {
    std::string text = source();
    if (bytes.size() + name.size() + text.size() + 4 <= bytes_max) {
      append(bytes, name);
      append(bytes, text);
    }
    erase(text);
  }
  return bytes;
}

void HandoverState::receive(std::string bytes) {
  const std::lock_guard lock(mutex_);
  std::string_view rest = bytes;
  while (!rest.empty()) {
    auto name = take_front(rest);
    auto text = name ? take_front(rest) : std::nullopt;
    if (!text) break;
    received_.insert_or_assign(std::move(*name), *text);
    erase(*text);
  }
  erase(bytes);
}

}  // namespace weir::loop
