// The operating system's way to hand sockets from process to process.
#pragma once

#include <memory>
#include <optional>

#include "weir/loop/handover.hpp"
#include "weir/loop/handover_conversation.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/platform_thread.hpp"
#include "weir/loop/os_handover_place.hpp"

namespace weir {

/// See Handover. Its thread sleeps but while processes talk.
class OsHandover final : public Handover, ThreadWork {
 public:
  /// Takes what an older process offers, or else is the first one at the path.
  static HandoverStart meet(Host& host, const HandoverOptions& options);
  ~OsHandover() override;

  HandoverParty::Sockets take_sockets() override { return conversation_.take_sockets(); }
  Result<> start(HandoverParty& party) override;
  void accepting() noexcept override { conversation_.accepting(); }
  void stopped_one() noexcept override { conversation_.stopped_one(); }
  void stop() noexcept override { conversation_.stop(); }

 private:
  OsHandover(Host& host, const HandoverOptions& options, const os::Address& path, os::Fd event)
      : host_(host), place_(host, path, std::move(event)), conversation_(host, options, place_) {}

  std::optional<Instant> step() noexcept override;

  Host& host_;
  OsHandoverPlace place_;
  HandoverConversation conversation_;
  HandoverParty* party_ = nullptr;
  std::unique_ptr<HostThread> thread_;  // last: it ends first
};

}  // namespace weir
