// WebSocket connections: reading and sending compressed messages.
#include <algorithm>
#include <cstring>

#include "weir/http/ws/detail/connection.hpp"

namespace weir::http {
namespace {

// The size of a piece of a compressed message.
constexpr std::size_t piece_max = 16 * 1024;

}  // namespace

/// Decompresses a part of a message behind the parts before it. The rest of a large part is held.
WsConnection::Decompressed WsConnection::take_compressed(WsEvent part, bool whole) {
  WsActivity& a = *activity_;
  a.collects_text = part.is_text;
  const std::size_t room = whole ? compression::TurnWork::output_max : piece_max;
  WsDeflate::Step step;
  guard([&] { step = deflate_->decompress(part, limits_.message_bytes_max, room, a.message); });
  if (error()) return Decompressed::ended;
  if (step.failure) {
    a.session.reject(*step.failure);
    WsEvent failed;
    failed.kind = WsEvent::Kind::failed;
    failed.code = *step.failure;
    handle(failed);
    return Decompressed::ended;
  }
  const bool ends = step.complete && part.ends;
  if (!step.complete) a.held = part;
  if (!ends && (whole || a.message.empty())) {
    return step.complete ? Decompressed::next_event : Decompressed::next_turn;
  }
  a.change(WsActivity::ResultPlace::in_message);
  give(part, a.message.bytes(), ends);
  return Decompressed::result;
}

/// Compresses slices of a message to the output, each to a frame of its own. Returns true if the
/// whole message was compressed. The rest of a large message waits for the next turn.
bool WsConnection::copy_compressed(WebSocketSend& send) {
  WsActivity& a = *activity_;
  const Bytes bytes = send.bytes_;
  for (;;) {
    if (output_is_full()) return false;
    if (deflate_->turn_is_used()) {
      queue_next_turn();
      return false;
    }
    const Bytes rest = bytes.subspan(send.taken_);
    const Bytes slice = rest.first(std::min(rest.size(), WsDeflate::slice_max));
    const bool last = slice.size() == rest.size();
    const bool ends = last && send.ends_;
    a.output.make_room(ws_header_size_max + WsDeflate::room_for(slice.size()));
    // The header, whose size is not known yet, and the payload.
    const MutableBytes room = a.output.room();
    const MutableBytes payload = room.subspan(ws_header_size_max);
    const std::size_t size = deflate_->compress(slice, ends, payload);
    const auto mask = next_mask();
    char* const start = reinterpret_cast<char*>(room.data());
    const WsFrameHeader header{.opcode = send.is_text_ ? WsOpcode::text : WsOpcode::binary,
                               .final = ends,
                               .length = size,
                               .mask = mask,
                               .compressed = true};
    char* const header_end = a.session.write_header(header, start);
    auto* const out = reinterpret_cast<std::byte*>(header_end);
    std::memmove(out, payload.data(), size);
    if (mask) WsMask(*mask).apply({out, size}, out);
    a.output.commit(static_cast<std::size_t>(header_end - start) + size);
    send.taken_ += slice.size();
    send.begun_ = true;
    if (last) return true;
  }
}

}  // namespace weir::http
