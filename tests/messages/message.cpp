#include "tests/messages/message.hpp"

#include <algorithm>
#include <cctype>

namespace weir::tests::messages {

std::optional<std::string> find(const Fields& fields, std::string_view name) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  for (const auto& [each, value] : fields) {
    if (std::ranges::equal(each, name, same)) return value;
  }
  return std::nullopt;
}

std::size_t announced_bytes(const SentMessage& message) noexcept {
  std::size_t pieces = 0;
  for (const std::string& piece : message.body) pieces += piece.size();
  return pieces * message.body_repeats + (message.end == End::complete ? 0 : 1);
}

std::string_view name_of(End end) noexcept {
  switch (end) {
    case End::open:
      return "open";
    case End::complete:
      return "complete";
    case End::cut:
      break;
  }
  return "cut";
}

}  // namespace weir::tests::messages
