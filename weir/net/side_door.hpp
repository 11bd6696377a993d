// A further listening socket of a listener, which accepts from it one connection ahead.
#pragma once

#include <memory>

#include "weir/loop/loop.hpp"
#include "weir/loop/shared_listener.hpp"

namespace weir::tcp {

/// Threads: the loop's. Lifetime: made by open_side_door(), goes by leave().
class SideDoor : AcceptOperation {
 public:
  /// Told when take() has something, or when nothing will come any more.
  class Owner {
   public:
    virtual void side_door_changed() = 0;

   protected:
    ~Owner() = default;
  };

  SideDoor(Loop& loop, Socket& socket, std::shared_ptr<SharedListener> shared, Owner& owner);

  /// Begins to accept, if it has not yet.
  void begin();
  bool has_one() const noexcept { return has_one_; }
  /// What has come; then the next may. Only if has_one().
  Descriptor take();

  /// Whether it is another process' too; see SharedListener::goes_on().
  bool goes_on() const noexcept { return shared_->goes_on(); }
  bool awaited() const noexcept { return shared_->awaited(); }
  /// Takes nothing more out of its queue; what it has is still to be taken.
  void stop();
  /// Nothing comes any more.
  bool ended() const noexcept { return ended_ && !has_one_; }
  int descriptor() const noexcept { return socket_->descriptor; }

  /// The owner does not use it any more: the socket is closed.
  void leave();

 private:
  void accept_next();
  void settle();
  static void completed(Runnable& self);
  void end();
  void go();

  Loop& loop_;
  Socket* socket_;
  std::shared_ptr<SharedListener> shared_;
  Owner* owner_;
  bool begun_ = false;
  bool on_its_way_ = false;  // completed() will be called
  bool has_one_ = false;
  bool ended_ = false;
};

/// A side door through one of LoopGroup::Listener::further. Errors: the kernel's.
Result<SideDoor*> open_side_door(Loop& loop, std::shared_ptr<SharedListener> shared,
                                 SideDoor::Owner& owner);

}  // namespace weir::tcp
