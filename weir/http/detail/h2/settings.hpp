// The settings of both sides of one HTTP/2 connection (RFC 9113 §6.5).
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/http/detail/h2/frame.hpp"
#include "weir/http/detail/h2/limits.hpp"
#include "weir/http/detail/h2/role.hpp"

namespace weir::http {

/// The settings of the peer that the carrier uses.
struct H2PeerSettings {
  std::uint32_t header_table_size = 4096;
  std::uint32_t header_table_size_min = 4096;  ///< the smallest so far (RFC 7541 §4.2)
  std::uint32_t max_concurrent_streams = 0xFFFFFFFF;
  std::uint32_t initial_window_size = window_default;
  std::uint32_t max_header_list_size = 0xFFFFFFFF;
  bool connect_protocol = false;
  bool no_rfc7540_priorities = false;
};

/// The entries of the only SETTINGS that a session sends.
class OwnSettings {
 public:
  OwnSettings(H2Role role, const H2Limits& limits) noexcept;
  std::span<const Setting> entries() const noexcept { return {entries_.data(), count_}; }

 private:
  void add(SettingId id, std::uint32_t value) noexcept {
    assert(count_ < entries_.size());
    entries_[count_++] = {id, value};
  }

  std::array<Setting, 5> entries_{};
  std::size_t count_ = 0;
};

/// The H2Settings of a connection are the peer's settings, and the facts of the exchange: the first
/// SETTINGS of the peer have arrived, and the peer has acknowledged the session's. The first frame
/// of a peer is SETTINGS. The acknowledgement tells from when on the peer knows the session's
/// windows. The object reads entries and does not see frames.
/// Threads: one at a time.
class H2Settings {
 public:
  /// The effect of one entry.
  struct Applied {
    H2Error error = H2Error::no_error;  ///< ends the connection; the entry has no effect
    std::int64_t window_change = 0;     ///< of the send windows of all open streams (§6.9.2)
  };

  /// Applies an entry of SETTINGS that a peer sent to a session with `role`.
  Applied apply(H2Role role, SettingId id, std::uint32_t value) noexcept;
  /// Notes the end of SETTINGS of the peer. The session answers with an acknowledgement.
  void on_end() noexcept { received_ = true; }
  /// Notes an acknowledgement by the peer.
  /// Returns: true if it is the first one, from which on the session's settings hold.
  bool on_acknowledged() noexcept;

  const H2PeerSettings& peer() const noexcept { return peer_; }
  /// Returns true if the first SETTINGS of the peer have arrived.
  bool received() const noexcept { return received_; }
  /// Returns true if the peer knows the session's settings.
  bool acknowledged() const noexcept { return acknowledged_; }

 private:
  H2PeerSettings peer_;
  bool received_ = false;
  bool acknowledged_ = false;
};

}  // namespace weir::http
