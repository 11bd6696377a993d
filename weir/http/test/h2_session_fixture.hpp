// A session under test: it accepts each stream, records the events, and decodes what is sent.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/detail/h2/session.hpp"
#include "weir/http/test/h2_frames.hpp"

namespace weir::http {

/// A SessionDriver is the carrier of one session. By default it consumes all data.
class SessionDriver {
 public:
  explicit SessionDriver(const H2Limits& limits = {}, H2Role role = H2Role::server)
      : limits_(limits), session_(role, limits_, now_) {
    session_.start();
    take_sent();
  }
  ~SessionDriver() {
    for (auto& [id, stream] : streams_) session_.release(*stream);
  }

  H2Session& session() { return session_; }
  H2Stream& stream(std::uint32_t id) { return *streams_.at(id); }
  bool has_stream(std::uint32_t id) const { return streams_.contains(id); }
  void pass(Duration time) { now_ += time; }

  /// Sends the preface and empty SETTINGS of a client, and drops the answer.
  void handshake(std::string_view entries = {}) {
    feed("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frames::settings(entries) +
         frames::frame(FrameType::settings, FrameFlag::ack, 0));
    EXPECT_EQ(take_events(), "settings\n");
    take_sent();
  }
  /// Feeds input in pieces of `step` bytes, up to a failure or delay.
  void feed(std::string_view input, std::size_t step = 1'000'000) {
    for (std::size_t at = 0; at < input.size();) {
      // The address sanitizer reports a read beyond a vector.
      const std::string_view text = input.substr(at, step);
      const std::vector<char> piece(text.begin(), text.end());
      Bytes bytes = to_bytes({piece.data(), piece.size()});
      for (;;) {
        const H2Event event = session_.next(bytes, now_);
        at += event.consumed;
        bytes = bytes.subspan(event.consumed);
        if (event.kind == H2Event::Kind::need_more) break;
        handle(event);
        if (event.kind == H2Event::Kind::failed) return;
        if (event.kind != H2Event::Kind::delay) continue;
        delays += 1;
        now_ += event.delay;
      }
      EXPECT_TRUE(bytes.empty());
    }
  }
  /// Returns one line for each event since the last call.
  std::string take_events() { return std::exchange(events_, {}); }
  /// Returns one line for each frame that was sent since the last call.
  std::string take_sent() {
    const Buffer sent = session_.take_output();
    return frames::read_frames(sent.text());
  }
  /// Answers a request with a head of 1 byte and a body.
  void answer(std::uint32_t id, std::string_view body = {}) {
    const auto write = [](char* out) {
      *out = '\x88';
      return out + 1;
    };
    session_.send_headers(stream(id), 1, write, body.empty());
    if (!body.empty()) {
      EXPECT_EQ(session_.send_data(stream(id), to_bytes(body), true), body.size());
    }
  }
  /// Releases a stream, as the carrier does when its handler has ended.
  void release(std::uint32_t id) {
    session_.release(stream(id));
    streams_.erase(id);
  }
  /// Releases all streams that are closed.
  void release_closed() {
    for (auto at = streams_.begin(); at != streams_.end();) {
      if (!at->second->closed()) {
        ++at;
        continue;
      }
      session_.release(*at->second);
      at = streams_.erase(at);
    }
  }

  bool consumes = true;                                   ///< consumes data when it arrives
  bool releases = false;                                  ///< releases streams that were reset
  bool records = true;                                    ///< records events
  std::uint64_t length = static_cast<std::uint64_t>(-1);  ///< Content-Length of all requests
  std::size_t delays = 0;

 private:
  void handle(const H2Event& event) {
    static constexpr const char* names[] = {"need_more", "open",   "headers", "trailers",
                                            "discarded", "data",   "reset",   "settings",
                                            "ping_ack",  "goaway", "delay",   "failed"};
    using Kind = H2Event::Kind;
    if (records) {
      events_ += names[static_cast<std::size_t>(event.kind)];
      if (event.stream_id != 0) events_ += " " + std::to_string(event.stream_id);
      if (!event.bytes.empty()) events_ += " [" + std::string(to_text(event.bytes)) + "]";
      if (event.end_stream) events_ += " end";
      if (event.error != H2Error{}) events_ += " e" + std::to_string(static_cast<int>(event.error));
      events_ += "\n";
    }
    if (event.kind == Kind::open) {
      auto stream = std::make_unique<H2Stream>();
      const bool accepted = session_.accept(*stream, length);
      if (records && !accepted) events_ += "not accepted\n";
      streams_[event.stream_id] = std::move(stream);
    }
    if (event.kind == Kind::data && consumes) session_.consume(*event.stream, event.bytes.size());
    if (releases && event.stream != nullptr && event.stream->closed()) release(event.stream->id());
  }

  Instant now_{};
  H2Limits limits_;
  H2Session session_;
  std::map<std::uint32_t, std::unique_ptr<H2Stream>> streams_;
  std::string events_;
};

}  // namespace weir::http
