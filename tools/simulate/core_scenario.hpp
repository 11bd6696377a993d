// Exercises messages between cores: mailboxes, broadcasts, calls to other cores and to the pool,
// some of them cancelled.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/runtime/messaging/broadcast.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

/// The test requires these rules:
/// - a message that was sent is received once, in the order of its sender;
/// - a message that was not sent is not received;
/// - the mailbox never holds more than its capacity;
/// - broadcast values arrive in order, every core gets the last value, and each loss is reported;
/// - a call returns its own result or is cancelled.
/// Threads: those of one World.
/// Lifetime: outlives the run of its cores.
class CoreScenario {
 public:
  explicit CoreScenario(unsigned cores) : sent_(cores), received_(cores) {}

  /// Runs on each core.
  Task<> run(Scope& scope);
  std::string find_violation() const;
  /// Returns the number of received messages and finished calls.
  std::size_t done() const noexcept { return done_; }

 private:
  struct Message {
    unsigned sender;
    unsigned number;
  };

  Task<> send_messages(loop::PlatformClock& clock, unsigned core);
  Task<> receive_messages(loop::PlatformClock& clock);
  Task<> publish(loop::PlatformClock& clock);
  Task<> receive_news(loop::PlatformClock& clock, Broadcast<unsigned>::Subscription news);
  Task<> call_others(loop::PlatformClock& clock);
  Task<> call_pool(Loop& loop);
  static void sender_ends(CoreScenario* scenario);
  void check_result(const Result<unsigned>& result, unsigned argument, std::string_view whose);

  void check_capacity();

  static constexpr std::size_t mailbox_capacity = 4;

  Mailbox<Message> mailbox_{MailboxOptions{.capacity = mailbox_capacity}};
  Broadcast<unsigned> news_{BroadcastOptions{.capacity = 8}};
  std::vector<std::vector<unsigned>> sent_;  // numbers of the messages by sending core
  std::vector<std::vector<unsigned>> received_;
  std::size_t senders_ended_ = 0;
  std::size_t done_ = 0;
  std::string violation_;
};

}  // namespace weir::simulate
