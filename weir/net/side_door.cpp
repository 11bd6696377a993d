#include "weir/net/side_door.hpp"

#include <cassert>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/net/detail/socket_block.hpp"

namespace weir::tcp {

Result<SideDoor*> open_side_door(Loop& loop, std::shared_ptr<SharedListener> shared,
                                 SideDoor::Owner& owner) {
  auto descriptor = shared->share();
  if (!descriptor) return fail(descriptor.error());
  // Accepted connections inherit it.
  if (auto configured = loop.host().configure(descriptor->value(), {}); !configured) {
    return fail(configured.error());
  }
  const SocketOptions options{.role = SocketRole::listener, .shared = true};
  auto socket = loop.backend().adopt(std::move(*descriptor), options);
  if (!socket) return fail(socket.error());
  return make_socket_block<SideDoor>(loop, **socket, std::move(shared), owner).release();
}

SideDoor::SideDoor(Loop& loop, Socket& socket, std::shared_ptr<SharedListener> shared, Owner& owner)
    : AcceptOperation(&completed),
      loop_(loop),
      socket_(&socket),
      shared_(std::move(shared)),
      owner_(&owner) {
  shared_->begin_accepting();
}

void SideDoor::begin() {
  if (std::exchange(begun_, true) || ended_) return;
  accept_next();
}

Descriptor SideDoor::take() {
  assert(has_one_);
  has_one_ = false;
  Descriptor taken = std::move(accepted);
  if (!ended_) accept_next();
  return taken;
}

void SideDoor::stop() {
  if (ended_) return;
  loop_.backend().stop_accepting(*socket_);
  if (!begun_) end();
}

void SideDoor::accept_next() {
  on_its_way_ = !loop_.backend().accept(*socket_, *this);
  if (!on_its_way_) settle();
}

void SideDoor::settle() {
  if (error()) {
    end();
  } else {
    has_one_ = true;
  }
}

void SideDoor::end() {
  if (std::exchange(ended_, true)) return;
  shared_->end_accepting();
}

void SideDoor::completed(Runnable& self) {
  auto& door = static_cast<SideDoor&>(static_cast<AcceptOperation&>(self));
  door.on_its_way_ = false;
  if (door.owner_ == nullptr) return door.go();
  door.settle();
  door.owner_->side_door_changed();
}

void SideDoor::leave() {
  owner_ = nullptr;
  if (on_its_way_) loop_.backend().cancel(*this);
  accepted.reset();
  has_one_ = false;
  loop_.backend().close(*std::exchange(socket_, nullptr));
  end();
  shared_.reset();
  if (!on_its_way_) go();
}

void SideDoor::go() {
  BlockDeleter<SideDoor>()(this);
}

}  // namespace weir::tcp
