// Messages between an older and a newer process of a service, and the connection for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"

namespace weir::loop {

// The processes of a service exchange these messages while the newer one takes over. Each message
// is one packet. handover.hpp describes the order of the messages.

/// One message. Its encoding is "WEIR", a byte for the protocol's version, a byte for the kind,
/// and the fields of that kind. Numbers are little-endian. Texts are printable ASCII after a
/// length of 16 bits. The state is bytes after such a length.
struct HandoverMessage {
  static constexpr std::uint8_t version = 3;
  static constexpr std::size_t bytes_max = 64 * 1024;
  static constexpr std::size_t text_bytes_max = 255;
  static constexpr std::size_t state_bytes_max = 16 * 1024;

  enum class Kind : std::uint8_t {
    request = 1,  ///< newer: a request for the sockets of the service named `text`
    offer,        ///< older: `sockets`, one descriptor each; more offers follow unless `last`
    reject,       ///< either: the reason of a refusal, in `text`; ends the exchange
    ready,        ///< newer: it listens on every socket and waits for `transferred`
    transferred,  ///< older: the sockets are the newer one's; it stops accepting in any case
    stopped,      ///< older: it has stopped accepting
    received,     ///< newer: it has all offered sockets and gets ready
  };

  enum class Use : std::uint8_t {
    listening = 1,  ///< a socket of the service
    rendezvous,     ///< the socket at which the next newer process connects
  };
  struct Socket {
    Use use = Use::listening;
    bool externally_owned = false;  ///< true if a service manager, for example, keeps it open too
    std::string address;            ///< the address that it listens on, for log lines
    bool operator==(const Socket&) const = default;
  };

  Kind kind = Kind::request;
  std::string text = {};  ///< used by request and reject
  std::vector<Socket> sockets = {};
  bool last = true;
  std::string state = {};  ///< used by the last offer: the bytes of HandoverState, which are secret
  bool operator==(const HandoverMessage&) const = default;
};

/// Returns `text` as a message can carry it: cut to text_bytes_max, with `?` for each character
/// that is not printable ASCII.
std::string handover_text(std::string_view text);

/// Returns the bytes of a message. Each of its texts is one that handover_text() leaves unchanged.
std::vector<std::byte> encode(const HandoverMessage& message);

/// Returns the message in `packet`.
/// Errors: Errc::unsupported for another version, Errc::bad_input for everything else.
Result<HandoverMessage> decode_handover(Bytes packet);

/// A HandoverConnection carries HandoverMessages between two processes; each platform has its own
/// implementation. HandoverEndpoint::notify() interrupts its waits. The destructor closes it.
/// Threads: one at a time.
/// Lifetime: its endpoint and its platform outlive it.
class HandoverConnection {
 public:
  virtual ~HandoverConnection();

  /// Returns the reason, for log lines, why this process must not talk to the other one. Empty if
  /// the other process belongs to this user or to root.
  virtual std::string peer_rejection_reason() = 0;

  enum class ReceiveResult : std::uint8_t {
    message,           ///< a message, in message(); its sockets are in take_sockets()
    interrupted,       ///< a call of HandoverEndpoint::notify(), which is consumed
    timed_out,         ///< nothing before the deadline
    closed,            ///< end of the connection: the other process has gone
    invalid,           ///< bytes that are not a message
    version_mismatch,  ///< a message of another protocol version
  };
  /// Waits for the next event, at most until `until`. A message that was sent before the end is
  /// received before the end.
  virtual ReceiveResult receive(Instant until) = 0;
  /// Waits like receive(), but ignores interruptions.
  ReceiveResult receive_uninterrupted(Instant until);
  const HandoverMessage& message() const noexcept { return message_; }
  bool is_message(ReceiveResult received, HandoverMessage::Kind kind) const noexcept {
    return received == ReceiveResult::message && message_.kind == kind;
  }
  /// Returns one descriptor for each socket that message() names.
  std::vector<Descriptor> take_sockets() noexcept { return std::move(sockets_); }
  /// Returns the state of message(). The connection erases its own copy.
  std::string take_state();

  /// Sends a message, with one descriptor for each socket that it names. `sockets` stay open in
  /// this process. Does not wait.
  /// Errors: EPIPE or ECONNRESET if the other process has gone; EAGAIN if it does not read its
  /// messages.
  Result<> send(const HandoverMessage& message, std::span<const int> sockets = {}) {
    return do_send(message, sockets);
  }
  /// Sends a reject message with this reason. Ignores errors.
  void reject(std::string_view why);
  /// Makes every later send of the other process fail. Earlier messages of the other process can
  /// still be received.
  virtual void shut_down_receiving() noexcept = 0;

 protected:
  virtual Result<> do_send(const HandoverMessage& message, std::span<const int> sockets) = 0;

  HandoverMessage message_;
  std::vector<Descriptor> sockets_;
};

/// Returns the reason, for log lines, why this is not the message that was expected.
std::string describe(HandoverConnection::ReceiveResult received, const HandoverMessage& message);

// The rendezvous of the processes of one service; each platform has its own implementation.

/// A HandoverEndpoint is one process' side of the rendezvous. Its name stays the same and belongs
/// to the process that took over last. Its socket, to which newer processes connect, passes from
/// process to process.
/// Threads: one at a time, except for notify().
/// Lifetime: its platform outlives it.
class HandoverEndpoint {
 public:
  virtual ~HandoverEndpoint() = default;

  /// Returns the name of the rendezvous, for log lines.
  virtual std::string name() const = 0;
  /// Connects to the older process. Listens, as the first process, if no older one is there.
  /// Returns: the connection to the older process; nullptr if there is none and the rendezvous is
  /// this process' own.
  /// Errors: the platform's.
  virtual Result<std::unique_ptr<HandoverConnection>> connect_or_listen() = 0;
  /// Returns the socket to which newer processes connect, while this process has it.
  virtual const Descriptor& socket() const noexcept = 0;
  /// Stores the socket that an older process has passed on.
  virtual void set_socket(Descriptor socket) = 0;
  /// Makes this process responsible for the name: close() removes it.
  virtual void take_ownership() noexcept = 0;
  /// Leaves the name to a newer process.
  virtual void drop_ownership() noexcept = 0;
  /// Closes the socket. Removes the name if it still exists and is this process' own.
  virtual void close() noexcept = 0;

  /// Waits until a newer process connects. A platform where foreign processes can connect waits for
  /// the first message of the connection too.
  /// Returns: the connection; nullptr if no process connected or if notify() was called first.
  virtual std::unique_ptr<HandoverConnection> accept_newer() = 0;
  /// Waits for notify(), at most until `until`.
  /// Returns: true if notify() was called, which this consumes.
  virtual bool wait(Instant until) = 0;
  /// Interrupts the current or the next wait, of the endpoint or of one of its connections.
  /// Threads: any.
  virtual void notify() noexcept = 0;
};

}  // namespace weir::loop
