#include "weir/http/ws/detail/extension.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "weir/compression/raw_deflate.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

constexpr std::string_view extension_name = "permessage-deflate";
constexpr std::string_view server_no_context = "server_no_context_takeover";
constexpr std::string_view client_no_context = "client_no_context_takeover";
constexpr std::string_view server_window = "server_max_window_bits";
constexpr std::string_view client_window = "client_max_window_bits";

enum class Sender : bool { client, server };

/// The parameters of one offer or response, as they are written.
struct Parameters {
  bool server_no_context = false;
  bool client_no_context = false;
  std::optional<int> server_window;
  std::optional<int> client_window;  // deflate_window_max if it has no value
};

/// Removes the text before `separator`, and the separator, from `rest`. A separator in quotes does
/// not count; no value of this extension has an escape. Returns the text without space around it.
std::string_view take_until(char separator, std::string_view& rest) noexcept {
  bool quoted = false;
  std::size_t end = 0;
  for (; end < rest.size() && (quoted || rest[end] != separator); ++end) {
    if (rest[end] == '"') quoted = !quoted;
  }
  const std::string_view text = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return trim(text);
}

/// Reads the bits of a window: a number from 8 to 15 without leading zeros, also in quotes.
std::optional<int> parse_window(std::string_view text) noexcept {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  if (text.empty() || text.size() > 2 || text.front() == '0') return std::nullopt;
  int number = 0;
  for (const char digit : text) {
    if (!is_in(digit, CharClass::digit)) return std::nullopt;
    number = 10 * number + (digit - '0');
  }
  if (number < deflate_window_min || number > deflate_window_max) return std::nullopt;
  return number;
}

/// Adds one parameter. Returns false if it is unknown, repeated or invalid.
bool add_parameter(std::string_view text, Sender sender, Parameters& to) noexcept {
  const bool has_value = text.find('=') != std::string_view::npos;
  const std::string_view name = take_until('=', text);
  const std::string_view value = trim(text);
  const auto add_flag = [&](bool& flag) { return !has_value && !std::exchange(flag, true); };
  if (equals_ignoring_case(name, server_no_context)) return add_flag(to.server_no_context);
  if (equals_ignoring_case(name, client_no_context)) return add_flag(to.client_no_context);
  const auto add_window = [&](std::optional<int>& window) {
    if (window) return false;
    window = parse_window(value);
    return window.has_value();
  };
  if (equals_ignoring_case(name, server_window)) return add_window(to.server_window);
  if (!equals_ignoring_case(name, client_window)) return false;
  if (has_value || to.client_window || sender == Sender::server) {
    return add_window(to.client_window);
  }
  to.client_window = deflate_window_max;
  return true;
}

/// Reads one extension with its parameters. Returns std::nullopt for another extension than
/// permessage-deflate, and for parameters that are not valid.
std::optional<Parameters> parse_extension(std::string_view text, Sender sender) noexcept {
  if (text.ends_with(';')) return std::nullopt;
  if (!equals_ignoring_case(take_until(';', text), extension_name)) return std::nullopt;
  Parameters parameters;
  while (!text.empty()) {
    if (!add_parameter(take_until(';', text), sender, parameters)) return std::nullopt;
  }
  return parameters;
}

WebSocketDeflate::Direction direction(bool has_context, int window_bits) noexcept {
  return {has_context, static_cast<std::uint8_t>(window_bits)};
}

/// Returns the parameters for an offer, or std::nullopt if it is declined.
std::optional<WebSocketDeflate> accept(const Parameters& offer,
                                       const WebSocketCompression& own) noexcept {
  const int server_limit = offer.server_window.value_or(deflate_window_max);
  if (server_limit < deflate_sending_window_min) return std::nullopt;
  WebSocketDeflate agreed;
  const bool sends_context = own.send_window_bits != 0 && !offer.server_no_context;
  agreed.server = direction(
      sends_context, sends_context ? std::min(own.send_window_bits, server_limit) : server_limit);
  // The window of a client that does not name it cannot be limited (RFC 7692 §7.1.2.2).
  const bool limits = offer.client_window && own.receive_window_bits != 0;
  const bool has_room = limits || own.receive_window_bits == deflate_window_max;
  agreed.client = direction(
      has_room && !offer.client_no_context,
      limits ? std::min(own.receive_window_bits, *offer.client_window) : deflate_window_max);
  return agreed;
}

std::string number(std::string_view name, int value) {
  return std::string("; ").append(name).append("=").append(std::to_string(value));
}
std::string flag(std::string_view name) {
  return std::string("; ").append(name);
}

/// Returns the value of the Sec-WebSocket-Extensions of a response.
std::string response(const WebSocketDeflate& agreed, bool names_server_window) {
  std::string text(extension_name);
  if (!agreed.server.has_context) text += flag(server_no_context);
  if (!agreed.client.has_context) text += flag(client_no_context);
  if (names_server_window) text += number(server_window, agreed.server.window_bits);
  if (agreed.client.window_bits != deflate_window_max) {
    text += number(client_window, agreed.client.window_bits);
  }
  return text;
}

bool is_window(int bits) noexcept {
  return bits == 0 || (bits >= deflate_sending_window_min && bits <= deflate_window_max);
}

}  // namespace

bool can_deflate(const WebSocketCompression& own) noexcept {
  return is_window(own.send_window_bits) && is_window(own.receive_window_bits) && own.level >= 1 &&
         own.level <= 9 && compression::has_raw_deflate();
}

std::optional<DeflateAcceptance> accept_deflate(std::string_view offers,
                                                const WebSocketCompression& own) {
  while (!offers.empty()) {
    const std::optional<Parameters> offer =
        parse_extension(take_until(',', offers), Sender::client);
    if (!offer) continue;
    const std::optional<WebSocketDeflate> agreed = accept(*offer, own);
    if (!agreed) continue;
    // A limit of the client is accepted by naming it (RFC 7692 §7.1.2.1).
    const bool names_server_window =
        offer->server_window || agreed->server.window_bits != deflate_window_max;
    return DeflateAcceptance{*agreed, response(*agreed, names_server_window)};
  }
  return std::nullopt;
}

std::string deflate_offer(const WebSocketCompression& own) {
  std::string text(extension_name);
  if (own.receive_window_bits == 0) text += flag(server_no_context);
  if (own.send_window_bits == 0) text += flag(client_no_context);
  if (own.receive_window_bits != 0 && own.receive_window_bits != deflate_window_max) {
    text += number(server_window, own.receive_window_bits);
  }
  const bool limits = own.send_window_bits != 0 && own.send_window_bits != deflate_window_max;
  return text + (limits ? number(client_window, own.send_window_bits) : flag(client_window));
}

std::optional<WebSocketDeflate> check_deflate_response(std::string_view response,
                                                       const WebSocketCompression& own) noexcept {
  const std::string_view extension = take_until(',', response);
  if (!response.empty()) return std::nullopt;
  const std::optional<Parameters> chosen = parse_extension(extension, Sender::server);
  if (!chosen) return std::nullopt;
  const int limit = own.receive_window_bits == 0 ? deflate_window_max : own.receive_window_bits;
  const bool has_context = !chosen->server_no_context;
  if (has_context && own.receive_window_bits == 0) return std::nullopt;
  if (chosen->server_window.value_or(deflate_window_max) > limit) return std::nullopt;
  WebSocketDeflate agreed;
  agreed.server = direction(has_context, chosen->server_window.value_or(deflate_window_max));
  const int allowed = chosen->client_window.value_or(deflate_window_max);
  const bool sends_context = own.send_window_bits != 0 && !chosen->client_no_context;
  agreed.client =
      direction(sends_context, sends_context ? std::min(own.send_window_bits, allowed) : allowed);
  return agreed;
}

}  // namespace weir::http
