// Hot restart: a newer process of a service takes the listening sockets over from an older one,
// and nobody who connects meanwhile notices.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

namespace weir {

class SharedListener;

struct HandoverOptions {
  /// Where the processes of the service meet: a Unix socket of this path, which only this user may
  /// connect to. Best in a folder that nobody else may write to, such as /run/NAME or
  /// $XDG_RUNTIME_DIR: elsewhere (/tmp) somebody else may have taken the name, or the one with
  /// ".lock" behind it, which then fails the start.
  std::string path;
  std::string service = {};  ///< what it is called, at most 255 bytes: both must say the same
  /// How long after its start a newer process may take until it listens on everything that it was
  /// given; and how long it waits for an older one that has but just begun itself.
  Duration ready_within = std::chrono::seconds(10);
};

/// The process' own part in it, which a runtime plays. Called on the handover's thread.
class HandoverParty {
 public:
  using Sockets = std::vector<std::shared_ptr<SharedListener>>;
  virtual ~HandoverParty() = default;

  /// A newer process is here: what it gets. kept() or handed_over() will follow.
  virtual Sockets offer() = 0;
  /// It listens on all of them. Whether it may have them, which ends here where this process has
  /// begun to drain: from then on its sockets are good for nobody else.
  virtual bool agree(const Sockets& sockets) = 0;
  /// It has left before it had them: everything goes on as before.
  virtual void kept(const Sockets& sockets) = 0;
  /// It has them, and waits until nobody here accepts from them any more: to be seen to without
  /// delay. Then this process drains.
  virtual void handed_over() = 0;

  /// For people: on which of the sockets that were taken nobody listens yet.
  virtual std::string awaited() = 0;
  /// The older process is about to hear that this one is ready. False: it is not, for it drains.
  /// From then on until owned() or not_taken_over() nobody here knows whose the sockets are, and a
  /// drain waits.
  virtual bool ready() = 0;
  /// They are this process' own: the older one stops accepting, or is gone. A drain answers who
  /// waits in them. taken_over() follows, unless this process drains.
  virtual void owned() = 0;
  /// The older process accepts no more, or is gone: this one does from now on.
  virtual void taken_over() = 0;
  /// The older process goes on; this one has to end without having accepted anybody.
  virtual void not_taken_over(std::string why) = 0;
};

/// The meeting of the processes of one service, from the begin of a process to its end. The
/// conversation (HandoverMessage): the newer one asks; the older one offers all its listening
/// sockets and the one on which they meet; the newer one listens on them, without accepting, and
/// says that it is ready; the older one says that they are the newer one's, stops accepting, and
/// says so; the newer one accepts. A connection waits in the queue of its socket meanwhile, and the
/// socket is open all the time.
///
/// Sockets for datagrams are not passed on: where cores share a port (udp::Options::reuse_port),
/// both processes' do from the newer one's bind() until the older one has drained, and each answers
/// what it gets.
///
/// Until the older one has said that they are the newer one's, whatever happens to the newer one
/// changes nothing for connections. An older one that dies leaves everything to the newer one. Of
/// several newer ones at once each takes over from the one before. A newer one that dies when they
/// are its own takes them with it, and whoever waits in their queues; the older one still drains,
/// and the next process opens them anew. That one waits at the path until the older one has
/// stopped, for a second at most, and tries the port for one more: where a core of the older one is
/// stuck in a handler for longer, it finds that taken (EADDRINUSE).
/// Threads: any, but for the destructor, take_sockets() and start().
class Handover {
 public:
  /// Ends it and waits for its thread. A path that is still this process' own is removed.
  virtual ~Handover() = default;

  /// What an older process has passed on; empty: there is none. Once, before start().
  virtual HandoverParty::Sockets take_sockets() = 0;
  /// Goes on, on a thread of its own: `party` outlives it. Errors: the kernel's (EAGAIN).
  virtual Result<> start(HandoverParty& party) = 0;
  /// Every socket that was taken is about to be accepted from; of a process that took none: it
  /// listens. From then on newer processes are given what it has.
  virtual void accepting() noexcept = 0;
  /// A socket is accepted from no more.
  virtual void stopped_one() noexcept = 0;
  /// This process drains: nothing is given any more, and nobody waits at the path.
  virtual void stop() noexcept = 0;
};

/// What came of beginning one: without a handover, why not, for people.
struct HandoverStart {
  std::unique_ptr<Handover> handover;
  std::string failure;
};

}  // namespace weir
