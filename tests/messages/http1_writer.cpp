#include "tests/messages/http1_writer.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <utility>

namespace weir::tests::messages {
namespace {

std::string to_lines(const Fields& fields) {
  std::string lines;
  for (const auto& [name, value] : fields) lines += name + ": " + value + "\r\n";
  return lines;
}

std::string to_hex(std::size_t size) {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size, 16).ptr;
  return {digits.data(), end};
}

}  // namespace

Task<Result<>> write_http1(Stream& stream, std::string start, const SentMessage& message,
                           Http1Framing framing) {
  std::string head = std::move(start) + to_lines(message.fields);
  if (framing == Http1Framing::chunks) head += "Transfer-Encoding: chunked\r\n";
  if (framing == Http1Framing::length)
    head += "Content-Length: " + std::to_string(announced_bytes(message)) + "\r\n";
  head += "\r\n";
  WEIR_CO_TRY(co_await stream.write(head));
  const std::size_t pieces = message.body.size() * message.body_repeats;
  for (std::size_t index = 0; index < pieces; ++index) {
    const std::string& piece = message.body[index % message.body.size()];
    std::string bytes = piece;
    if (framing == Http1Framing::chunks) bytes = to_hex(piece.size()) + "\r\n" + piece + "\r\n";
    WEIR_CO_TRY(co_await stream.write(bytes));
  }
  if (framing == Http1Framing::chunks && message.end == End::complete) {
    const std::string last = "0\r\n" + to_lines(message.trailers) + "\r\n";
    WEIR_CO_TRY(co_await stream.write(last));
  }
  co_return {};
}

}  // namespace weir::tests::messages
