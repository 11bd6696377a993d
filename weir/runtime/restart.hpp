// A runtime's part in a hot restart: the sockets that it was given, and those that it gives on.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "weir/runtime/runtime.hpp"
#include "weir/loop/handover.hpp"

namespace weir {

/// Threads: begin(), prepare(), start() and the destructor are run()'s; the rest any.
class Runtime::Restart final : HandoverParty {
 public:
  explicit Restart(Runtime& runtime) : runtime_(runtime) {}
  ~Restart() override = default;

  /// Takes what there is, from an older process or from whoever started this one. Gives what
  /// failed, for people; empty: nothing.
  std::string begin();
  /// From here on the sockets are this process' alone.
  void keep_for_good();
  /// Before its loops are made.
  void prepare(LoopGroup& group);
  /// Whether loops begin held, for an older process still accepts.
  bool taking_over() const noexcept { return taking_over_; }
  /// When the cores are there. Errors: those of Handover::start().
  Result<> start();
  /// The runtime drains: nothing is given any more. With the runtime's mutex. False: the loops must
  /// wait with it, for it is not known yet whether what they listen on is theirs; it is asked for
  /// again when it is.
  bool stop() noexcept;
  /// Whether a drain must wait, because a newer process has the sockets but is not ready: it begins
  /// when that one is, or has failed. True once at most: who asks again means it.
  bool postpones_drain();

 private:
  Sockets offer() override;
  bool agree(const Sockets& sockets) override;
  void kept(const Sockets& sockets) override;
  void handed_over() override;
  std::string awaited() override;
  bool ready() override;
  void owned() override;
  void taken_over() override;
  void not_taken_over(std::string why) override;

  std::string inherit();
  void sit_down(WorkerSeat& seat);
  void log(const std::string& what) { runtime_.host_.log("weir: " + what); }

  Runtime& runtime_;
  Sockets sockets_;  // until prepare()
  bool taking_over_ = false;
  bool word_awaited_ = false;  // the older process decides; guarded by the runtime's mutex
  std::mutex mutex_;           // guards what follows
  bool newer_is_here_ = false;
  bool drain_postponed_ = false;
  std::unique_ptr<Handover> handover_;  // last: its thread calls all this
};

}  // namespace weir
