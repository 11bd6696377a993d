// What an older and a newer process say to each other goes over a Unix socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weir/loop/handover_talk.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir {

/// See HandoverTalk. Lifetime: the event's owner outlives it.
class OsHandoverTalk final : public HandoverTalk {
 public:
  /// `interrupting`: an eventfd.
  OsHandoverTalk(Host& host, os::Fd connection, int interrupting);

  std::string distrust() override;
  Heard hear(Instant until) override;
  void stop_listening() noexcept override;
  int connection() const noexcept { return connection_.get(); }

 private:
  Result<> send(const HandoverMessage& message, std::span<const int> sockets) override;
  Heard receive();

  Host& host_;
  os::Fd connection_;
  int interrupting_;
  std::vector<std::byte> room_;
};

/// Waits until `descriptor` is readable or `event` (an eventfd) was signalled, which is forgotten;
/// at most until then. Whether `descriptor` is.
enum class Woken : std::uint8_t { readable, interrupted, timed_out };
Woken wait_readable(int descriptor, int event, Instant until);

}  // namespace weir
