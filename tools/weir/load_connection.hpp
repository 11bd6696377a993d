// One connection of a load: asks, reads and verifies, again and again.
#pragma once

#include <cstdint>
#include <optional>

#include "tools/weir/load.hpp"
#include "tools/weir/response_reader.hpp"
#include "weir/net/tcp.hpp"

namespace weir::bench {

class LoadWorker;

/// Threads: its worker's loop. Lifetime: its worker's; run() has ended before.
class LoadConnection {
 public:
  LoadConnection(LoadWorker& worker, unsigned index) noexcept;

  /// Connects, once; what goes wrong is counted, and run() tries again.
  Task<> open();
  /// Puts its load on the server until the worker is over. Opens itself where it is not open.
  Task<> run();
  /// Gives up on what has been waited for since before `since`: it has timed out.
  void give_up_before(Instant since);
  /// Does not wait for anything that is under way.
  void abandon();

 private:
  enum class Exchange : std::uint8_t { done, over };

  Task<> run_in_turns();
  Task<> run_on_schedule();
  Task<> run_each_anew();
  /// Sends `count` requests and reads their responses. `over`: the connection is.
  Task<Exchange> exchange(unsigned count);
  /// After the one response of a connection that the server is to close.
  Task<> read_end();

  std::string_view requests(unsigned count);
  void answered(unsigned count);
  /// What is outstanding will not be answered; `count` is where that is counted.
  void lose(std::uint64_t& count);
  /// At a fixed rate, when the time is over: `next` was due, and what follows it until the end.
  void count_unsent(Instant next);
  Exchange broken(std::error_code error);
  Exchange faulty();
  void close();
  Task<> pause();

  LoadWorker& worker_;
  unsigned index_;
  std::optional<tcp::Stream> stream_;
  ResponseReader reader_;
  std::string numbered_;      // requests with their numbers
  std::uint64_t number_ = 0;  // of the next request
  unsigned outstanding_ = 0;
  Instant due_{};        // when the oldest request without an answer was sent, or was to be
  Duration interval_{};  // between that and the next; zero: all at once
  Instant waiting_since_ = never;
  bool timed_out_ = false;
  bool abandoned_ = false;
  bool failed_ = false;  // since the last pause
};

}  // namespace weir::bench
