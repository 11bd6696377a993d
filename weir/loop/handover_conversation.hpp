// What the processes of one service say to each other when a newer one takes over, and what each
// does about it.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/handover.hpp"
#include "weir/loop/handover_place.hpp"
#include "weir/loop/handover_talk.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir {

/// One process' part, from the moment when it asks an older process to the one when a newer process
/// has its sockets; see Handover for the order of things. It is the same on every host: what
/// differs is the place, and the thread on which run() waits. Threads: begin(), take_sockets() and
/// run() one after the other; the rest any. Lifetime: its host and its place outlive it.
class HandoverConversation {
 public:
  HandoverConversation(Host& host, const HandoverOptions& options, HandoverPlace& place)
      : host_(host), options_(options), place_(place) {}

  /// Takes what an older process offers, or else is the first one at the place; waits meanwhile.
  /// Gives what failed, for people; empty: nothing.
  std::string begin();
  HandoverParty::Sockets take_sockets() { return std::move(taken_); }
  /// Until newer processes have no more to expect of this one.
  void run(HandoverParty& party);

  // See Handover.
  void accepting() noexcept;
  void stopped_one() noexcept { place_.ring(); }
  void stop() noexcept;

 private:
  using Kind = HandoverMessage::Kind;
  using Heard = HandoverTalk::Heard;

  std::string find_place();
  std::string ask(bool& gone);
  std::string take_offer();

  bool take_over();
  bool wait_until_accepting();
  bool wait_for_the_word();
  bool give_up(std::string why);

  void serve_newer_ones();
  bool hand_over(HandoverTalk& newer);
  bool check(HandoverTalk& newer);
  bool offer(HandoverTalk& newer, const HandoverParty::Sockets& sockets);
  bool pass(HandoverTalk& newer, const HandoverParty::Sockets& sockets);
  void wait_until_stopped(const HandoverParty::Sockets& sockets);

  Heard hear_unless_stopping(HandoverTalk& talk, Instant until);
  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  Instant in(Duration length) const { return after(host_.now(), length); }
  void log(const std::string& what) { host_.log("weir: " + what); }

  Host& host_;
  HandoverOptions options_;
  HandoverPlace& place_;
  std::atomic<bool> accepting_{false};
  std::atomic<bool> stopping_{false};
  std::unique_ptr<HandoverTalk> older_;
  HandoverParty::Sockets taken_;
  HandoverParty* party_ = nullptr;
};

/// How the texts of what can go wrong begin.
inline std::string cannot_take_over(const HandoverOptions& options) {
  return "cannot take sockets over at '" + options.path + "': ";
}

}  // namespace weir
