// Datagram sockets of the in-memory backend.
#include "weir/testing/memory/detail/memory_backend.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {

/// A socket with its pending receive. A send never waits, because a full receiver drops
/// datagrams.
struct MemoryDatagrams::Entry final : loop::Socket, detail::ListNode, MemoryObserver {
  Entry(MemoryDatagrams& its_owner, MemoryDatagramSocket& its_socket, int number)
      : owner(its_owner), socket(its_socket) {
    descriptor = number;
  }
  void on_change() override {
    if (receiving != nullptr && !linked()) owner.changed_.push_back(*this);
  }

  MemoryDatagrams& owner;
  MemoryDatagramSocket& socket;
  loop::ReceiveDatagramsOperation* receiving = nullptr;
};

MemoryDatagrams::MemoryDatagrams(MemoryPlatform& platform, loop::RunQueue& ready,
                                 loop::BackendCounters& counters) noexcept
    : platform_(platform), ready_(ready), counters_(counters) {}

MemoryDatagrams::~MemoryDatagrams() {
  while (!entries_.empty()) close(*entries_.begin()->second);
}

MemoryDatagrams::Entry& MemoryDatagrams::entry_of(loop::Socket& socket) noexcept {
  return static_cast<Entry&>(socket);
}

Result<loop::Socket*> MemoryDatagrams::adopt(loop::Descriptor descriptor) {
  const int number = descriptor.value();
  MemoryDatagramSocket* const found = platform_.descriptors().datagrams(number);
  if (found == nullptr) return fail(system_error(EBADF));
  auto entry = std::make_unique<Entry>(*this, *found, number);
  found->observe(*entry);
  loop::Socket* const socket = entry.get();
  entries_.emplace(descriptor.release(), std::move(entry));
  return socket;
}

void MemoryDatagrams::close(loop::Socket& socket) {
  Entry& entry = entry_of(socket);
  assert(entry.receiving == nullptr);
  const int number = entry.descriptor;
  entry.socket.unobserve(entry);
  entries_.erase(number);
  platform_.close(number);
}

bool MemoryDatagrams::receive(loop::Socket& socket, loop::ReceiveDatagramsOperation& operation) {
  Entry& entry = entry_of(socket);
  assert(entry.receiving == nullptr);
  operation.pending_on(socket);
  const bool at_once = platform_.nondeterminism().completes_immediately();
  if (at_once && try_receive(entry, operation)) return finished(operation);
  entry.receiving = &operation;
  if (!at_once) entry.on_change();
  return false;
}

bool MemoryDatagrams::send(loop::Socket& socket, loop::SendDatagramsOperation& operation) {
  Entry& entry = entry_of(socket);
  operation.pending_on(socket);
  operation.sent = 0;
  for (const loop::OutgoingDatagram& each : operation.datagrams) {
    if (const auto sent = entry.socket.send(each.bytes, each.peer); !sent) {
      operation.finish(sent.error());
      return finished(operation);
    }
    ++operation.sent;
    counters_.bytes_sent.add(each.bytes.size());
  }
  operation.finish();
  return finished(operation);
}

bool MemoryDatagrams::finished(const loop::Operation& operation) {
  platform_.nondeterminism().on_finish(operation, 0);
  return true;
}

void MemoryDatagrams::cancel(loop::Operation& operation) {
  Entry& entry = entry_of(*operation.socket());
  // A socket with progress to make is in the list of changes; its operation may finish first.
  if (entry.linked() && platform_.nondeterminism().completes_when_cancelled()) progress(entry);
  if (operation.state() != loop::Operation::State::pending) return;
  assert(entry.receiving == &operation);
  entry.receiving = nullptr;
  operation.finish(Errc::cancelled);
  finished(operation);
  ready_.push(operation);
}

void MemoryDatagrams::take_changes() {
  while (Entry* const entry = changed_.front()) progress(*entry);
}

void MemoryDatagrams::progress(Entry& entry) {
  entry.unlink();
  if (entry.receiving == nullptr || !try_receive(entry, *entry.receiving)) return;
  finished(*entry.receiving);
  ready_.push(*std::exchange(entry.receiving, nullptr));
}

std::size_t MemoryDatagrams::receiving() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      entries_, [](const auto& each) { return each.second->receiving != nullptr; }));
}

bool MemoryDatagrams::try_receive(Entry& entry, loop::ReceiveDatagramsOperation& operation) {
  assert(!operation.target.empty() && operation.bytes_max != 0);
  operation.count = 0;
  for (loop::Datagram& slot :
       operation.target.first(platform_.nondeterminism().transfer_size(operation.target.size()))) {
    if (entry.socket.receivable()) break;
    const MemoryDatagram arrived = entry.socket.receive().value();
    const std::size_t kept = std::min<std::size_t>(arrived.bytes.size(), operation.bytes_max);
    slot.buffer.clear();
    if (slot.buffer.capacity() < operation.bytes_max) {
      slot.buffer = Buffer::with_capacity(operation.bytes_max);
    }
    if (kept != 0) std::memcpy(slot.buffer.room().data(), arrived.bytes.data(), kept);
    slot.buffer.commit(kept);
    slot.peer = arrived.peer;
    slot.truncated_bytes = arrived.bytes.size() - kept;
    slot.segment_size = 0;
    ++operation.count;
    counters_.bytes_received.add(kept);
  }
  if (operation.count != 0) {
    operation.finish();
    return true;
  }
  for (loop::Datagram& slot : operation.target) slot.buffer = {};
  const std::error_code error = entry.socket.receivable();
  if (error == system_error(EAGAIN)) return false;
  operation.finish(entry.socket.receive().error());
  return true;
}

}  // namespace weir
