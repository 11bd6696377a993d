// Feeds any bytes to a WebSocket connection whose handler reads, returns or sends messages. The
// connection ends, and leaves nothing. What it sends are valid frames. The messages and the Close
// do not depend on cuts.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/require.hpp"
#include "weir/http/ws/detail/connection.hpp"
#include "weir/http/ws/detail/frame.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace {

using namespace weir;
using namespace weir::http;
using namespace std::chrono_literals;
using weir::fuzz::require;

constexpr Duration drain_time = 300s;  // longer than all timeouts together

/// The function that serves the connection.
enum class HandlerKind : std::uint8_t {
  echo,       // returns messages
  pieces,     // returns each piece of a message as it arrives
  impatient,  // returns messages, and cancels reads that take long
  closing,    // returns one message and closes
  sender,     // sends much, and reads between
  leaving,    // returns immediately
  late,       // returns messages, and takes time before each read
};
constexpr std::size_t handlers = 7;
constexpr Duration late_time = 100ms;  // between two reads of HandlerKind::late

/// The way in which the peer ends.
enum class End : std::uint8_t { silence, finish, close, reset };

/// The choices of the first two bytes of an input.
struct Options {
  Options(std::uint8_t first, std::uint8_t second)
      : role((first & 1) != 0 ? WsRole::client : WsRole::server),
        end(static_cast<End>(first >> 1 & 3)),
        reads((first & 8) == 0),
        handler(static_cast<HandlerKind>(second % handlers)) {
    if ((first & 16) != 0) limits.message_bytes_max = 50;
    tight = (first & 32) != 0;
    if (tight) limits.output_max = 40;
    if ((first & 64) != 0) limits.ping_interval = 2s;
    drains = (first & 128) != 0;
    if (handler == HandlerKind::late) {
      limits.ping_interval = Duration::max();  // it takes long
      if (end == End::silence) end = End::finish;
    }
  }
  /// Returns true if what the connection sends is the same for each cut of the input: time and a
  /// full output decide nothing.
  bool comparable() const {
    return !tight && reads && handler != HandlerKind::sender && handler != HandlerKind::leaving;
  }
  WsRole role;
  End end;
  bool reads;  // the peer reads what it gets
  HandlerKind handler;
  bool tight = false;
  bool drains = false;  // the server drains before the peer ends
  WebSocketLimits limits;
};

Task<Result<>> echo(WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const auto message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

Task<Result<>> echo_late(WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(co_await sleep(late_time));
    WEIR_CO_TRY(const auto message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

Task<Result<>> echo_pieces(WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const auto piece, co_await socket.read_piece());
    WEIR_CO_TRY(co_await socket.send_piece(piece));
  }
}

Task<Result<>> echo_with_timeouts(WebSocket& socket) {
  for (;;) {
    auto reading = socket.read();
    const auto message = co_await timeout(100ms, std::move(reading));
    if (!message && message.error() == Errc::timed_out && socket.is_open()) continue;
    if (!message) co_return fail(message.error());
    WEIR_CO_TRY(co_await socket.send(*message));
  }
}

Task<Result<>> echo_once(WebSocket& socket) {
  WEIR_CO_TRY(const auto message, co_await socket.read());
  WEIR_CO_TRY(co_await socket.send(message));
  co_return co_await socket.close(static_cast<WebSocketCloseCode>(4000), message.text());
}

Task<Result<>> send_much(WebSocket& socket) {
  const std::string text(30'000, 'x');
  for (unsigned number = 0; number < 5; ++number) {
    WEIR_CO_TRY(co_await socket.send(std::string_view(text)));
    WEIR_CO_TRY(const auto piece, co_await socket.read_piece());
    const WebSocketMessage first{.is_text = false, .ends = false, .bytes = {}};
    const WebSocketMessage last{.is_text = false, .ends = true, .bytes = piece.bytes};
    WEIR_CO_TRY(co_await socket.send_piece(first));
    WEIR_CO_TRY(co_await socket.send_piece(last));
    WEIR_CO_TRY(co_await sleep(10ms));
  }
  co_return {};
}

Task<Result<>> leave(WebSocket&) {
  co_return {};
}

Task<Result<>> run_handler(HandlerKind handler, WebSocket& socket) {
  switch (handler) {
    case HandlerKind::echo:
      return echo(socket);
    case HandlerKind::pieces:
      return echo_pieces(socket);
    case HandlerKind::impatient:
      return echo_with_timeouts(socket);
    case HandlerKind::closing:
      return echo_once(socket);
    case HandlerKind::sender:
      return send_much(socket);
    case HandlerKind::late:
      return echo_late(socket);
    case HandlerKind::leaving:
      break;
  }
  return leave(socket);
}

/// The frames that a connection has sent.
struct Sent {
  std::string messages;  // the whole ones
  std::string close;
  std::vector<std::string> pongs;
};

/// Reads the frames as the peer does. Only the end of the connection may cut one off. The begin of
/// a message is not returned without its end: a connection that has failed sends it or not.
Sent frames_of(WsRole role, std::string received) {
  Sent sent;
  WsFrameReader reader(role == WsRole::server ? WsRole::client : WsRole::server);
  MutableBytes rest(reinterpret_cast<std::byte*>(received.data()), received.size());
  bool closed = false;
  std::string message;
  for (;;) {
    const WsFrameEvent event = reader.next(rest);
    rest = rest.subspan(event.consumed);
    if (event.kind == WsFrameEvent::Kind::need_more) return sent;
    require(!closed && event.kind != WsFrameEvent::Kind::error);
    const std::string bytes(to_text(event.bytes));
    if (event.kind == WsFrameEvent::Kind::payload) {
      if (event.begins && event.first) message = event.opcode == WsOpcode::text ? "T[" : "B[";
      message += bytes;
      if (event.ends && event.last) sent.messages += message + ']';
    } else if (event.opcode == WsOpcode::close) {
      sent.close = bytes;
      closed = true;
    } else if (event.opcode == WsOpcode::pong) {
      sent.pongs.push_back(bytes);
    } else {
      require(bytes.empty());  // an own ping
    }
  }
}

/// A Run is one connection on a loop of its own.
class Run : Continuation, loop::Runnable {
 public:
  explicit Run(const Options& options)
      : Continuation(root_kind<&ended>), loop::Runnable(&begin), options_(options) {}

  /// Sends the input in pieces of `step` bytes, ends, and returns what the connection has sent.
  Sent feed(std::string_view input, std::size_t step) {
    loop_->ready(*this);
    platform_.run_until_idle(*loop_);
    MemoryPeer peer(platform_, os::Address::loopback(80));
    platform_.run_until_idle(*loop_);
    std::string received;
    while (!input.empty()) {
      const std::size_t count = peer.send(input.substr(0, step));
      input.remove_prefix(count);
      pass(late_time / 3);
      if (options_.reads) received += peer.take();
      if (count == 0 && !take_more(peer, received)) break;
    }
    pass(100s);
    if (options_.drains && connection_ != nullptr) {
      connection_->drain(WebSocketCloseCode::going_away);
    }
    while (options_.reads && take_more(peer, received)) {
    }
    end(peer);
    for (Duration passed{}; passed < drain_time; passed += 10s) {
      platform_.advance(*loop_, 10s);
      if (options_.reads && options_.end == End::silence) received += peer.take();
    }
    require(done_);
    root_.reset();
    loop_->blocks().collect();
    require(loop_->blocks().blocks_in_use() == 0);
    require(loop_->timers().armed() == 0);
    require(platform_.open_descriptors() == 0);
    return frames_of(options_.role, std::move(received));
  }

 private:
  static void begin(loop::Runnable& self) {
    auto& run = static_cast<Run&>(self);
    run.root_.emplace(run.serve());
    run.root_->start(Context{run.loop_.get(), nullptr}, run);
  }
  static std::coroutine_handle<> ended(Continuation& self, std::coroutine_handle<>) {
    static_cast<Run&>(self).done_ = true;
    return std::noop_coroutine();
  }

  Task<> serve() {
    const Context own = co_await this_context();
    auto listener = co_await tcp::listen(Endpoint::loopback(80));
    require(listener.has_value());
    auto stream = co_await listener->accept();
    require(stream.has_value());
    WsConnection connection(AnyStream(std::move(*stream)), options_.role, options_.limits, Buffer(),
                            {}, own.cancel);
    connection_ = &connection;
    in_context<Result<>> running(Context{own.loop, &connection.handler()},
                                 run_handler(options_.handler, connection));
    std::ignore = co_await std::move(running);
    co_await connection.finish(WebSocketCloseCode::normal);
    connection_ = nullptr;
    if (connection.lingers()) std::ignore = connection.stream()->finish_writing();
  }

  /// Lets the time of a late handler pass.
  void pass(Duration length) {
    platform_.run_until_idle(*loop_);
    if (options_.handler == HandlerKind::late) platform_.advance(*loop_, length);
  }

  /// Lets the connection send more. Returns true if the peer has received more.
  bool take_more(MemoryPeer& peer, std::string& received) {
    platform_.run_until_idle(*loop_);
    const std::string more = options_.reads ? peer.take() : std::string();
    received += more;
    return !more.empty();
  }

  void end(MemoryPeer& peer) {
    switch (options_.end) {
      case End::silence:
        return;
      case End::finish:
        return peer.finish();
      case End::close:
        return peer.close();
      case End::reset:
        return peer.reset();
    }
  }

  const Options& options_;
  MemoryPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
  WsConnection* connection_ = nullptr;
  std::optional<Task<>> root_;
  bool done_ = false;
};

/// Returns true if `pongs` are some of `all`, in their order: one Pong may answer several Pings
/// (RFC 6455 §5.5.3).
bool are_part_of(const std::vector<std::string>& pongs, const std::vector<std::string>& all) {
  auto at = all.begin();
  return std::ranges::all_of(pongs, [&](const std::string& pong) {
    at = std::find(at, all.end(), pong);
    return at != all.end() && ++at != all.begin();
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t choices = 2;
  if (size < choices) return 0;
  const Options options(data[0], data[1]);
  const std::string_view input(reinterpret_cast<const char*>(data) + choices, size - choices);
  const Sent each = Run(options).feed(input, 1);
  for (const std::size_t step : std::array{input.size() / 3 + 1, input.size() + 1}) {
    const Sent whole = Run(options).feed(input, step);
    if (!options.comparable()) continue;
    require(whole.messages == each.messages);
    if (options.handler == HandlerKind::closing) continue;  // Close and Pings may cross
    require(whole.close == each.close);
    require(are_part_of(whole.pongs, each.pongs));
  }
  return 0;
}
