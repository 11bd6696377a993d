// The ends of simulated connections and the listeners behind which they wait: what the kernel's
// sockets are to a real host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <system_error>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/os/address.hpp"
#include "weir/testing/memory_arrivals.hpp"
#include "weir/testing/network/detail/memory_endpoint.hpp"

namespace weir {

class MemoryNetwork;

/// Bytes on their way, oldest first. Holds memory only while it holds bytes.
class MemoryBytes {
 public:
  std::size_t size() const noexcept { return bytes_.size() - begin_; }
  void append(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  std::size_t take(MutableBytes target);

 private:
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;
};

/// One end of a byte-stream connection, behaving as a non-blocking Linux socket does: TCP, or a
/// Unix socket where its address is local. What was sent waits in the other end or on the way, up
/// to the network's `buffer_bytes`. Destroying it closes it: the other end sees the end of the
/// stream, or a reset when bytes were left unread here.
class MemoryStream final : public MemoryEndpoint, MemoryArrivals::Receiver {
 public:
  explicit MemoryStream(std::size_t buffer_bytes) noexcept
      : MemoryEndpoint(Kind::stream), buffer_bytes_(buffer_bytes) {}
  ~MemoryStream() override;

  /// Whether it has ever been connected, and to whom.
  bool connected() const noexcept { return state_ != State::unconnected; }
  const os::Address& peer_address() const noexcept { return peer_address_; }

  /// What receive() would say: no error, EAGAIN, ENOTCONN, ECONNRESET or Errc::end_of_stream.
  std::error_code receivable() const noexcept;
  /// Some of what has arrived, at least one byte. Errors: those of receivable().
  Result<std::size_t> receive(MutableBytes target);
  /// What send() would say: no error, EAGAIN, ENOTCONN, ECONNRESET or EPIPE.
  std::error_code sendable() const noexcept;
  /// Takes as much of `bytes` as there is room for. Errors: those of sendable().
  Result<std::size_t> send(Bytes bytes);
  /// Errors: ENOTCONN.
  Result<> shut_down_sending();
  /// Reset, or shut down in both directions.
  bool dead() const noexcept;
  std::size_t unread() const noexcept { return arrived_.size(); }
  /// Bytes that receive() has given in all.
  std::uint64_t received() const noexcept { return received_; }
  /// What was sent and is on its way to the other end.
  std::size_t on_the_way() const noexcept {
    return other_ == nullptr ? lost_bytes_ : other_->coming_.bytes();
  }
  /// Tears the connection down; both ends see a reset (ECONNRESET). Where there is none yet, the
  /// next connect is refused.
  void reset();
  /// What its process' death does: for the other side it is closed, and here it is of no use.
  void die();
  /// Ends what the other side sends, as if it had shut its sending down just now, or does so as
  /// soon as it is connected.
  void end_receiving();
  /// Nothing that is sent from now on arrives here before.
  void hold_until(Instant moment) noexcept { coming_.hold_until(moment); }
  /// There is no room for what is sent before. Lifetime: the clock outlives this.
  void fill_until(MemoryClock& clock, Instant moment);

 private:
  friend class MemoryNetwork;
  enum class State : std::uint8_t { unconnected, connected, reset };

  bool is_local() const noexcept { return local_.family() == os::AddressFamily::local; }
  void leave();
  void reset_with(std::error_code error);
  void empty_again() noexcept;
  std::size_t room() const noexcept;
  void arrived(MemoryParcel& parcel) override;
  void lost() override;

  State state_ = State::unconnected;
  bool sending_ended_ = false;    // by this side
  bool receiving_ended_ = false;  // by the other side
  bool refused_ = false;          // the next connect is
  bool ends_early_ = false;       // what the other side sends, once there is one
  std::error_code reset_error_;
  std::size_t buffer_bytes_;
  MemoryClock* full_by_ = nullptr;  // nothing can be sent before its event
  MemoryClock::EventId full_until_{};
  MemoryArrivals coming_{*this};
  MemoryBytes arrived_;
  std::uint64_t received_ = 0;
  std::size_t lost_bytes_ = 0;     // that were sent to nobody, of which this side does not know yet
  MemoryStream* other_ = nullptr;  // nullptr: it is closed
  os::Address peer_address_;
};

/// A socket that takes connections. Destroying it resets those that were not accepted.
class MemoryListener final : public MemoryEndpoint {
 public:
  MemoryListener(MemoryNetwork& network, const os::Address& local, std::size_t backlog,
                 bool reuse_port);
  ~MemoryListener() override;

  /// The oldest waiting connection, or nullptr.
  std::unique_ptr<MemoryStream> take();
  std::size_t waiting() const noexcept { return queue_.size(); }
  /// From now on newcomers are turned away; those who wait can still be taken.
  void refuse() noexcept { refusing_ = true; }
  /// Its only process is dead: nobody listens, and those who wait are reset.
  void die();

 private:
  friend class MemoryNetwork;
  // As on Linux, a backlog of n lets n + 1 wait.
  bool full() const noexcept { return queue_.size() > backlog_; }

  MemoryNetwork& network_;
  std::size_t backlog_;
  bool reuse_port_;
  bool refusing_ = false;
  std::deque<std::unique_ptr<MemoryStream>> queue_;
};

}  // namespace weir
