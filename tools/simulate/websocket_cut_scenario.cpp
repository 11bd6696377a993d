// The clients that send parts of a handshake and of frames.
#include "tools/simulate/websocket_cut_scenario.hpp"

#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "weir/http/ws/detail/frame.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate {
namespace {

using namespace std::chrono_literals;
using http::WsFrameEvent;
using http::WsOpcode;

constexpr unsigned workers = 16;  // connections at a time
constexpr int fin = 0x80;
// Longer than each timeout of the server, pings included.
constexpr Duration patience = 100s;

std::string head_for(std::string_view target) {
  return "GET " + std::string(target) +
         " HTTP/1.1\r\nHost: server\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
}

}  // namespace

WebSocketCutScenario::WebSocketCutScenario(sim::Random& random, WebSocketService& service)
    : random_(random), service_(service) {
  constexpr std::array targets{"/echo",    "/echo",    "/pieces",  "/pieces",
                               "/topic/0", "/topic/1", "/topic/2", "/topic/3"};
  target_ = random.one_of(targets);
  request_ = head_for(target_);
  head_size_ = request_.size();
  for (std::size_t count = 1 + random.below(4); count != 0; --count) add_message();
  if (random.bernoulli(0.5)) add_frame(fin | static_cast<int>(WsOpcode::close), "\x03\xe8");
}

/// Adds a frame of a client.
void WebSocketCutScenario::add_frame(int first, std::string_view payload) {
  http::WsMaskKey key{};
  for (std::byte& each : key) each = static_cast<std::byte>(random_.below(256));
  std::string header(http::ws_header_size_max, '\0');
  const http::WsFrameHeader frame{.opcode = static_cast<WsOpcode>(first & 15),
                                  .final = (first & fin) != 0,
                                  .length = payload.size(),
                                  .mask = key};
  header.resize(
      static_cast<std::size_t>(http::write_ws_header(frame, header.data()) - header.data()));
  std::string masked(payload);
  http::WsMask(key).apply(to_bytes(payload), reinterpret_cast<std::byte*>(masked.data()));
  request_ += header + masked;
}

/// Adds a message in some frames, with pings between.
void WebSocketCutScenario::add_message() {
  std::string text = std::to_string(messages_.size()) + " ";
  text.append(random_.below(random_.bernoulli(0.2) ? 300 : 30), 'x');
  std::string_view rest = text;
  int opcode = static_cast<int>(random_.bernoulli(0.5) ? WsOpcode::text : WsOpcode::binary);
  while (random_.bernoulli(0.4)) {
    const std::string_view part = rest.substr(0, random_.below(rest.size() + 1));
    add_frame(std::exchange(opcode, 0), part);
    rest.remove_prefix(part.size());
    if (random_.bernoulli(0.3)) add_frame(fin | static_cast<int>(WsOpcode::ping), "ping");
  }
  add_frame(fin | opcode, rest);
  messages_.push_back({request_.size(), std::move(text)});
}

Task<Result<>> WebSocketCutScenario::ask(Scope&, Endpoint server) {
  WEIR_CO_TRY(co_await sleep(1s));
  std::vector<Task<>> tasks;
  for (unsigned worker = 0; worker < workers; ++worker) tasks.push_back(send_prefixes(server));
  const auto all_left = co_await all(std::move(tasks));
  if (!all_left) co_return fail(all_left.error());
  done_ = true;
  co_return {};
}

Task<> WebSocketCutScenario::send_prefixes(Endpoint server) {
  while (next_ <= request_.size()) co_await send_prefix(server, next_++);
}

/// Sends the first `size` bytes, and leaves.
Task<> WebSocketCutScenario::send_prefix(Endpoint server, std::size_t size) {
  constexpr std::array ways{Leaving::close, Leaving::close_side, Leaving::silence};
  const Leaving way = random_.one_of(ways);
  const std::string_view bytes = std::string_view(request_).substr(0, size);
  CutAnswer answer = co_await send_and_leave(random_, server, bytes, way, patience);
  if (!answer.violation.empty()) fail_with(size, answer.violation);
  if (answer.received) judge(size, way, std::move(*answer.received));
}

/// Judges all that a client has received.
void WebSocketCutScenario::judge(std::size_t size, Leaving way, std::string received) {
  const std::size_t head_end = received.find("\r\n\r\n");
  const bool accepted = received.starts_with("HTTP/1.1 101 ") && head_end != received.npos;
  if (!accepted) {
    if (way == Leaving::silence && size >= head_size_)
      fail_with(size, "the handshake has no answer");
    return;
  }
  if (size < head_size_) return fail_with(size, "a part of a handshake is accepted");
  http::WsFrameReader reader(http::WsRole::client);
  MutableBytes rest(reinterpret_cast<std::byte*>(received.data()), received.size());
  rest = rest.subspan(head_end + 4);
  std::string text;
  std::size_t number = 0;
  for (;;) {
    const WsFrameEvent event = reader.next(rest);
    rest = rest.subspan(event.consumed);
    if (event.kind == WsFrameEvent::Kind::need_more) break;
    if (event.kind == WsFrameEvent::Kind::error) return fail_with(size, "an invalid frame");
    if (event.kind != WsFrameEvent::Kind::payload) continue;
    text += to_text(event.bytes);
    if (!event.ends || !event.last) continue;
    const std::string whole = std::exchange(text, {});
    if (target_.starts_with("/topic")) continue;
    if (number == messages_.size() || messages_[number].text != whole ||
        messages_[number].end > size) {
      return fail_with(size, "a message that was not sent");
    }
    ++number;
  }
  answered_ += number;
  if (way != Leaving::silence || target_.starts_with("/topic")) return;
  if (number < messages_.size() && messages_[number].end <= size) {
    fail_with(size, "a message has not returned");
  }
}

void WebSocketCutScenario::fail_with(std::size_t number, const std::string& what) {
  if (!violation_.empty()) return;
  violation_ = target_ + " after " + std::to_string(number) + " of " +
               std::to_string(request_.size()) + " bytes: " + what;
}

std::string WebSocketCutScenario::find_violation() const {
  return violation_.empty() ? service_.find_violation() : violation_;
}

}  // namespace weir::simulate
