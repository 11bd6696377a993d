#include "tools/weir/check/websocket_wire.hpp"

#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/ws/detail/handshake.hpp"

namespace weir::check {
namespace {

constexpr std::string_view key = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr http::WsMaskKey mask{std::byte{0x37}, std::byte{0xfa}, std::byte{0x21}, std::byte{0x3d}};

}  // namespace

std::string websocket_frame(int first, std::string_view payload) {
  std::string frame(http::ws_header_size_max, '\0');
  const http::WsFrameHeader fields{.length = payload.size(), .mask = mask};
  char* const end = http::write_ws_header(fields, frame.data());
  frame.resize(static_cast<std::size_t>(end - frame.data()));
  frame[0] = static_cast<char>(first);
  const std::size_t head = frame.size();
  frame += payload;
  auto* const bytes = reinterpret_cast<std::byte*>(frame.data() + head);
  http::WsMask(mask).apply({bytes, payload.size()}, bytes);
  return frame;
}

std::string websocket_request(const CheckTarget& target, std::optional<std::string_view> fields) {
  std::string request =
      "GET " + target.websocket_path + " HTTP/1.1\r\nHost: " + target.authority + "\r\n";
  if (fields) return request.append(*fields).append("\r\n");
  request += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
  return request.append("Sec-WebSocket-Key: ").append(key).append("\r\n\r\n");
}

std::string deflating_websocket_request(const CheckTarget& target) {
  std::string request = websocket_request(target);
  request.insert(request.size() - 2, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
  return request;
}

Task<bool> WebSocketWire::open() {
  return connect(target().tls);
}

Task<> WebSocketWire::exchange(std::string_view bytes, Duration wait_timeout) {
  return transfer(bytes, wait_timeout);
}

std::optional<Verdict> WebSocketWire::verdict_without_websocket(const std::string& expected) const {
  if (accepted_) return std::nullopt;
  if (!connected() || status_ == 101) return failed(expected, describe());
  return not_applicable(expected, describe() + ": the path is no WebSocket");
}

std::string WebSocketWire::describe() const {
  if (!connected()) return trouble();
  std::string text = status_ == 0 ? "no answer" : std::to_string(status_);
  if (status_ == 101 && !accepted_) text += " with a wrong Sec-WebSocket-Accept";
  if (broken_) text += ", invalid bytes";
  if (answered_) text += ", a pong";
  if (close_code_) text += ", close " + std::to_string(*close_code_);
  return text + (is_closed() ? ", closed" : ", kept open");
}

bool WebSocketWire::is_done() const noexcept {
  return (status_ != 0 && status_ != 101) || answered_ || broken_;
}

void WebSocketWire::on_input(Buffer input) {
  input_ += input.text();
  if (status_ == 0) read_head();
  if (status_ == 101 && !broken_) read_frames();
}

void WebSocketWire::read_head() {
  http::HeadParser parser;
  http::ReceivedResponseHead head;
  const http::ParseResult parsed = parser.parse(input_, head);
  if (parsed.kind == http::ParseResult::Kind::incomplete) return;
  if (parsed.kind == http::ParseResult::Kind::error) {
    broken_ = true;
    return;
  }
  status_ = http::code_of(head.status());
  const http::WsAccept accept = http::websocket_accept(key);
  accepted_ = status_ == 101 &&
              head.header("Sec-WebSocket-Accept") == std::string_view(accept.data(), accept.size());
  deflates_ =
      head.header("Sec-WebSocket-Extensions").value_or("").starts_with("permessage-deflate");
  frames_.emplace(http::WsRole::client, deflates_);
  input_.erase(0, parsed.consumed);
}

void WebSocketWire::read_frames() {
  for (;;) {
    auto* const start = reinterpret_cast<std::byte*>(input_.data());
    const http::WsFrameEvent event = frames_->next({start, input_.size()});
    if (event.kind == http::WsFrameEvent::Kind::control) {
      const std::string_view payload = to_text(event.bytes);
      if (event.opcode == http::WsOpcode::pong && payload == websocket_last_ping) answered_ = true;
      if (event.opcode == http::WsOpcode::close && !close_code_) {
        close_code_ = payload.size() < 2 ? 0
                                         : static_cast<unsigned char>(payload[0]) * 256 +
                                               static_cast<unsigned char>(payload[1]);
      }
    }
    input_.erase(0, event.consumed);
    if (event.kind == http::WsFrameEvent::Kind::error) broken_ = true;
    if (broken_ || event.kind == http::WsFrameEvent::Kind::need_more) return;
  }
}

}  // namespace weir::check
