// The simulated backend: it tries every operation immediately, and again when its socket has
// changed.
#include "weir/testing/memory/detail/memory_backend.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <new>
#include <optional>
#include <utility>

#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/network/detail/nondeterminism.hpp"

namespace weir {
namespace {

// Pause of accepting when no descriptor is left.
constexpr Duration accept_pause = std::chrono::milliseconds(10);
// TCP's first wait for an answer to its SYN, doubled each time, and the number of retries (RFC
// 6298, Linux' tcp_syn_retries).
constexpr Duration connect_retry_first = std::chrono::seconds(1);
constexpr unsigned connect_tries_max = 7;

std::size_t bytes_of(const loop::Operation& operation) {
  switch (operation.kind()) {
    case loop::Operation::Kind::receive: {
      const auto& receive = static_cast<const loop::ReceiveOperation&>(operation);
      return receive.target.empty() ? receive.buffer.size() : receive.count;
    }
    case loop::Operation::Kind::send:
      return static_cast<const loop::SendOperation&>(operation).sent;
    case loop::Operation::Kind::file:
      return static_cast<const loop::FileOperation&>(operation).count;
    case loop::Operation::Kind::accept:
    case loop::Operation::Kind::connect:
    case loop::Operation::Kind::receive_datagrams:
    case loop::Operation::Kind::send_datagrams:
      break;
  }
  return 0;
}

}  // namespace

/// A socket with its pending operations.
struct MemoryBackend::Entry final : loop::Socket, detail::ListNode, MemoryObserver {
  Entry(MemoryBackend& owner, int number) : backend(owner) { descriptor = number; }

  bool waits() const noexcept {
    return receiving != nullptr || sending != nullptr || accepting != nullptr ||
           connecting != nullptr || observer != nullptr;
  }
  void on_change() override {
    if (waits() && !linked()) backend.changed_.push_back(*this);
  }

  MemoryBackend& backend;
  MemoryStream* stream = nullptr;  // set for a stream; `listener` is set for a listener
  MemoryListener* listener = nullptr;
  loop::ReceiveOperation* receiving = nullptr;
  loop::SendOperation* sending = nullptr;
  loop::AcceptOperation* accepting = nullptr;
  loop::ConnectOperation* connecting = nullptr;
  loop::HangupObserver* observer = nullptr;
  unsigned connect_tries = 0;
  std::optional<MemoryClock::EventId> later;  // event that retries an accept or a connect
  bool stopped = false;                       // true after stop_accepting()
};

MemoryBackend::MemoryBackend(MemoryPlatform& platform, loop::RunQueue& ready)
    : platform_(platform), nondeterminism_(platform.nondeterminism()), ready_(ready) {
  platform_.add_backend();
}

MemoryBackend::~MemoryBackend() {
  while (!entries_.empty()) close(*entries_.begin()->second);
  platform_.remove_backend();
}

MemoryBackend::Entry& MemoryBackend::entry_of(loop::Socket& socket) noexcept {
  return static_cast<Entry&>(socket);
}

Result<loop::Socket*> MemoryBackend::adopt(loop::Descriptor descriptor,
                                           loop::SocketOptions options) {
  if (options.role == loop::SocketRole::datagrams) return datagrams_.adopt(std::move(descriptor));
  const int number = descriptor.value();
  auto entry = std::make_unique<Entry>(*this, number);
  entry->stream = platform_.descriptors().stream(number);
  entry->listener = platform_.descriptors().listener(number);
  const bool right = options.role == loop::SocketRole::stream ? entry->stream != nullptr
                                                              : entry->listener != nullptr;
  if (!right) return fail(system_error(EBADF));
  platform_.descriptors().find(number)->observe(*entry);
  loop::Socket* const socket = entry.get();
  entries_.emplace(descriptor.release(), std::move(entry));
  return socket;
}

void MemoryBackend::close(loop::Socket& socket) {
  if (datagrams_.owns(socket)) return datagrams_.close(socket);
  Entry& entry = entry_of(socket);
  entry.observer = nullptr;
  assert(!entry.waits());
  cancel_retry(entry);
  const int number = entry.descriptor;
  platform_.descriptors().find(number)->unobserve(entry);
  entries_.erase(number);
  platform_.close(number);
}

bool MemoryBackend::receive(loop::Socket& socket, loop::ReceiveOperation& operation) {
  Entry& entry = entry_of(socket);
  assert(entry.stream != nullptr && entry.receiving == nullptr);
  operation.pending_on(socket);
  operation.count = 0;
  operation.buffer = {};
  nondeterminism_.on_begin(operation, entry.stream);
  const bool at_once = nondeterminism_.completes_immediately();
  if (at_once && try_receive(entry, operation)) return finished_at_once(operation);
  entry.receiving = &operation;
  if (!at_once) entry.on_change();
  return false;
}

bool MemoryBackend::finished_at_once(const loop::Operation& operation) {
  nondeterminism_.on_finish(operation, bytes_of(operation));
  return true;
}

bool MemoryBackend::send(loop::Socket& socket, loop::SendOperation& operation) {
  Entry& entry = entry_of(socket);
  assert(entry.stream != nullptr && entry.sending == nullptr);
  operation.pending_on(socket);
  operation.sent = 0;
  nondeterminism_.on_begin(operation, entry.stream);
  const bool at_once = nondeterminism_.completes_immediately();
  if (at_once && try_send(entry, operation)) return finished_at_once(operation);
  if (operation.partial) {
    operation.finish();
    return finished_at_once(operation);
  }
  entry.sending = &operation;
  // The entry is also listed if only a part was sent although there is room for more.
  if (!at_once || !entry.stream->sendable()) entry.on_change();
  return false;
}

bool MemoryBackend::accept(loop::Socket& socket, loop::AcceptOperation& operation) {
  Entry& entry = entry_of(socket);
  assert(entry.listener != nullptr && entry.accepting == nullptr);
  operation.pending_on(socket);
  operation.accepted.reset();
  nondeterminism_.on_begin(operation, nullptr);
  if (entry.stopped) {
    operation.finish(Errc::closed);
    return finished_at_once(operation);
  }
  const bool at_once = nondeterminism_.completes_immediately();
  if (at_once && try_accept(entry, operation)) return finished_at_once(operation);
  entry.accepting = &operation;
  if (!at_once) entry.on_change();
  return false;
}

void MemoryBackend::stop_accepting(loop::Socket& socket) {
  Entry& entry = entry_of(socket);
  assert(entry.listener != nullptr);
  entry.stopped = true;
  loop::AcceptOperation* const accepting = std::exchange(entry.accepting, nullptr);
  if (accepting == nullptr) return;
  cancel_retry(entry);
  accepting->finish(Errc::closed);
  nondeterminism_.on_finish(*accepting, 0);
  ready_.push(*accepting);
}

bool MemoryBackend::connect(loop::Socket& socket, loop::ConnectOperation& operation) {
  Entry& entry = entry_of(socket);
  assert(entry.stream != nullptr && entry.connecting == nullptr);
  operation.pending_on(socket);
  if (entry.stream->connected()) {
    operation.finish(system_error(EISCONN));
    return true;
  }
  nondeterminism_.on_begin(operation, entry.stream);
  entry.connect_tries = 0;
  entry.connecting = &operation;
  if (const Duration time = nondeterminism_.connect_delay(); time > Duration::zero()) {
    retry_later(entry, time);
  } else {
    entry.on_change();
  }
  return false;
}

bool MemoryBackend::does_files() const noexcept {
  return platform_.options().files == MemoryFiles::by_backend;
}

void MemoryBackend::start_file(loop::FileOperation& operation) {
  operation.count = 0;
  operation.pending();
  nondeterminism_.on_begin(operation, nullptr);
  const Instant end =
      after(platform_.now(), platform_.options().file_time + nondeterminism_.step_delay());
  files_.emplace(&operation,
                 platform_.clock().at(end, [this, &operation] { finish_file(operation); }));
}

void MemoryBackend::finish_file(loop::FileOperation& operation) {
  files_.erase(&operation);
  MemoryFileSystem& files = platform_.files();
  Result<std::size_t> done = 0;
  switch (operation.action) {
    case loop::FileOperation::Action::read:
      done = files.read_at(operation.file, operation.target, operation.offset);
      break;
    case loop::FileOperation::Action::write:
      done = files.write_at(operation.file, operation.source, operation.offset);
      break;
    case loop::FileOperation::Action::sync:
      if (const auto synced = files.sync(operation.file); !synced) done = fail(synced.error());
      break;
  }
  operation.count = done.value_or(0);
  operation.finish(done ? std::error_code() : done.error());
  nondeterminism_.on_finish(operation, bytes_of(operation));
  ready_.push(operation);
}

void MemoryBackend::cancel(loop::Operation& operation) {
  if (operation.state() != loop::Operation::State::pending) return;
  if (operation.kind() == loop::Operation::Kind::file) {
    const auto file = files_.find(&static_cast<loop::FileOperation&>(operation));
    platform_.clock().cancel(file->second);
    files_.erase(file);
    operation.finish(Errc::cancelled);
    nondeterminism_.on_finish(operation, bytes_of(operation));
    ready_.push(operation);
    return;
  }
  if (datagrams_.owns(*operation.socket())) return datagrams_.cancel(operation);
  Entry& entry = entry_of(*operation.socket());
  // A socket with progress to make is in the list of changes; its operation may finish first.
  if (entry.linked() && entry.connecting == nullptr && nondeterminism_.completes_when_cancelled()) {
    progress(entry);
  }
  if (operation.state() != loop::Operation::State::pending) return;
  switch (operation.kind()) {
    case loop::Operation::Kind::receive:
      entry.receiving = nullptr;
      break;
    case loop::Operation::Kind::send:
      entry.sending = nullptr;
      break;
    case loop::Operation::Kind::accept:
      entry.accepting = nullptr;
      cancel_retry(entry);
      break;
    case loop::Operation::Kind::connect:
      entry.connecting = nullptr;
      cancel_retry(entry);
      break;
    case loop::Operation::Kind::file:  // handled above
    case loop::Operation::Kind::receive_datagrams:
    case loop::Operation::Kind::send_datagrams:
      break;
  }
  operation.finish(Errc::cancelled);
  nondeterminism_.on_finish(operation, bytes_of(operation));
  ready_.push(operation);
}

Result<> MemoryBackend::shut_down_sending(loop::Socket& socket) {
  Entry& entry = entry_of(socket);
  assert(entry.stream != nullptr && entry.sending == nullptr);
  return entry.stream->shut_down_sending();
}

void MemoryBackend::observe_hangup(loop::Socket& socket, loop::HangupObserver* observer) {
  Entry& entry = entry_of(socket);
  assert(entry.stream != nullptr);
  entry.observer = observer;
  report_hangup(entry);
}

void MemoryBackend::wait(Instant until) {
  counters_.system_calls.add();
  bool woken = woken_.exchange(false, std::memory_order_acquire);
  take_changes();
  while (!woken && ready_.empty() && platform_.pass_time(until)) {
    take_changes();
    woken = woken_.exchange(false, std::memory_order_acquire);
  }
}

void MemoryBackend::take_changes() {
  // The platform's Nondeterminism chooses one of the first few: connections have no order.
  constexpr std::size_t choice_max = 8;
  while (!changed_.empty()) {
    Entry* entry = changed_.front();
    std::size_t choice = 1;
    for (Entry* each = changed_.next(*entry); each != nullptr && choice < choice_max; ++choice) {
      each = changed_.next(*each);
    }
    for (std::size_t left = nondeterminism_.pick(choice); left > 0; --left)
      entry = changed_.next(*entry);
    const bool later = !nondeterminism_.completes_immediately();
    if (later) {
      entry->unlink();
    } else {
      progress(*entry);
    }
    const bool could_send = entry->sending != nullptr && !entry->stream->sendable();
    if (later || (could_send && !entry->linked())) unfinished_.push_back(*entry);
  }
  changed_.splice_back(unfinished_);
  datagrams_.take_changes();
}

void MemoryBackend::progress(Entry& entry) {
  entry.unlink();
  const auto finish = [&]<class T>(T*& pending, auto attempt) {
    if (pending == nullptr || !(this->*attempt)(entry, *pending)) return;
    nondeterminism_.on_finish(*pending, bytes_of(*pending));
    ready_.push(*std::exchange(pending, nullptr));
  };
  finish(entry.connecting, &MemoryBackend::try_connect);
  finish(entry.accepting, &MemoryBackend::try_accept);
  finish(entry.receiving, &MemoryBackend::try_receive);
  finish(entry.sending, &MemoryBackend::try_send);
  report_hangup(entry);
}

void MemoryBackend::report_hangup(Entry& entry) {
  if (entry.observer == nullptr) return;
  const bool input = entry.observer->observes_input() && entry.receiving == nullptr &&
                     entry.stream->receivable() != system_error(EAGAIN);
  if (!entry.stream->dead() && !input) return;
  std::exchange(entry.observer, nullptr)->on_hangup();
}

bool MemoryBackend::try_receive(Entry& entry, loop::ReceiveOperation& operation) {
  const std::error_code state = entry.stream->receivable();
  if (state == system_error(EAGAIN)) return false;
  if (state) {
    operation.finish(state);
    return true;
  }
  MutableBytes target = operation.target;
  if (target.empty()) {
    try {
      operation.buffer = Buffer::with_capacity();
    } catch (const std::bad_alloc&) {
      operation.finish(system_error(ENOMEM));
      return true;
    }
    target = operation.buffer.room();
  }
  target =
      target.first(nondeterminism_.transfer_size(std::min(target.size(), entry.stream->unread())));
  const std::size_t count = entry.stream->receive(target).value();
  if (operation.target.empty()) {
    operation.buffer.commit(count);
  } else {
    operation.count = count;
  }
  counters_.bytes_received.add(count);
  operation.finish();
  return true;
}

bool MemoryBackend::try_send(Entry& entry, loop::SendOperation& operation) {
  std::size_t skip = operation.sent;
  for (const Bytes piece : operation.pieces) {
    Bytes left = piece.subspan(std::min(skip, piece.size()));
    skip -= std::min(skip, piece.size());
    while (!left.empty()) {
      const std::size_t part = nondeterminism_.transfer_size(left.size());
      const auto count = entry.stream->send(left.first(part));
      if (!count && count.error() == system_error(EAGAIN)) return false;
      if (!count) {
        operation.finish(count.error());
        return true;
      }
      counters_.bytes_sent.add(*count);
      operation.sent += *count;
      if (part < left.size()) return false;
      left = left.subspan(*count);
    }
  }
  operation.finish();
  return true;
}

bool MemoryBackend::try_accept(Entry& entry, loop::AcceptOperation& operation) {
  if (entry.listener->waiting() == 0 || nondeterminism_.is_isolated()) return false;
  if (platform_.descriptors().full() || (!entry.later && nondeterminism_.accept_error())) {
    if (!entry.later) {
      counters_.accept_pauses.add();
      retry_later(entry, accept_pause);
    }
    return false;
  }
  cancel_retry(entry);
  counters_.accepts.add();
  operation.accepted =
      loop::Descriptor(platform_, platform_.descriptors().add(entry.listener->take()).value());
  operation.finish();
  return true;
}

bool MemoryBackend::try_connect(Entry& entry, loop::ConnectOperation& operation) {
  if (entry.later || nondeterminism_.is_isolated()) return false;
  switch (platform_.network().connect(*entry.stream, operation.peer)) {
    case MemoryNetwork::ConnectResult::established:
      operation.finish();
      return true;
    case MemoryNetwork::ConnectResult::refused:
      operation.finish(system_error(ECONNREFUSED));
      return true;
    case MemoryNetwork::ConnectResult::no_reply:
      break;
  }
  if (operation.peer.family() == os::AddressFamily::local) {
    operation.finish(system_error(EAGAIN));
    return true;
  }
  if (entry.connect_tries == connect_tries_max) {
    operation.finish(system_error(ETIMEDOUT));
    return true;
  }
  retry_later(entry, connect_retry_first * (1U << entry.connect_tries++));
  return false;
}

void MemoryBackend::retry_later(Entry& entry, Duration delay) {
  entry.later = platform_.clock().at(after(platform_.now(), delay), [&entry] {
    entry.later.reset();
    entry.on_change();
  });
}

void MemoryBackend::cancel_retry(Entry& entry) {
  if (entry.later) platform_.clock().cancel(*std::exchange(entry.later, std::nullopt));
}

std::string MemoryBackend::open_sockets() const {
  std::string text;
  for (const auto& [number, entry] : entries_) {
    text += text.empty() ? "" : ", ";
    if (entry->listener != nullptr) {
      text += "a listener";
    } else if (entry->stream->connected()) {
      text += "a connection with " + entry->stream->peer_address().to_string();
    } else {
      text += "a stream without a connection";
    }
  }
  return text;
}

std::string MemoryBackend::pending() const {
  std::array<std::size_t, 5> counts{};
  for (const auto& [number, entry] : entries_) {
    counts[0] += entry->accepting != nullptr;
    counts[1] += entry->connecting != nullptr;
    counts[2] += entry->receiving != nullptr;
    counts[3] += entry->sending != nullptr;
  }
  counts[2] += datagrams_.receiving();
  counts[4] = files_.size();
  constexpr std::array names = {"accept", "connect", "receive", "send", "file"};
  std::string text;
  for (std::size_t kind = 0; kind < names.size(); ++kind) {
    if (counts[kind] == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(counts[kind]) + " " + names[kind];
  }
  return text;
}

}  // namespace weir
