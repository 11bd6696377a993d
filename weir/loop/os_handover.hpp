// The operating system's way to hand sockets from process to process.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "weir/loop/handover.hpp"
#include "weir/loop/handover_talk.hpp"
#include "weir/loop/host.hpp"
#include "weir/loop/host_thread.hpp"
#include "weir/os/local_packets.hpp"

namespace weir {

/// See Handover. Its thread sleeps but while processes talk.
class OsHandover final : public Handover, ThreadWork {
 public:
  /// Takes what an older process offers, or else is the first one at the path.
  static HandoverStart meet(Host& host, const HandoverOptions& options);
  ~OsHandover() override;

  HandoverParty::Sockets take_sockets() override { return std::move(taken_); }
  Result<> start(HandoverParty& party) override;
  void accepting() noexcept override;
  void stopped_one() noexcept override;
  void stop() noexcept override;

 private:
  using Kind = HandoverMessage::Kind;
  using Heard = HandoverTalk::Heard;

  OsHandover(Host& host, const HandoverOptions& options, const os::Address& place, os::Fd event);

  // Before the thread begins. Each gives what failed, for people; empty: nothing.
  std::string find_place();
  std::string ask(os::Fd connection, bool& gone);
  std::string take_offer();

  // On the thread.
  std::optional<Instant> step() noexcept override;
  bool take_over();
  bool wait_until_accepting();
  bool wait_for_the_word();
  void wait_until_the_older_stops();
  bool give_up(std::string why);
  void serve_newer_ones();
  bool hand_over(HandoverTalk newer);
  bool check(HandoverTalk& newer);
  bool offer(HandoverTalk& newer, const HandoverParty::Sockets& sockets);
  bool pass(HandoverTalk& newer, const HandoverParty::Sockets& sockets);
  void wait_until_stopped(const HandoverParty::Sockets& sockets);
  void leave_place() noexcept;

  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  Instant in(Duration length) const { return after(host_.now(), length); }
  void log(const std::string& what) { host_.log("weir: " + what); }

  Host& host_;
  HandoverOptions options_;
  os::Address place_;
  os::Fd event_;  // something of what follows has changed
  std::atomic<bool> accepting_{false};
  std::atomic<bool> stopping_{false};
  os::Fd listener_;                       // at the place
  std::optional<os::FileIdentity> file_;  // of the place, while it is ours to remove
  std::optional<HandoverTalk> older_;
  std::optional<os::FileIdentity> older_file_;  // of the place, while it is the older one's
  HandoverParty::Sockets taken_;
  HandoverParty* party_ = nullptr;
  std::unique_ptr<HostThread> thread_;  // last: it ends first
};

}  // namespace weir
