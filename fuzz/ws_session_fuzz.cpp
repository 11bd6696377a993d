// Feeds any bytes to a WebSocket session. The events do not depend on cuts, and they equal those of
// a second reader, which sees the whole input. What the session sends are valid frames.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/http/ws/detail/session.hpp"

namespace {

using weir::Bytes;
using weir::MutableBytes;
using weir::to_text;
using weir::fuzz::require;
using namespace weir::http;

/// The choices of the first byte of an input.
struct Options {
  explicit Options(std::uint8_t byte)
      : role((byte & 1) != 0 ? WsRole::client : WsRole::server),
        closes((byte & 4) != 0),
        deflates((byte & 8) != 0) {
    if ((byte & 2) != 0) limits.message_bytes_max = 20;
  }
  WsRole role;
  bool closes;    // the session sends a Close first
  bool deflates;  // permessage-deflate was negotiated
  WebSocketLimits limits;
};

std::string number_text(WebSocketCloseCode code) {
  return std::to_string(static_cast<int>(code));
}

/// A Carrier feeds a session and answers after each event. Parts of a message are joined.
class Carrier {
 public:
  explicit Carrier(const Options& options)
      : options_(options),
        session_(options.role, options_.limits, options.deflates),
        peer_(peer_role()) {
    if (!options.closes) return;
    char room[ws_control_frame_max];
    check_sent(room, session_.write_close(WebSocketCloseCode::normal, "bye", mask(), room));
  }

  std::string feed(std::string_view input, std::size_t step) {
    std::string events;
    for (std::size_t at = 0; at < input.size(); at += step) {
      std::string piece(input.substr(at, step));
      piece.shrink_to_fit();
      MutableBytes rest(reinterpret_cast<std::byte*>(piece.data()), piece.size());
      for (;;) {
        const WsEvent event = session_.next(rest);
        require(event.consumed <= rest.size());
        rest = rest.subspan(event.consumed);
        if (event.kind == WsEvent::Kind::need_more) break;
        events += describe(event);
        answer();
        if (event.kind == WsEvent::Kind::failed) return events;
      }
      require(rest.empty());
    }
    return events;
  }

 private:
  WsRole peer_role() const {
    return options_.role == WsRole::server ? WsRole::client : WsRole::server;
  }
  std::optional<WsMaskKey> mask() const {
    if (options_.role == WsRole::server) return std::nullopt;
    return WsMaskKey{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  }

  std::string describe(const WsEvent& event) const {
    const std::string bytes(to_text(event.bytes));
    switch (event.kind) {
      case WsEvent::Kind::message:
        require(event.ends || !event.bytes.empty());
        require(!event.compressed || options_.deflates);
        return (!event.begins      ? ""
                : event.compressed ? "compressed ["
                : event.is_text    ? "text ["
                                   : "binary [") +
               bytes + (event.ends ? "]" : "");
      case WsEvent::Kind::ping:
        return "<ping " + bytes + ">";
      case WsEvent::Kind::pong:
        return "<pong " + bytes + ">";
      case WsEvent::Kind::close:
        return "<close " + number_text(event.code) + " " + bytes + ">";
      default:
        return "<failed " + number_text(event.code) + ">";
    }
  }

  void answer() {
    while (session_.has_control()) {
      char room[ws_control_frame_max];
      check_sent(room, session_.write_control(mask(), room));
    }
    require(session_.may_send() == !session_.close_sent());
  }

  /// Reads one frame as the peer does.
  void check_sent(char* start, const char* end) {
    require(!close_sent_ && end - start <= static_cast<std::ptrdiff_t>(ws_control_frame_max));
    const MutableBytes frame(reinterpret_cast<std::byte*>(start),
                             static_cast<std::size_t>(end - start));
    const WsFrameEvent event = peer_.next(frame);
    require(event.kind == WsFrameEvent::Kind::control && event.consumed == frame.size());
    close_sent_ = event.opcode == WsOpcode::close;
  }

  Options options_;
  WsSession session_;
  WsFrameReader peer_;
  bool close_sent_ = false;
};

/// A SecondReader reads a whole input, frame by frame, with a copy of each payload.
class SecondReader {
 public:
  SecondReader(const Options& options, std::string_view input) : options_(options), rest_(input) {}

  std::string read() {
    while (read_frame()) {
    }
    return events_;
  }

 private:
  unsigned byte(std::size_t at) const { return static_cast<unsigned char>(rest_[at]); }
  bool fail(int code) {
    events_ += "<failed " + std::to_string(code) + ">";
    return false;
  }

  /// Returns false at the end of the input or of the events.
  bool read_frame() {
    if (rest_.size() < 2) return false;
    const bool final = byte(0) >= 0x80;
    const unsigned opcode = byte(0) & 0x0F;
    const bool is_control = opcode >= 8;
    const bool compressed =
        options_.deflates && (opcode == 1 || opcode == 2) && (byte(0) & 0x40) != 0;
    if ((byte(0) & (compressed ? 0x30 : 0x70)) != 0 || opcode > 10 || (opcode > 2 && opcode < 8))
      return fail(1002);
    if ((byte(1) >= 0x80) != (options_.role == WsRole::server)) return fail(1002);
    std::uint64_t length = byte(1) & 0x7F;
    if (is_control && (!final || length > 125)) return fail(1002);
    if (!is_control && (opcode == 0) != open_) return fail(1002);
    const std::size_t length_size = length == 127 ? 8 : length == 126 ? 2 : 0;
    const std::size_t mask_size = options_.role == WsRole::server ? 4 : 0;
    if (rest_.size() < 2 + length_size + mask_size) return false;
    if (length_size != 0) {
      length = 0;
      for (std::size_t at = 2; at < 2 + length_size; ++at) length = length * 256 + byte(at);
      if (length < (length_size == 2 ? 126U : 65'536U) || length >> 63 != 0) return fail(1002);
    }
    const std::string_view key = rest_.substr(2 + length_size, mask_size);
    rest_.remove_prefix(2 + length_size + mask_size);
    std::string payload(
        rest_.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(length, rest_.size()))));
    for (std::size_t at = 0; at < payload.size() && !key.empty(); ++at) {
      payload[at] = static_cast<char>(payload[at] ^ key[at % 4]);
    }
    rest_.remove_prefix(payload.size());
    const bool is_whole = payload.size() == length;
    if (is_control) return is_whole && take_control(opcode, payload);
    if (opcode != 0) begin(opcode == 1, compressed);
    open_ = !is_whole || !final;
    const std::uint64_t limit = options_.limits.message_bytes_max;
    if (length > limit + (compressed_ ? limit / 8 + 125 : 0) - size_) return fail(1009);
    size_ += length;
    return take_payload(payload, is_whole && final) && is_whole;
  }

  void begin(bool is_text, bool compressed) {
    is_text_ = is_text && !compressed;
    compressed_ = compressed;
    begun_ = false;
    size_ = 0;
    utf8_ = {};
  }

  bool take_payload(const std::string& payload, bool ends) {
    std::size_t valid = payload.size();
    bool is_valid = true;
    for (std::size_t at = 0; at < payload.size() && is_text_ && is_valid; ++at) {
      is_valid = utf8_.check(payload.substr(at, 1)) == 1;
      if (!is_valid) valid = at;
    }
    if (ends && is_text_ && !utf8_.complete()) is_valid = false;
    const bool has_end = ends && is_valid;
    if (!begun_ && (valid != 0 || has_end)) {
      events_ += compressed_ ? "compressed [" : is_text_ ? "text [" : "binary [";
      begun_ = true;
    }
    events_ += payload.substr(0, valid) + (has_end ? "]" : "");
    return is_valid || fail(1007);
  }

  bool take_control(unsigned opcode, const std::string& payload) {
    if (opcode != 8) {
      events_ += (opcode == 9 ? "<ping " : "<pong ") + payload + ">";
      return true;
    }
    if (payload.size() == 1) return fail(1002);
    int code = 1005;
    std::string reason;
    if (!payload.empty()) {
      const auto at = [&](std::size_t index) { return static_cast<unsigned char>(payload[index]); };
      code = at(0) * 256 + at(1);
      const bool is_protocol = code >= 1000 && code <= 1014 && !(code >= 1004 && code <= 1006);
      if (!is_protocol && (code < 3000 || code > 4999)) return fail(1002);
      reason = payload.substr(2);
      weir::Utf8Checker checker;
      if (checker.check(reason) != reason.size() || !checker.complete()) return fail(1007);
    }
    events_ += "<close " + std::to_string(code) + " " + reason + ">";
    return false;
  }

  const Options& options_;
  std::string_view rest_;
  std::string events_;
  weir::Utf8Checker utf8_;
  std::uint64_t size_ = 0;
  bool open_ = false;
  bool is_text_ = false;  // and not compressed
  bool compressed_ = false;
  bool begun_ = false;
};

std::string run(const Options& options, std::string_view input, std::size_t step) {
  return Carrier(options).feed(input, std::max<std::size_t>(step, 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Options options(data[0]);
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = run(options, input, input.size());
  require(run(options, input, 1) == whole);
  require(run(options, input, size / 3 + 1) == whole);
  require(SecondReader(options, input).read() == whole);
  return 0;
}
