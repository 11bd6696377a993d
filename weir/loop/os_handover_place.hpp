// The processes of a service meet at a Unix socket with a path.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "weir/loop/handover_place.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/os/address.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir {

/// See HandoverPlace.
class OsHandoverPlace final : public HandoverPlace {
 public:
  /// `event`: an eventfd, which ring() signals.
  OsHandoverPlace(Host& host, const os::Address& path, os::Fd event);

  std::string name() const override { return path_.to_string(); }
  Result<std::unique_ptr<HandoverTalk>> meet() override;
  const Descriptor& socket() const noexcept override { return listener_; }
  void set_socket(Descriptor socket) override { listener_ = std::move(socket); }
  void own() noexcept override { file_ = std::exchange(older_file_, std::nullopt); }
  void disown() noexcept override { file_.reset(); }
  void leave() noexcept override;

  std::unique_ptr<HandoverTalk> wait_for_newer() override;
  bool wait(Instant until) override;
  void ring() noexcept override;

 private:
  Host& host_;
  os::Address path_;
  os::Fd event_;
  Descriptor listener_;
  std::optional<os::FileIdentity> file_;        // of the path, while it is ours to remove
  std::optional<os::FileIdentity> older_file_;  // while it is the older process'
};

}  // namespace weir
