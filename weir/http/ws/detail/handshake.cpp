// The opening handshake of WebSocket: keys, checks of requests and responses, origins.
#include "weir/http/ws/detail/handshake.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <utility>

#include "weir/base/text/detail/base64.hpp"
#include "weir/http/detail/h1/framing.hpp"
#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/ws/detail/extension.hpp"
#include "weir/tls/crypto/detail/sha1.hpp"

namespace weir::http {
namespace {

constexpr std::string_view websocket = "websocket";
constexpr std::string_view version_13 = "13";
/// A header that a message has at most once.
struct SingleHeader {
  std::string_view value;
  std::size_t count = 0;
};

SingleHeader find_single(const MessageHead& head, std::string_view name) noexcept {
  SingleHeader found;
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField field = head.header_at(index);
    if (!equals_ignoring_case(field.name, name)) continue;
    found.value = field.value;
    ++found.count;
  }
  return found;
}

/// Calls `visit(member)` for each member of all lists of this name until it returns true.
template <class Visit>
bool any_member(const MessageHead& head, std::string_view name, const Visit& visit) noexcept {
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField field = head.header_at(index);
    if (!equals_ignoring_case(field.name, name)) continue;
    std::string_view list = field.value;
    while (!list.empty()) {
      const std::string_view member = take_member(list);
      if (!member.empty() && visit(member)) return true;
    }
  }
  return false;
}

bool has_member(const MessageHead& head, std::string_view name, std::string_view member) noexcept {
  return any_member(head, name, [member](std::string_view each) noexcept {
    return equals_ignoring_case(each, member);
  });
}

bool contains(std::span<const std::string_view> texts, std::string_view text) noexcept {
  return std::ranges::find(texts, text) != texts.end();
}

bool is_origin_allowed(const RequestHead& head, std::string_view origin,
                       std::span<const std::string> origins, bool secure) noexcept {
  if (is_same_host(origin, head.authority(), secure)) return true;
  return std::ranges::any_of(origins, [origin](std::string_view each) {
    return each == "*" || is_same_origin(each, origin);
  });
}

/// Chooses the subprotocol. Returns false if a member of the list is not a token.
bool choose_subprotocol(const RequestHead& head, std::span<const std::string> known,
                        const std::string*& chosen) noexcept {
  return !any_member(head, "sec-websocket-protocol", [&](std::string_view each) noexcept {
    if (!is_token(each)) return true;
    if (chosen != nullptr) return false;
    const auto found = std::ranges::find(known, each);
    if (found != known.end()) chosen = &*found;
    return false;
  });
}

std::optional<DeflateAcceptance> find_deflate_offer(const MessageHead& head,
                                                    const WebSocketCompression& own) {
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField field = head.header_at(index);
    if (!equals_ignoring_case(field.name, "sec-websocket-extensions")) continue;
    if (auto accepted = accept_deflate(field.value, own)) return accepted;
  }
  return std::nullopt;
}

/// Returns true if a response of HTTP/1.1 accepts the request with this key.
bool accepts_upgrade(const ReceivedResponseHead& head, std::string_view key) noexcept {
  const SingleHeader upgrade = find_single(head, "upgrade");
  const SingleHeader accept = find_single(head, "sec-websocket-accept");
  if (head.status() != Status::switching_protocols || upgrade.count != 1 ||
      !equals_ignoring_case(upgrade.value, websocket) ||
      !has_member(head, "connection", "upgrade")) {
    return false;
  }
  const WsAccept expected = websocket_accept(key);
  return accept.count == 1 && accept.value == std::string_view(expected.data(), expected.size());
}

char* append(std::string_view text, char* out) noexcept {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

}  // namespace

WsKey websocket_key(std::span<const std::byte, 16> random) noexcept {
  WsKey key;
  write_base64(random, key.data());
  return key;
}

bool is_websocket_key(std::string_view text) noexcept {
  if (text.size() != WsKey().size() || !text.ends_with("==")) return false;
  return std::ranges::all_of(text.substr(0, text.size() - 2), [](char each) {
    const char lower = to_lower(each);
    return (lower >= 'a' && lower <= 'z') || is_in(each, CharClass::digit) || each == '+' ||
           each == '/';
  });
}

WsAccept websocket_accept(std::string_view key) noexcept {
  constexpr std::string_view suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  assert(key.size() == WsKey().size());
  std::array<char, WsKey().size() + suffix.size()> text;
  append(suffix, append(key, text.data()));
  const std::array<std::byte, 20> digest = tls::detail::sha1(to_bytes({text.data(), text.size()}));
  WsAccept accept;
  write_base64(digest, accept.data());
  return accept;
}

WsUpgrade check_websocket_request(const RequestHead& head, Version version,
                                  const WebSocketOptions& options, bool secure) noexcept {
  WsUpgrade upgrade;
  const auto reject = [&upgrade](WsVerdict verdict) noexcept {
    upgrade.verdict = verdict;
    return upgrade;
  };
  // HEAD opens no WebSocket, and gets what the same GET would get (RFC 9110 §9.3.2).
  if (head.method() == Method::head) return reject(WsVerdict::not_an_upgrade);
  if (head.method() != Method::get) return reject(WsVerdict::wrong_method);
  if (!head.requests_upgrade() || !has_member(head, "upgrade", websocket)) {
    return reject(WsVerdict::not_an_upgrade);
  }
  const SingleHeader number = find_single(head, "sec-websocket-version");
  if (number.count == 0) return reject(WsVerdict::wrong_headers);
  if (number.count != 1 || number.value != version_13) {
    return reject(WsVerdict::unsupported_version);
  }
  if (version != Version::http_2) {
    const SingleHeader key = find_single(head, "sec-websocket-key");
    if (key.count != 1 || !is_websocket_key(key.value)) return reject(WsVerdict::wrong_headers);
    if (head.has_body()) return reject(WsVerdict::wrong_headers);
    upgrade.key = key.value;
  }
  const SingleHeader origin = find_single(head, "origin");
  if (origin.count > 1) return reject(WsVerdict::wrong_headers);
  if (origin.count == 1 && !is_origin_allowed(head, origin.value, options.origins, secure)) {
    return reject(WsVerdict::wrong_origin);
  }
  if (!choose_subprotocol(head, options.subprotocols, upgrade.subprotocol)) {
    return reject(WsVerdict::wrong_headers);
  }
  return upgrade;
}

Status to_status(WsVerdict verdict, Version version) noexcept {
  switch (verdict) {
    case WsVerdict::not_an_upgrade:
    case WsVerdict::unsupported_version:
      // 426 requires the header Upgrade (RFC 9110 §15.5.22), which HTTP/2 does not have.
      return version == Version::http_2 ? Status::bad_request : Status::upgrade_required;
    case WsVerdict::wrong_method:
      return Status::method_not_allowed;
    case WsVerdict::wrong_headers:
      return Status::bad_request;
    case WsVerdict::wrong_origin:
      return Status::forbidden;
    case WsVerdict::accepted:
      break;
  }
  assert(false && "the request was accepted");
  return Status::internal_error;
}

Response websocket_rejection(WsVerdict verdict, Version version) {
  constexpr auto detail = [](WsVerdict each) noexcept -> std::string_view {
    switch (each) {
      case WsVerdict::not_an_upgrade:
        return "this resource is a WebSocket";
      case WsVerdict::unsupported_version:
        return "the version of WebSocket is not 13";
      case WsVerdict::wrong_headers:
        return "a header of the WebSocket handshake is missing, repeated or invalid";
      case WsVerdict::wrong_origin:
        return "pages of this origin may not connect";
      default:
        return "a WebSocket needs the method GET";
    }
  };
  const Status status = to_status(verdict, version);
  Response response = problem(status, std::string(detail(verdict)));
  if (status == Status::upgrade_required) response.set_header("Upgrade", websocket);
  if (verdict == WsVerdict::unsupported_version || verdict == WsVerdict::not_an_upgrade) {
    response.set_header("Sec-WebSocket-Version", version_13);
  }
  if (verdict == WsVerdict::wrong_method) response.set_header("Allow", "GET, HEAD");
  return response;
}

Response websocket_acceptance(const RequestHead& head, const WsUpgrade& upgrade,
                              WebSocketFunction serve,
                              std::shared_ptr<const WebSocketOptions> options) {
  assert(upgrade.verdict == WsVerdict::accepted);
  const bool is_http2 = upgrade.key.empty();
  Response response(is_http2 ? Status::ok : Status::switching_protocols);
  if (!is_http2) {
    const WsAccept accept = websocket_accept(upgrade.key);
    response.set_header("Upgrade", websocket);
    response.set_header("Sec-WebSocket-Accept", {accept.data(), accept.size()});
  }
  if (upgrade.subprotocol != nullptr) {
    response.set_header("Sec-WebSocket-Protocol", *upgrade.subprotocol);
  }
  std::optional<WebSocketDeflate> deflate;
  if (options->compression && can_deflate(*options->compression)) {
    if (auto accepted = find_deflate_offer(head, *options->compression)) {
      deflate = accepted->agreed;
      response.set_header("Sec-WebSocket-Extensions", accepted->response);
    }
  }
  response.body() = Body(std::make_shared<WebSocketUpgrade>(
      WebSocketUpgrade{std::move(serve), std::move(options), upgrade.subprotocol, deflate}));
  return response;
}

Response accept_websocket(const Request& request, WebSocketFunction serve,
                          std::shared_ptr<const WebSocketOptions> options) {
  static const auto defaults = std::make_shared<const WebSocketOptions>();
  if (options == nullptr) options = defaults;
  const WsUpgrade upgrade = check_websocket_request(request.head(), request.version(), *options,
                                                    request.tls() != nullptr);
  if (upgrade.verdict != WsVerdict::accepted) {
    return websocket_rejection(upgrade.verdict, request.version());
  }
  return websocket_acceptance(request.head(), upgrade, std::move(serve), std::move(options));
}

std::optional<WsChoice> check_websocket_response(const ReceivedResponseHead& head,
                                                 std::string_view key,
                                                 std::span<const std::string_view> subprotocols,
                                                 const WebSocketCompression* compression) noexcept {
  const bool is_http2 = key.empty();
  const bool accepted = is_http2 ? code_of(head.status()) / 100 == 2 : accepts_upgrade(head, key);
  if (!accepted) return std::nullopt;
  const SingleHeader chosen = find_single(head, "sec-websocket-protocol");
  const SingleHeader extensions = find_single(head, "sec-websocket-extensions");
  if (chosen.count > 1 || (chosen.count == 1 && !contains(subprotocols, chosen.value))) {
    return std::nullopt;
  }
  WsChoice choice{.subprotocol = chosen.value};
  if (extensions.count == 0) return choice;
  if (extensions.count != 1 || compression == nullptr) return std::nullopt;
  choice.deflate = check_deflate_response(extensions.value, *compression);
  if (!choice.deflate) return std::nullopt;
  return choice;
}

}  // namespace weir::http
