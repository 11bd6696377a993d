// WebSocketWire: a connection to a WebSocket, for raw frames.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tools/weir/check/wire.hpp"
#include "weir/http/ws/detail/frame.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

/// The payload of the ping whose answer ends the wait for a server.
inline constexpr std::string_view websocket_last_ping = "last";

/// Returns a frame of a client: the first byte, the shortest length, a mask and the payload.
std::string websocket_frame(int first, std::string_view payload = {});
/// Returns the request for a WebSocket at the target's `websocket_path`. `fields` replace those of
/// the handshake, with their line ends.
std::string websocket_request(const CheckTarget& target,
                              std::optional<std::string_view> fields = std::nullopt);

/// Returns a request that also offers permessage-deflate.
std::string deflating_websocket_request(const CheckTarget& target);

/// A WebSocketWire sends the bytes of a case, and reads the response and the frames of the server.
class WebSocketWire final : public Wire {
 public:
  explicit WebSocketWire(const CheckTarget& target) noexcept : Wire(target) {}

  /// Connects. Cancel: returns false, like a failure to connect.
  Task<bool> open();
  /// Sends and receives at the same time, for at most `wait_timeout`. It ends earlier if the server
  /// refuses the WebSocket, answers the last ping, or ends the connection.
  /// Cancel: ends early.
  Task<> exchange(std::string_view bytes, Duration wait_timeout);

  /// Returns the status of the response; 0: there is none.
  int status() const noexcept { return status_; }
  /// Returns true if the response accepts the WebSocket with the right Sec-WebSocket-Accept.
  bool accepted() const noexcept { return accepted_; }
  /// Returns true if permessage-deflate was accepted.
  bool deflates() const noexcept { return deflates_; }
  /// Returns true if the last ping was answered.
  bool answered() const noexcept { return answered_; }
  /// Returns the code of the Close of the server; 0: it has none; std::nullopt: there is no Close.
  std::optional<int> close_code() const noexcept { return close_code_; }
  /// Returns the verdict on a server whose path is no WebSocket; nullopt: it is one.
  std::optional<Verdict> verdict_without_websocket(const std::string& expected) const;
  /// Describes what the server did: "101, close 1002, closed".
  std::string describe() const;

 private:
  bool is_done() const noexcept override;
  void on_input(Buffer input) override;
  void read_head();
  void read_frames();

  std::string input_;
  std::optional<http::WsFrameReader> frames_;
  std::optional<int> close_code_;
  int status_ = 0;
  bool accepted_ = false;
  bool deflates_ = false;
  bool answered_ = false;
  bool broken_ = false;  // the server has sent a head or a frame that is not valid
};

}  // namespace weir::check
