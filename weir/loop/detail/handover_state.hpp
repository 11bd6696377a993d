// HandoverState: the texts that a process passes to a newer one in a hot restart.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace weir::loop {

/// HandoverState holds small secrets of higher floors, by name. A newer process of the service gets
/// them together with the listening sockets (Handover). The object is in the slots of a LoopGroup.
/// Threads: any.
class HandoverState {
 public:
  using Source = std::function<std::string()>;

  HandoverState() = default;
  HandoverState(const HandoverState&) = delete;
  HandoverState& operator=(const HandoverState&) = delete;
  ~HandoverState();

  /// Passes what `source` returns to a newer process. It replaces an older source of this name. All
  /// names and texts together have at most 16 KiB; the texts that do not fit are left out.
  /// Threads: that of the handover calls `source`.
  void offer(std::string name, Source source);
  /// Returns the text that an older process has passed; empty if there is none. The text is removed
  /// here, and the caller erases it.
  std::string take(const std::string& name);

  /// Returns the bytes of all texts that are offered: each name and each text after a length of
  /// 16 bits, little-endian. The caller erases them.
  std::string to_bytes() const;
  /// Reads the bytes of an older process, and erases them. Incomplete bytes are ignored.
  void receive(std::string bytes);

 private:
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, Source, std::less<>> sources_;
  std::map<std::string, std::string, std::less<>> received_;
};

}  // namespace weir::loop
