// A WebSocket session for tests, which is fed with frames.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/test/ws_frames.hpp"
#include "weir/http/ws/detail/session.hpp"

namespace weir::http::ws {

/// A WsDriver feeds a session, and makes a text of its events. A text of one message has its parts
/// joined, so that it does not depend on cuts: "text [..]". Other events are in angle brackets.
class WsDriver {
 public:
  explicit WsDriver(WsRole role = WsRole::server, const WebSocketLimits& limits = {})
      : limits_(limits), role_(role), session_(role, limits_) {}

  WsSession& session() { return session_; }
  std::string frame(int first, std::string_view payload = {}) const {
    return frame_to(role_, first, payload);
  }

  /// Feeds input in pieces of `step` bytes, each in memory of exactly its size. Returns the text of
  /// its events.
  std::string feed(std::string_view input, std::size_t step = whole) {
    std::string events;
    for (std::size_t at = 0; at < input.size(); at += step) {
      std::string piece(input.substr(at, step));
      piece.shrink_to_fit();
      auto* const bytes = reinterpret_cast<std::byte*>(piece.data());
      MutableBytes rest(bytes, piece.size());
      for (;;) {
        const WsEvent event = session_.next(rest);
        if (event.consumed > rest.size()) {
          ADD_FAILURE() << "too much was consumed";
          return events;
        }
        rest = rest.subspan(event.consumed);
        if (event.kind == WsEvent::Kind::need_more) break;
        events += describe(event);
        if (answers) sent_ += take_control();
        if (event.kind == WsEvent::Kind::failed) return events;
      }
      EXPECT_TRUE(rest.empty());
    }
    return events;
  }

  /// Returns the text of the frames that the session has to send, and of those that it has sent.
  std::string take_sent() {
    const std::string control = take_control();
    return std::exchange(sent_, {}) + control;
  }

  /// Returns the mask of the frames that this session sends.
  std::optional<WsMaskKey> mask() const {
    if (role_ == WsRole::server) return std::nullopt;
    WsMaskKey key;
    std::ranges::transform(mask_key, key.begin(), [](char each) { return std::byte(each); });
    return key;
  }

  /// Returns the text of a control frame that the session has written.
  std::string describe_frame(std::string_view frame) const {
    const bool is_masked = role_ == WsRole::client;
    const int first = static_cast<unsigned char>(frame[0]);
    const int second = static_cast<unsigned char>(frame[1]);
    const std::size_t header_size = is_masked ? 6 : 2;
    if ((second & 0x80) != (is_masked ? 0x80 : 0)) return "<wrong mask>";
    if ((second & 0x7F) != static_cast<int>(frame.size() - header_size)) return "<wrong length>";
    std::string payload(frame.substr(header_size));
    if (is_masked) payload = masked(payload, frame.substr(2, 4));
    if (first == (fin | ping_frame)) return "ping [" + payload + "]";
    if (first == (fin | pong_frame)) return "pong [" + payload + "]";
    if (first != (fin | close_frame)) return "<wrong opcode>";
    if (payload.empty()) return "close []";
    const int code =
        static_cast<unsigned char>(payload[0]) << 8 | static_cast<unsigned char>(payload[1]);
    return "close [" + std::to_string(code) + " " + payload.substr(2) + "]";
  }

  bool answers = false;  // writes control frames after each event

 private:
  static std::string describe(const WsEvent& event) {
    using Kind = WsEvent::Kind;
    const std::string bytes(to_text(event.bytes));
    const std::string code = std::to_string(static_cast<int>(event.code));
    switch (event.kind) {
      case Kind::need_more:
        break;
      case Kind::message:
        return (event.begins ? event.is_text ? "text [" : "binary [" : "") + bytes +
               (event.ends ? "]" : "");
      case Kind::ping:
        return "<ping " + bytes + ">";
      case Kind::pong:
        return "<pong " + bytes + ">";
      case Kind::close:
        return "<close " + code + " " + bytes + ">";
      case Kind::failed:
        return "<failed " + code + ">";
    }
    return "";
  }

  std::string take_control() {
    std::string out;
    while (session_.has_control()) {
      char room[ws_control_frame_max];
      const char* const end = session_.write_control(mask(), room);
      out += describe_frame({room, static_cast<std::size_t>(end - room)});
    }
    return out;
  }

  WebSocketLimits limits_;
  WsRole role_;
  WsSession session_;
  std::string sent_;
};

/// Expects these events of `input` for both roles if `make(role)` returns the input, whole and for
/// each step.
template <class Make>
void expect_events(const Make& make, std::string_view expected,
                   const WebSocketLimits& limits = {}) {
  for (const WsRole role : {WsRole::server, WsRole::client}) {
    const std::string input = make(role);
    for (const std::size_t step : {whole, std::size_t{1}, std::size_t{2}, std::size_t{3},
                                   std::size_t{5}, std::size_t{7}, std::size_t{64}}) {
      WsDriver driver(role, limits);
      ASSERT_EQ(driver.feed(input, step), expected)
          << "role " << static_cast<int>(role) << ", step " << step;
    }
    // Each cut into two pieces; only the first ones of a large input.
    const std::size_t cuts = input.size() > 1'000 ? 20 : input.size();
    for (std::size_t cut = 0; cut <= cuts; ++cut) {
      WsDriver driver(role, limits);
      std::string events = driver.feed(input.substr(0, cut));
      if (!driver.session().failed() || !events.ends_with('>')) {
        events += driver.feed(input.substr(cut));
      }
      ASSERT_EQ(events, expected) << "role " << static_cast<int>(role) << ", cut " << cut;
    }
  }
}

}  // namespace weir::http::ws
