// Simulated connections and listeners: the counterpart of the kernel's sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/close_mode.hpp"
#include "weir/os/address.hpp"
#include "weir/testing/network/detail/link_model.hpp"
#include "weir/testing/network/detail/memory_endpoint.hpp"

namespace weir {

// Data in flight to one end of a simulated connection.

/// A segment of a stream: bytes, the end of the stream, or a reset.
struct MemorySegment {
  enum class Kind : std::uint8_t { bytes, end, reset };
  Kind kind = Kind::bytes;
  std::vector<std::byte> bytes = {};
  std::error_code error = {};  ///< error of a reset
  Instant arrives{};
};

/// InFlightData holds the segments on their way to one end. They arrive in the order in which
/// they were sent, each after the delay of the link. A closed link makes it retransmit, each time
/// after twice the wait, until it gives up.
/// Threads: one.
class InFlightData {
 public:
  /// Receives the segments.
  class Receiver {
   public:
    virtual void on_segment(MemorySegment& segment) = 0;
    /// Called when the other side has given up: no more segments arrive.
    virtual void on_lost() = 0;

   protected:
    ~Receiver() = default;
  };

  /// Segments arrive immediately until a link is set.
  explicit InFlightData(Receiver& receiver) noexcept : receiver_(receiver) {}
  InFlightData(const InFlightData&) = delete;
  InFlightData& operator=(const InFlightData&) = delete;
  ~InFlightData() { clear(); }

  void set_link(LinkModel* link) noexcept { link_ = link; }
  bool at_once() const noexcept { return link_ == nullptr; }
  /// Sends `bytes`, possibly in several segments.
  void send(Bytes bytes);
  void send(MemorySegment segment);
  /// Delays segments that are sent from now on until at least `moment`.
  void delay_until(Instant moment) noexcept { earliest_arrival_ = moment; }
  void clear() noexcept;

  /// Returns the number of bytes on their way.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  void deliver_at(Instant moment);
  void deliver();
  void retry();

  Receiver& receiver_;
  LinkModel* link_ = nullptr;
  std::deque<MemorySegment> in_flight_;
  std::size_t bytes_ = 0;
  unsigned retries_ = 0;
  Instant earliest_arrival_ = Instant::min();
  std::optional<MemoryClock::EventId> next_;
};

class MemoryNetwork;

/// A queue of bytes, oldest first. It holds memory only while it holds bytes.
class MemoryBytes {
 public:
  std::size_t size() const noexcept { return bytes_.size() - begin_; }
  void append(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  std::size_t take(MutableBytes target);

 private:
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;
};

/// A MemoryStream is one end of a byte-stream connection and behaves as a non-blocking Linux
/// socket does. It is a Unix socket if its address is local, and TCP otherwise. Sent data waits
/// in the other end or on the way, up to the network's `buffer_bytes`. Its destructor closes it:
/// the other end sees the end of the stream, or a reset if unread bytes were left here. With
/// CloseMode::reset, TCP always resets.
class MemoryStream final : public MemoryEndpoint, InFlightData::Receiver {
 public:
  explicit MemoryStream(std::size_t buffer_bytes) noexcept
      : MemoryEndpoint(Kind::stream), buffer_bytes_(buffer_bytes) {}
  ~MemoryStream() override;

  /// Returns true if the stream has ever been connected.
  bool connected() const noexcept { return state_ != State::unconnected; }
  bool was_reset() const noexcept { return state_ == State::reset; }
  const os::Address& peer_address() const noexcept { return peer_address_; }

  /// Returns the error that receive() would return: none, EAGAIN, ENOTCONN, Errc::end_of_stream,
  /// or that of a reset: ECONNRESET, EPIPE or ETIMEDOUT.
  std::error_code receivable() const noexcept;
  /// Receives some of the data that has arrived, at least one byte.
  /// Errors: those of receivable().
  Result<std::size_t> receive(MutableBytes target);
  /// Returns the error that send() would return: none, EAGAIN, ENOTCONN, EPIPE, or that of a
  /// reset: ECONNRESET, EPIPE or ETIMEDOUT.
  std::error_code sendable() const noexcept;
  /// Sends as much of `bytes` as there is room for. Returns the number of bytes.
  /// Errors: those of sendable().
  Result<std::size_t> send(Bytes bytes);
  /// Ends sending: the other end sees the end of the stream.
  /// Errors: ENOTCONN.
  Result<> shut_down_sending();
  void set_close_mode(CloseMode mode) noexcept { close_mode_ = mode; }
  /// Returns true if the connection was reset or shut down in both directions. A Unix socket is
  /// also dead if the other end is closed.
  bool dead() const noexcept;
  std::size_t unread() const noexcept { return arrived_.size(); }
  /// Returns the total number of bytes that receive() has returned.
  std::uint64_t received() const noexcept { return received_; }
  /// Returns the number of sent bytes that are on their way to the other end.
  std::size_t in_flight_bytes() const noexcept {
    return other_ == nullptr ? lost_bytes_ : other_->in_flight_.bytes();
  }
  /// Resets the connection: both ends see ECONNRESET. The next connect is refused if there is no
  /// connection yet.
  void reset();
  /// Closes the connection after the death of its process. The other side sees it closed; this
  /// side cannot be used any more.
  void close_on_kill();
  /// Ends the data from the other side, as if it had shut its sending down now. It takes effect
  /// on connecting if there is no connection yet.
  void end_receiving();
  /// Delays data that is sent to this end from now on until at least `moment`.
  void delay_until(Instant moment) noexcept { in_flight_.delay_until(moment); }
  /// Leaves no room for sends before `moment`.
  /// Lifetime: `clock` outlives the stream.
  void fill_until(MemoryClock& clock, Instant moment);

 private:
  friend class MemoryNetwork;
  enum class State : std::uint8_t { unconnected, connected, reset };

  bool is_local() const noexcept { return local_.family() == os::AddressFamily::local; }
  void leave();
  void reset_with(std::error_code error);
  void release_if_empty() noexcept;
  std::size_t room() const noexcept;
  void on_segment(MemorySegment& segment) override;
  void on_lost() override;

  State state_ = State::unconnected;
  CloseMode close_mode_ = CloseMode::orderly;
  bool sending_ended_ = false;    // by this side
  bool receiving_ended_ = false;  // by the other side
  bool refused_ = false;          // true if the next connect is refused
  bool ends_early_ = false;       // true if data from the other side ends on connecting
  std::error_code reset_error_;
  std::size_t buffer_bytes_;
  MemoryClock* full_by_ = nullptr;  // clock of full_until_; nothing can be sent before that event
  MemoryClock::EventId full_until_{};
  InFlightData in_flight_{*this};
  MemoryBytes arrived_;
  std::uint64_t received_ = 0;
  std::size_t lost_bytes_ = 0;  // sent after the other end closed, which this side cannot know yet
  MemoryStream* other_ = nullptr;  // nullptr if it is closed
  os::Address peer_address_;
};

/// A MemoryListener is a listening socket. Its destructor resets the connections that were not
/// accepted.
class MemoryListener final : public MemoryEndpoint {
 public:
  MemoryListener(MemoryNetwork& network, const os::Address& local, std::size_t backlog,
                 bool reuse_port);
  ~MemoryListener() override;

  /// Takes the oldest waiting connection; nullptr if there is none.
  std::unique_ptr<MemoryStream> take();
  std::size_t waiting() const noexcept { return queue_.size(); }
  /// Refuses new connections from now on. Waiting connections can still be taken.
  void refuse() noexcept { refusing_ = true; }
  /// Stops listening and resets the waiting connections, because its only process is dead.
  void close_on_kill();

 private:
  friend class MemoryNetwork;
  // A backlog of n lets n + 1 connections wait, as on Linux.
  bool full() const noexcept { return queue_.size() > backlog_; }

  MemoryNetwork& network_;
  std::size_t backlog_;
  bool reuse_port_;
  bool refusing_ = false;
  std::deque<std::unique_ptr<MemoryStream>> queue_;
};

}  // namespace weir
