#include "weir/web/proxy/detail/proxied_websocket.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "weir/base/detail/memory_sizes.hpp"
#include "weir/http/detail/h1/framing.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/ws/detail/connection.hpp"
#include "weir/http/ws/detail/handshake.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/context.hpp"
#include "weir/task/select.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/web/proxy/detail/forwarding.hpp"
#include "weir/web/proxy/detail/proxy_core.hpp"

namespace weir::http::detail {
namespace {

constexpr std::string_view subprotocol_header = "sec-websocket-protocol";

/// Returns the subprotocols that the client offers, in its order.
std::vector<std::string> offered_subprotocols(const RequestHead& head) {
  std::vector<std::string> offered;
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const auto [name, list] = head.header_at(index);
    if (!equals_ignoring_case(name, subprotocol_header)) continue;
    for (std::string_view rest = list; !rest.empty();) {
      const std::string_view member = take_member(rest);
      if (!member.empty()) offered.emplace_back(member);
    }
  }
  return offered;
}

/// Sets an event at the end of its block, also if an exception ends it.
class SetAtEnd {
 public:
  explicit SetAtEnd(ManualResetEvent& event) noexcept : event_(event) {}
  SetAtEnd(const SetAtEnd&) = delete;
  SetAtEnd& operator=(const SetAtEnd&) = delete;
  ~SetAtEnd() { event_.set(); }

 private:
  ManualResetEvent& event_;
};

/// A WebSocket that gives its slot up when it is the idlest one of its client, and a client waits
/// that has fewer ones also after that.
class Displaceable : ProxyCore::Slots::Stall {
 public:
  Displaceable(ProxyCore::Slots::Slot& slot, const Context& own)
      : Stall(slot, own.loop->now(), &revoke, 2), loop_(*own.loop), cancel_(own.cancel) {}

  Context context() noexcept { return {&loop_, &cancel_}; }
  /// Notes that a piece of a message has passed.
  using Stall::renew;

 private:
  static void revoke(Stall& stall) noexcept { static_cast<Displaceable&>(stall).cancel_.cancel(); }

  Loop& loop_;
  CancelSource cancel_;
};

/// Passes on what `from` sends until it, the other side or the other direction ends. A direction
/// that waits for a side to take bytes ends with that side, so that no frame is cut off.
Task<> pass_on(WebSocket& from, WebSocket& to, ManualResetEvent& ended, Displaceable& place) {
  const SetAtEnd at_end(ended);
  for (bool both_open = true; both_open;) {
    const auto first = co_await select(from.read_piece(), ended.wait());
    const auto* const piece = first ? std::get_if<0>(&*first) : nullptr;
    both_open = piece != nullptr && piece->has_value();
    if (!both_open) break;
    place.renew();
    const Result<> sent = co_await to.send_piece(**piece);
    both_open = sent.has_value();
  }
}

/// Closes one side after the other. `lost` is the code if the other one was lost.
Task<> close_after(WebSocket& side, const WebSocket& other, WebSocketCloseCode lost) {
  WebSocketCloseCode code = other.close_code();
  if (code == WebSocketCloseCode::abnormal) code = lost;
  std::ignore = co_await side.close(code, other.close_reason());
}

/// Passes messages on in both directions, until both sides are closed or lost. If the slot is
/// revoked, the client is not closed yet.
Task<> pass_on_both(WebSocket& client, WebSocket& upstream, ProxyCore::Slots::Slot& slot) {
  ManualResetEvent ended;
  const Context own = co_await this_context();
  Displaceable place(slot, own);
  auto up = pass_on(client, upstream, ended, place);
  auto down = pass_on(upstream, client, ended, place);
  auto both = settled(std::move(up), std::move(down));
  auto passing = in_context(place.context(), std::move(both));
  std::ignore = co_await std::move(passing);
  if (slot.revoked()) {
    std::ignore = co_await upstream.close(WebSocketCloseCode::going_away);
  } else if (client.is_open()) {
    co_await close_after(client, upstream, WebSocketCloseCode::bad_gateway);
  } else if (upstream.is_open()) {
    co_await close_after(upstream, client, WebSocketCloseCode::going_away);
  }
}

/// A WebSocket at an upstream.
struct UpstreamWebSocket {
  ProxyCore::Request proxied;
  OpenedWebSocket opened;  // destroyed first
};

Task<> serve_client(WebSocket& client, UpstreamWebSocket at, const WebSocketLimits& limits) {
  ClientWebSocketOptions options;
  options.limits = limits;
  ProxyCore::Slots::Slot& slot = at.proxied.slot();
  auto pass = [&client, &slot](WebSocket& upstream) {
    return pass_on_both(client, upstream, slot);
  };
  auto using_it = use_websocket(std::move(at.opened), std::move(pass), options);
  std::ignore = co_await std::move(using_it);
  if (!slot.revoked()) co_return;
  slot.release();  // a client that does not answer the Close delays nobody
  std::ignore = co_await client.close(WebSocketCloseCode::try_again_later);
}

}  // namespace

bool asks_for_websocket(const Request& request) noexcept {
  const auto upgrade = request.header("upgrade");
  return request.head().requests_upgrade() && upgrade &&
         equals_ignoring_case(*upgrade, "websocket");
}

std::optional<Response> refuse_websocket(const Request& request) {
  static const WebSocketOptions any_origin{.subprotocols = {}, .origins = {"*"}};
  const WsUpgrade checked = check_websocket_request(request.head(), request.version(), any_origin,
                                                    request.tls() != nullptr);
  if (checked.verdict == WsVerdict::accepted) return std::nullopt;
  return websocket_rejection(checked.verdict, request.version());
}

Task<Result<WebSocketAnswer>> ask_for_websocket(const Request& request, ClientRequest sent,
                                                ProxyCore::Request& proxied,
                                                const ReverseProxyOptions& options) {
  ClientWebSocketOptions asked;
  asked.limits = options.websocket;
  asked.http2 = false;  // see reverse_proxy()
  asked.subprotocols = offered_subprotocols(request.head());
  // A handshake has no trailers, and TE would need the option of Connection (RFC 9110 §10.1.4).
  for (const std::string_view name : {"te", "sec-websocket-key", "sec-websocket-version",
                                      "sec-websocket-extensions", subprotocol_header.data()}) {
    sent.remove_header(name);
  }
  asked.headers = sent.headers();
  auto opening = open_websocket(proxied.websocket_pool(), std::move(sent).take_url(), asked);
  co_return co_await std::move(opening);
}

Response forward_websocket(const Request& request, OpenedWebSocket opened,
                           ProxyCore::Request proxied, const ReverseProxyOptions& options) {
  auto accepted = std::make_shared<WebSocketOptions>();
  accepted->origins = {"*"};
  if (!opened.subprotocol.empty()) accepted->subprotocols = {opened.subprotocol};
  const Headers headers = std::move(opened.headers);
  UpstreamWebSocket at{std::move(proxied), std::move(opened)};
  auto serve = [at = std::move(at), &limits = options.websocket](WebSocket& client) mutable {
    return WebSocketTask(serve_client(client, std::move(at), limits));
  };
  Response out = accept_websocket(request, std::move(serve), std::move(accepted));
  if (auto passed = forward_response_headers(headers, options, out); !passed) {
    return Response(passed.error());
  }
  return out;
}

}  // namespace weir::http::detail

namespace weir::http {

std::size_t websocket_bytes_max(const ReverseProxyOptions& options) noexcept {
  constexpr std::uint64_t own = 8 * 1024;  // the frames, the stream and the connection
  WebSocketLimits limits = options.websocket;
  limits.message_bytes_max = 0;  // no message is collected
  return weir::detail::sum({own, websocket_bytes_max(limits, std::nullopt)});
}

ProxyMemoryBound memory_bound(const ReverseProxyOptions& options, std::size_t upstreams) noexcept {
  using weir::detail::product;
  using weir::detail::sum;
  constexpr std::uint64_t frames = 8 * 1024;
  constexpr std::uint64_t grown = 3;             // a text of twice the size, and the one before it
  constexpr std::uint64_t response = 16 * 1024;  // one that is read as a whole
  ProxyMemoryBound bound{};
  bound.request = sum({frames, product(grown, options.short_body_max), product(grown, response),
                       weir::detail::buffer(0)});
  ClientLimits limits = options.client.limits;
  limits.body_max = 0;     // no body is collected
  limits.waiting_max = 0;  // a request that waits is one of the server
  limits.connections_max = static_cast<std::size_t>(std::min<std::uint64_t>(
      limits.connections_max, product(limits.connections_per_origin_max, upstreams)));
  const ClientMemoryBound client = memory_bound(limits);
  const bool may_use_http2 = requests_per_connection(options.client) > 1;
  bound.core =
      sum({may_use_http2 ? std::max(client.total, client.http2_total) : client.total,
           client.tls_sessions, product(options.websockets_max, websocket_bytes_max(options))});
  return bound;
}

}  // namespace weir::http
