// One connection to the server under test.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include "tools/weir/check/check_target.hpp"
#include "tools/weir/check/response_parser.hpp"
#include "tools/weir/check/wire.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

/// The condition that ends receiving: the responses have arrived, or the timeout has passed.
struct StopCondition {
  std::size_t final_count = 0;  ///< number of final responses on the connection; 0: no condition
  bool interim = false;         ///< true: an interim response also ends receiving
  Duration wait_timeout{};
};

/// A CheckConnection sends bytes to the target and parses its responses.
class CheckConnection final : public Wire {
 public:
  explicit CheckConnection(const CheckTarget& target) noexcept : Wire(target) {}

  /// Connects to the target, with the TLS handshake if the target has TLS.
  /// Returns: true if connected; else outcome() has the reason.
  /// Cancel: returns false, like a failure to connect.
  Task<bool> open();
  /// Sets the method of the next request whose method is not set yet. Other requests count as
  /// GET.
  void expect_response_to(std::string_view method) { reader_.expect_response_to(method); }
  /// Sends `bytes` and receives at the same time, until `until` is met. Bytes that are unsent by
  /// then are dropped.
  /// Cancel: ends early.
  Task<> send_and_receive(std::string_view bytes, StopCondition until);
  /// Receives until `until` is met.
  /// Cancel: ends early.
  Task<> receive(StopCondition until);
  /// Receives until the connection has ended, for at most `wait_timeout`.
  /// Returns: true if it has ended.
  /// Cancel: ends early.
  Task<bool> wait_for_close(Duration wait_timeout);
  /// Ends sending on this side, with close_notify if the target has TLS. A later close no longer
  /// counts as a close by the server.
  void finish_writing();
  using Wire::close;

  std::size_t final_count() const noexcept { return reader_.final_count(); }
  const ResponseParser& reader() const noexcept { return reader_; }
  /// Returns the outcome so far.
  Outcome outcome() const;

 private:
  bool is_done() const noexcept override;
  void on_input(Buffer input) override { reader_.read(input.text()); }
  void on_end(std::error_code error) override;

  ResponseParser reader_;
  StopCondition until_;
  bool writing_finished_ = false;  // true: this side has ended sending
  bool closed_by_server_ = false;
  bool reset_ = false;
  bool truncated_ = false;
};

}  // namespace weir::check
