// One connection to the server that is checked.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tools/weir/check/response_parser.hpp"
#include "tools/weir/check/check_target.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

/// How long to listen: until one of these has come, or for so long.
struct Until {
  std::size_t finals = 0;  ///< so many final answers, in all; 0: any number
  bool interim = false;    ///< or an interim one
  Duration longest{};
};

/// Threads: its loop's. Lifetime: the site outlives it; no call is under way when it ends.
class Conversation {
 public:
  explicit Conversation(const Site& site) noexcept : site_(site) {}

  /// Connects. False where that failed: the outcome says why.
  /// Cancel: as if it had failed.
  Task<bool> open();
  /// The method of the next request; those that are not told are GET.
  void asked(std::string_view method) { reader_.asked(method); }
  /// Sends, and listens meanwhile and then; what is not sent by the end of that never will be.
  /// Cancel: ends early.
  Task<> ask(std::string_view bytes, Until until);
  /// Listens only.
  /// Cancel: ends early.
  Task<> hear(Until until);
  /// Listens until the server has ended the connection, and says whether it has.
  /// Cancel: ends early.
  Task<bool> hear_end(Duration longest);
  /// Sends without listening, for at most so long; false: not all of it went.
  /// Cancel: ends early.
  Task<bool> send(std::string_view bytes, Duration longest);
  /// Ends this side's sending. What the server does from now on it does not do by itself.
  void finish();
  /// Closes at once; with unread bytes that is a reset.
  void close();

  bool over() const noexcept { return over_; }
  std::size_t finals() const noexcept { return reader_.finals(); }
  const AnswerReader& reader() const noexcept { return reader_; }
  /// How it went so far.
  Outcome outcome() const;

 private:
  Task<> put(std::string_view bytes);
  Task<> hear_then_stop_sending(Until until);
  void take(const Result<Buffer>& input);
  bool heard(const Until& until) const noexcept;

  const Site& site_;
  std::optional<tcp::Stream> stream_;
  AnswerReader reader_;
  std::string failure_;
  bool finished_ = false;  // this side's sending is over
  bool over_ = false;
  bool ended_ = false;
  bool reset_ = false;
};

}  // namespace weir::check
