// Cases about WebSockets (RFC 6455): handshakes, frames and floods of hostile clients.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/probe.hpp"
#include "tools/weir/check/scripts.hpp"
#include "tools/weir/check/websocket_wire.hpp"
#include "weir/compression/raw_deflate.hpp"

namespace weir::check {
namespace {

using namespace std::string_literals;

constexpr int fin = 0x80;
constexpr int rsv1 = 0x40;
constexpr int continuation = 0;
constexpr int text = 1;
constexpr int binary = 2;
constexpr int close = 8;
constexpr int ping = 9;
constexpr int pong = 10;

// Handshakes.

struct HandshakeCase {
  std::string_view name;
  std::string_view why;
  std::string_view fields;    ///< the header lines, without Host
  std::vector<int> statuses;  ///< the statuses that pass; any 4xx if empty
};

const std::vector<HandshakeCase>& handshake_cases() {
  static const std::vector<HandshakeCase> cases{
      {"version",
       "version 8 of the protocol",
       "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\n"
       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
       {426, 400}},
      {"no-version",
       "a handshake without a version",
       "Connection: Upgrade\r\nUpgrade: websocket\r\n"
       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
       {}},
      {"no-key",
       "a handshake without a key",
       "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
       {}},
      {"short-key",
       "a key of 8 bytes",
       "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
       "Sec-WebSocket-Key: c2hvcnRrZXk=\r\n",
       {}},
      {"two-keys",
       "two keys",
       "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
       {}},
      {"no-connection",
       "no Upgrade in Connection",
       "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
       {}},
      {"foreign-origin",
       "a page of another host",
       "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: https://other.example\r\n",
       {403}},
  };
  return cases;
}

// Frames.

enum class Wanted : std::uint8_t {
  served,   ///< a pong for the ping behind the frames
  failed,   ///< the connection ends, with the code if there is a Close
  bounded,  ///< either; the server serves others and holds little
};

struct FrameCase {
  std::string_view name;
  std::string_view why;
  std::string (*frames)();
  Wanted wanted = Wanted::failed;
  int code = 1002;
};

std::string number(std::uint64_t value, int size) {
  std::string bytes;
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
    bytes += static_cast<char>(value >> static_cast<unsigned>(shift));
  }
  return bytes;
}

/// Returns a frame with a length of any form, and without its payload.
std::string begin_of_frame(int first, int length_code, const std::string& length) {
  return std::string{static_cast<char>(first), static_cast<char>(0x80 | length_code)} + length +
         "abcd";
}

std::string many(std::size_t count, const std::string& frame) {
  std::string all;
  all.reserve(count * frame.size());
  for (std::size_t index = 0; index < count; ++index) all += frame;
  return all;
}

std::string close_with(int code, std::string_view reason = {}) {
  return websocket_frame(fin | close,
                         number(static_cast<std::uint64_t>(code), 2) + std::string(reason));
}

/// Returns a message whose 64 MiB of zeros are compressed to a thousandth of them.
std::string bomb() {
  auto deflater = compression::RawDeflater::make({});
  if (!deflater) return {};
  std::string out;
  const std::string zeros(std::size_t{1} << 20U, '\0');
  std::string room(zeros.size(), '\0');
  auto* const to = reinterpret_cast<std::byte*>(room.data());
  for (int count = 0; count < 64; ++count) {
    const auto done =
        deflater->compress(to_bytes(zeros), {to, room.size()}, compression::Flush::sync);
    out.append(room, 0, done.produced);
  }
  return websocket_frame(fin | rsv1 | binary, out.substr(0, out.size() - 4));
}

constexpr std::array frame_cases{
    FrameCase{"fragments", "a message in two frames, with a ping between them",
              [] {
                return websocket_frame(text, "a") + websocket_frame(fin | ping, "p") +
                       websocket_frame(fin | continuation, "b");
              },
              Wanted::served},
    FrameCase{"empty-fragments", "three fragments without bytes",
              [] {
                return websocket_frame(text) + websocket_frame(continuation) +
                       websocket_frame(fin | continuation);
              },
              Wanted::served},
    FrameCase{"pong", "a pong that nobody asked for",
              [] { return websocket_frame(fin | pong, "p"); }, Wanted::served},
    FrameCase{"no-mask", "a frame without a mask", [] { return "\x81\x01x"s; }},
    FrameCase{"rsv1", "a reserved bit that was not negotiated",
              [] { return websocket_frame(fin | rsv1 | text, "x"); }},
    FrameCase{"rsv3", "another reserved bit",
              [] { return websocket_frame(fin | 0x10 | text, "x"); }},
    FrameCase{"opcode-3", "an unknown opcode", [] { return websocket_frame(fin | 3, "x"); }},
    FrameCase{"opcode-11", "an unknown opcode of a control frame",
              [] { return websocket_frame(fin | 11, "x"); }},
    FrameCase{"long-ping", "a ping of 126 bytes",
              [] { return websocket_frame(fin | ping, std::string(126, 'x')); }},
    FrameCase{"ping-fragment", "a ping in two frames",
              [] { return websocket_frame(ping, "x") + websocket_frame(fin | continuation); }},
    FrameCase{"no-beginning", "a continuation of no message",
              [] { return websocket_frame(fin | continuation, "x"); }},
    FrameCase{"two-messages", "a message within another one",
              [] { return websocket_frame(text, "x") + websocket_frame(fin | text, "y"); }},
    FrameCase{"long-length", "a length of 1 in two bytes",
              [] { return begin_of_frame(fin | text, 126, number(1, 2)) + "x"; }},
    FrameCase{
        "longer-length", "a length of 300 in eight bytes",
        [] { return begin_of_frame(fin | text, 127, number(300, 8)) + std::string(300, 'x'); }},
    FrameCase{"negative-length", "a length with the highest bit",
              [] { return begin_of_frame(fin | text, 127, number(std::uint64_t{1} << 63U, 8)); }},
    FrameCase{"huge-length", "a message of 4 EiB is announced",
              [] { return begin_of_frame(fin | text, 127, number(std::uint64_t{1} << 62U, 8)); },
              Wanted::failed, 1009},
    FrameCase{"text", "a text that is not UTF-8",
              [] { return websocket_frame(fin | text, "a\xed\xa0\x80"); }, Wanted::failed, 1007},
    FrameCase{
        "text-end", "a text that ends within a character",
        [] { return websocket_frame(text, "\xe2\x82") + websocket_frame(fin | continuation); },
        Wanted::failed, 1007},
    FrameCase{"close-1", "a Close with one byte",
              [] { return websocket_frame(fin | close, "\x03"); }},
    FrameCase{"close-1005", "a Close with a code that is never sent",
              [] { return close_with(1005); }},
    FrameCase{"close-999", "a Close with a code below 1000", [] { return close_with(999); }},
    FrameCase{"close-5000", "a Close with a code above 4999", [] { return close_with(5000); }},
    FrameCase{"close-reason", "a Close with a reason that is not UTF-8",
              [] { return close_with(1000, "\xff"); }, Wanted::failed, 1007},
    FrameCase{"close", "a Close with a code of an application", [] { return close_with(4000); },
              Wanted::failed, 4000},
    FrameCase{"fragment-flood", "131,072 fragments of one byte",
              [] {
                return websocket_frame(binary, "x") +
                       many(131'070, websocket_frame(continuation, "x")) +
                       websocket_frame(fin | continuation, "x");
              },
              Wanted::bounded},
    FrameCase{"ping-flood", "20,000 pings of 125 bytes",
              [] { return many(20'000, websocket_frame(fin | ping, std::string(125, 'p'))); },
              Wanted::bounded},
    FrameCase{"empty-flood", "131,072 fragments without bytes",
              [] { return websocket_frame(binary) + many(131'071, websocket_frame(continuation)); },
              Wanted::bounded},
};
constexpr FrameCase bomb_case{"bomb", "64 MiB of zeros, compressed", bomb, Wanted::failed, 1009};

std::string_view row_name(const Case& test_case) {
  return std::string_view(test_case.name).substr(sizeof("websocket"));
}

template <class Rows>
const auto& row_of(const Rows& rows, const Case& test_case) {
  return *std::ranges::find(rows, row_name(test_case), [](const auto& row) { return row.name; });
}

std::string in_words(const FrameCase& row) {
  switch (row.wanted) {
    case Wanted::served:
      return "a pong";
    case Wanted::failed:
      return "the connection ends, with " + std::to_string(row.code) + " or without a Close";
    case Wanted::bounded:
      break;
  }
  return "a pong, or the end of the connection; others are served";
}

Verdict evaluate(const CheckTarget& target, const FrameCase& row, const WebSocketWire& wire) {
  const std::string expected = in_words(row);
  const std::string actual = wire.describe();
  const bool ended = wire.is_closed() && !wire.answered();
  switch (row.wanted) {
    case Wanted::served:
      return wire.answered() ? passed(expected, actual) : failed(expected, actual);
    case Wanted::bounded:
      return wire.answered() || ended ? passed(expected, actual) : failed(expected, actual);
    case Wanted::failed:
      break;
  }
  if (!ended) return failed(expected, actual);
  if (!wire.close_code() || *wire.close_code() == row.code || target.lenient) {
    return passed(expected, actual);
  }
  return failed(expected, actual + " (--lenient accepts it)");
}

/// Opens a WebSocket, sends the frames of a case and a last ping, and probes the server if the case
/// is a flood.
Task<Verdict> check_row(const CheckTarget& target, const FrameCase& row, std::string request) {
  const std::string frames = row.frames();
  const std::string bytes = request + frames + websocket_frame(fin | ping, websocket_last_ping);
  WebSocketWire wire(target);
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(bytes, target.timeout);
  if (auto verdict = wire.verdict_without_websocket(in_words(row))) {
    co_return with_sent(*std::move(verdict), bytes);
  }
  Verdict verdict = evaluate(target, row, wire);
  if (verdict.kind == VerdictKind::passed && row.wanted == Wanted::bounded) {
    const std::string trouble = co_await probe(target);
    if (!trouble.empty()) verdict = failed(in_words(row), "a GET behind the flood got: " + trouble);
  }
  co_return with_sent(std::move(verdict), bytes);
}

Task<Verdict> check_frames(const CheckTarget& target, const Case& test_case) {
  return check_row(target, row_of(frame_cases, test_case), websocket_request(target));
}

/// Sends the bomb if the server compresses messages.
Task<Verdict> check_bomb(const CheckTarget& target, const Case&) {
  std::string request = deflating_websocket_request(target);
  const std::string expected = in_words(bomb_case);
  if (!compression::has_raw_deflate()) {
    co_return with_sent(not_applicable(expected, "this build has no zlib"), request);
  }
  WebSocketWire asking(target);
  const bool opened = co_await asking.open();
  const std::string last = websocket_frame(fin | ping, websocket_last_ping);
  if (opened) co_await asking.exchange(request + last, target.timeout);
  if (auto verdict = asking.verdict_without_websocket(expected)) {
    co_return with_sent(*std::move(verdict), request);
  }
  if (!asking.deflates()) {
    co_return with_sent(not_applicable(expected, "the server does not compress"), request);
  }
  co_return co_await check_row(target, bomb_case, std::move(request));
}

/// Checks that a handshake is refused, if the path is a WebSocket.
Task<Verdict> check_handshake(const CheckTarget& target, const Case& test_case) {
  const HandshakeCase& row = row_of(handshake_cases(), test_case);
  const std::string request = websocket_request(target, row.fields);
  std::string expected = row.statuses.empty() ? "4xx" : "";
  for (const int each : row.statuses) {
    expected += (expected.empty() ? "" : " or ") + std::to_string(each);
  }
  WebSocketWire correct(target);
  const bool opened = co_await correct.open();
  const std::string last = websocket_frame(fin | ping, websocket_last_ping);
  if (opened) co_await correct.exchange(websocket_request(target) + last, target.timeout);
  if (auto verdict = correct.verdict_without_websocket(expected)) {
    co_return with_sent(*std::move(verdict), request);
  }
  WebSocketWire wire(target);
  if (co_await wire.open()) co_await wire.exchange(request, target.timeout);
  const bool right = row.statuses.empty()
                         ? wire.status() >= 400 && wire.status() < 500
                         : std::ranges::find(row.statuses, wire.status()) != row.statuses.end();
  co_return with_sent(right ? passed(expected, wire.describe()) : failed(expected, wire.describe()),
                      request);
}

}  // namespace

void add_websocket_scripts(CaseRegistry& registry) {
  for (const HandshakeCase& each : handshake_cases()) {
    registry.add("websocket", each.name, each.why, check_handshake);
  }
  for (const FrameCase& each : frame_cases) {
    registry.add("websocket", each.name, each.why, check_frames).pace =
        each.wanted == Wanted::bounded ? CasePace::alone : CasePace::usual;
  }
  registry.add("websocket", bomb_case.name, bomb_case.why, check_bomb).pace = CasePace::alone;
}

}  // namespace weir::check
