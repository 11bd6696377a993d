// The protocol of a hot restart: what an older and a newer process send, and do about each
// message.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/handover.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/detail/process/handover_connection.hpp"

namespace weir::loop {

/// A HandoverProtocol is one process' part in a hot restart. It begins with the request to an
/// older process and ends when a newer process has the sockets. Handover describes the order of
/// the steps. The protocol is the same on every platform: only the endpoint and the thread that
/// calls run() differ.
/// Threads: begin(), take_sockets() and run() one after the other; the other functions any.
/// Lifetime: its platform and its endpoint outlive it.
class HandoverProtocol {
 public:
  HandoverProtocol(Platform& platform, const HandoverOptions& options, HandoverEndpoint& endpoint)
      : platform_(platform), options_(options), endpoint_(endpoint) {}

  /// Takes the sockets that an older process offers, or makes this process the first at the
  /// endpoint. Waits meanwhile.
  /// Returns: the reason of a failure, for log lines; empty if there was none.
  std::string begin();
  HandoverDelegate::Sockets take_sockets() { return std::move(taken_); }
  std::string take_state() { return std::move(taken_state_); }
  /// Runs the protocol. Returns when newer processes expect nothing more of this one.
  void run(HandoverDelegate& delegate);

  // See Handover.
  void on_accepting() noexcept;
  void on_socket_stopped() noexcept { endpoint_.notify(); }
  void stop() noexcept;

 private:
  using Kind = HandoverMessage::Kind;
  using ReceiveResult = HandoverConnection::ReceiveResult;

  std::string open_endpoint();
  std::string request_sockets(bool& gone);
  std::string receive_sockets();

  bool take_over();
  bool wait_until_accepting();
  bool wait_for_transfer();
  bool abort_takeover(std::string why);

  void serve_newer_processes();
  bool hand_over(HandoverConnection& newer);
  bool check_request(HandoverConnection& newer);
  bool offer(HandoverConnection& newer, const HandoverDelegate::Sockets& sockets);
  bool send_sockets(HandoverConnection& newer, const HandoverDelegate::Sockets& sockets);
  void wait_until_stopped(const HandoverDelegate::Sockets& sockets);

  ReceiveResult receive_unless_stopping(HandoverConnection& connection, Instant until);
  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  Instant deadline_after(Duration length) const { return after(platform_.now(), length); }
  void log(const std::string& what) { platform_.log("weir: " + what); }

  Platform& platform_;
  HandoverOptions options_;
  HandoverEndpoint& endpoint_;
  std::atomic<bool> accepting_{false};
  std::atomic<bool> stopping_{false};
  std::unique_ptr<HandoverConnection> older_;
  HandoverDelegate::Sockets taken_;
  std::string taken_state_;
  HandoverDelegate* delegate_ = nullptr;
};

/// Returns the text that begins every error text of a failed start.
inline std::string takeover_error_prefix(const HandoverOptions& options) {
  return "cannot take sockets over at '" + options.path + "': ";
}

}  // namespace weir::loop
