// Messages between the processes of one simulated machine during a hot restart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weir/loop/detail/process/handover_connection.hpp"
#include "weir/testing/network/detail/memory_endpoint.hpp"

namespace weir::sim {

class SimHandoverEndpoint;

/// A SimPipe connects an older and a newer process. A sent message can be received immediately,
/// as on a Unix socket, but the thread of the other process may run later.
/// Threads: one at a time.
class SimPipe {
 public:
  enum class Side : std::uint8_t { older, newer };
  struct Message {
    loop::HandoverMessage message;
    /// One socket for each that `message` names.
    std::vector<std::shared_ptr<MemoryEndpoint>> sockets = {};
  };

  /// Sets the endpoint that is woken when a message or the end arrives on `side`.
  void join(Side side, SimHandoverEndpoint& endpoint) noexcept { at(side).endpoint = &endpoint; }
  /// Sends `queued` to the other side. Returns false if the pipe is closed or the other side does
  /// not receive any more.
  bool send(Side from, Message queued);
  /// Takes the oldest message for `side`; nullopt if there is none.
  std::optional<Message> receive(Side side);
  /// Returns true if no message can arrive on `side` any more.
  bool ended(Side side) const noexcept {
    return at(side).closed || at(side).closed_for_reading || at(other(side)).closed;
  }
  /// Rejects all messages to `side` from now on.
  void stop_listening(Side side) noexcept { at(side).closed_for_reading = true; }
  void leave(Side side);

 private:
  struct End {
    SimHandoverEndpoint* endpoint = nullptr;
    std::deque<Message> messages;
    bool closed_for_reading = false;
    bool closed = false;
  };
  static Side other(Side side) noexcept { return side == Side::older ? Side::newer : Side::older; }
  End& at(Side side) noexcept { return ends_[static_cast<std::size_t>(side)]; }
  const End& at(Side side) const noexcept { return ends_[static_cast<std::size_t>(side)]; }

  std::array<End, 2> ends_;
};

/// One side of a SimPipe; see HandoverConnection. A dead process cannot send, and receives the
/// end of the connection.
class SimHandoverConnection final : public loop::HandoverConnection {
 public:
  SimHandoverConnection(SimHandoverEndpoint& endpoint, std::shared_ptr<SimPipe> pipe,
                        SimPipe::Side side);
  ~SimHandoverConnection() override;
  SimHandoverConnection(const SimHandoverConnection&) = delete;
  SimHandoverConnection& operator=(const SimHandoverConnection&) = delete;

  /// Returns an empty text: all processes of a machine belong to one user.
  std::string peer_rejection_reason() override { return {}; }
  ReceiveResult receive(Instant until) override;
  void shut_down_receiving() noexcept override { pipe_->stop_listening(side_); }
  void leave() { pipe_->leave(side_); }

 private:
  Result<> do_send(const loop::HandoverMessage& message, std::span<const int> sockets) override;
  ReceiveResult open(SimPipe::Message queued);

  SimHandoverEndpoint& endpoint_;
  std::shared_ptr<SimPipe> pipe_;
  SimPipe::Side side_;
};

}  // namespace weir::sim
