// What cores do with each other: letters in mailboxes, news, calls to other cores and to the pool,
// each given up now and then.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weir/runtime/messaging/broadcast.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/task/scope.hpp"

namespace weir::simulate {

/// What must hold: a letter that was sent is received, once, in the order of its sender's; one that
/// was not sent is not; news come in order, and the last one to everybody; a call gives its own
/// result or is given up.
/// Threads: those of one World. Lifetime: outlives the run of its cores.
class CorePlay {
 public:
  explicit CorePlay(unsigned cores) : sent_(cores), received_(cores) {}

  /// The body of each core.
  Task<> run(Scope& scope);
  std::string find_fault() const;
  /// Letters and calls.
  std::size_t done() const noexcept { return done_; }

 private:
  struct Letter {
    unsigned sender;
    unsigned number;
  };

  Task<> send_letters(Host& host, unsigned core);
  Task<> receive_letters(Host& host);
  Task<> publish(Host& host);
  Task<> hear(Host& host, Broadcast<unsigned>::Subscription news);
  Task<> call_others(Host& host);
  Task<> call_pool(Loop& loop);
  static void sender_ends(CorePlay* play);
  void judge(const Result<unsigned>& result, unsigned argument, std::string_view whose);

  Mailbox<Letter> mailbox_{MailboxOptions{.capacity = 4}};
  Broadcast<unsigned> news_{BroadcastOptions{.capacity = 8}};
  std::vector<std::vector<unsigned>> sent_;  // by core
  std::vector<std::vector<unsigned>> received_;
  std::size_t senders_ended_ = 0;
  std::size_t done_ = 0;
  std::string fault_;
};

}  // namespace weir::simulate
