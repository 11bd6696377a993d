// Reads any bytes as an offer of permessage-deflate, as a compressed message, and as a message that
// is compressed. The message does not depend on cuts, and comes back from the other end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/require.hpp"
#include "weir/http/ws/detail/deflate.hpp"
#include "weir/http/ws/detail/extension.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace {

using weir::Buffer;
using weir::to_bytes;
using weir::fuzz::require;
using namespace weir::http;

constexpr std::uint64_t message_max = 20'000;

/// The options of both ends, by the first byte of an input.
WebSocketCompression options_of(std::uint8_t byte) {
  const auto window = [](unsigned bits) { return bits == 0 ? 0 : 8 + static_cast<int>(bits); };
  return {.send_window_bits = window(byte & 7U), .receive_window_bits = window(byte >> 3 & 7U)};
}

/// An offer that is accepted has a response that a client with any window takes.
void negotiate(std::string_view text, const WebSocketCompression& own) {
  if (const auto accepted = accept_deflate(text, own)) {
    const auto agreed = check_deflate_response(accepted->response,
                                               {.send_window_bits = 15, .receive_window_bits = 15});
    require(agreed && agreed->server == accepted->agreed.server);
    require(agreed->client.has_context == accepted->agreed.client.has_context);
  }
  static_cast<void>(check_deflate_response(text, own));
  const auto offered = accept_deflate(deflate_offer(own), own);
  require(offered && check_deflate_response(offered->response, own));
}

/// Decompresses one message whose parts have `step` bytes. Returns "<code>" behind what came before
/// a failure.
std::string decompress(weir::Loop& loop, WsDeflate& by, std::string_view input, bool is_text,
                       std::size_t step, std::size_t room) {
  std::string message;
  bool begins = true;
  do {
    const std::string_view bytes = input.substr(0, step);
    input.remove_prefix(bytes.size());
    WsEvent part{.is_text = is_text,
                 .begins = begins,
                 .ends = input.empty(),
                 .compressed = true,
                 .bytes = to_bytes(bytes)};
    begins = false;
    for (bool complete = false; !complete;) {
      Buffer out;
      const WsDeflate::Step done = by.decompress(part, message_max, room, out);
      message += out.text();
      require(out.size() <= room && message.size() <= message_max);
      if (done.failure) return "<" + std::to_string(static_cast<int>(*done.failure)) + ">";
      const bool must_wait = by.turn_is_used();
      require(done.complete || out.size() == room || must_wait);
      if (!done.complete && must_wait) loop.turn(loop.platform().now());
      complete = done.complete;
    }
  } while (!input.empty());
  return message;
}

std::string compress(WsDeflate& by, std::string_view message, std::size_t step) {
  std::string out;
  do {
    const std::string_view slice = message.substr(0, step);
    message.remove_prefix(slice.size());
    std::vector<std::byte> room(WsDeflate::room_for(slice.size()));
    const std::size_t size = by.compress(to_bytes(slice), message.empty(), room);
    out += weir::to_text(weir::Bytes(room).first(size));
  } while (!message.empty());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || !can_deflate({})) return 0;
  const WebSocketCompression own = options_of(data[0]);
  const bool is_text = (data[1] & 1) != 0;
  const std::size_t step = 1 + data[1] / 2U;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (can_deflate(own)) negotiate(text, own);

  weir::MemoryPlatform platform({});
  const auto loop = weir::Loop::make(platform, {}).value();
  const weir::ScopedBlockPool blocks(loop->blocks());
  const auto accepted = accept_deflate(deflate_offer({.send_window_bits = 15}), {});
  const WebSocketDeflate agreed = (data[0] & 0x40) != 0 ? WebSocketDeflate() : accepted->agreed;
  const auto end = [&](WsRole role) { return WsDeflate(*loop, role, agreed, {}); };

  WsDeflate whole = end(WsRole::server);
  WsDeflate pieces = end(WsRole::server);
  const std::string message =
      decompress(*loop, whole, text, is_text, text.size() + 1, message_max + 1);
  const std::string joined = decompress(*loop, pieces, text, is_text, step, step);
  // A message that is both too large and invalid may fail for either reason.
  const auto failed = [](const std::string& each) { return each == "<1007>" || each == "<1009>"; };
  require(message == joined || (failed(message) && failed(joined)));

  WsDeflate sender = end(WsRole::client);
  WsDeflate receiver = end(WsRole::server);
  const std::string_view sent = text.substr(0, message_max);
  for (int count = 0; count < 2; ++count) {
    const std::string compressed = compress(sender, sent, 100 * step);
    require(decompress(*loop, receiver, compressed, false, step, 100 * step) == sent);
  }
  return 0;
}
