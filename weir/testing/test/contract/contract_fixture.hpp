// The fixture of the backend contract: a platform, one or two loops, sockets and pending
// operations.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/loop.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir {

/// The functions of a platform that contract tests need in addition to its own contract.
class ContractEnvironment {
 public:
  virtual ~ContractEnvironment() = default;
  virtual loop::Platform& platform() = 0;
  virtual std::size_t open_descriptors() = 0;
  /// Makes every open fail (EMFILE) until allow_descriptors().
  virtual void forbid_descriptors() = 0;
  virtual void allow_descriptors() = 0;
  /// Makes close() of this connection reset it.
  virtual void reset_on_close(int descriptor) = 0;
  /// Returns an unused address for a Unix socket.
  virtual os::Address fresh_local_address() = 0;
};

/// A ContractFixture runs one clause. Both ends of every connection are on its own loops, so no
/// clause needs a thread. The blocks of its loop are the current ones while it exists. A failure
/// that no clause can check throws std::runtime_error. Its destructor cancels and closes
/// everything that is left.
class ContractFixture {
 public:
  struct Subject {
    ContractEnvironment& environment;
    BackendChoice choice;
    /// Maximum number of bytes that a backend may read ahead beyond a stream's `unread_max`.
    std::size_t unread_overshoot = 256 * 1024;
  };
  explicit ContractFixture(const Subject& subject);
  ~ContractFixture();
  ContractFixture(const ContractFixture&) = delete;
  ContractFixture& operator=(const ContractFixture&) = delete;

  ContractEnvironment& environment() noexcept { return environment_; }
  loop::Platform& platform() noexcept { return environment_.platform(); }
  std::size_t unread_overshoot() const noexcept { return unread_overshoot_; }
  Loop& loop() noexcept { return *loop_; }
  loop::Backend& backend() noexcept { return loop_->backend(); }
  /// Returns a second loop on this thread; the first call makes it. Both loops are turned from
  /// then on.
  Loop& other_loop();
  /// Makes `loop` the owner of everything that is opened from now on.
  void use(Loop& loop) noexcept { active_loop_ = &loop; }

  // Sockets. close() or the destructor closes them.

  loop::Socket& adopt(loop::Descriptor descriptor, loop::SocketOptions options = {});
  loop::Socket& listen(const os::Address& address = os::Address::loopback(0),
                       const ListenOptions& options = {});
  loop::Socket& open(const os::Address& peer, loop::SocketOptions options = {});
  loop::Socket& open_datagrams(const loop::DatagramOptions& options);
  /// Opens an unconnected socket on a port of its own.
  loop::Socket& open_datagrams() { return open_datagrams({.local = os::Address::loopback(0)}); }
  os::Address address_of(const loop::Socket& socket);
  struct Pair {
    loop::Socket& client;
    loop::Socket& server;
  };
  /// Connects through `listener`; no other connection may wait there.
  Pair connect_to(loop::Socket& listener, loop::SocketOptions options = {});
  Pair connect(loop::SocketOptions options = {});
  /// Accepts one connection.
  loop::Socket& accept_one(loop::Socket& listener);
  void close(loop::Socket& socket);
  /// Closes the socket, which is not a Unix socket, so that the other side sees a reset.
  void reset(loop::Socket& socket);
  loop::Backend& backend_of(const loop::Socket& socket);

  // Operations. They live until the end of the fixture, so a failed clause leaves no dangling
  // pointer.

  ReceiveProbe& receive(loop::Socket& socket, MutableBytes target = {});
  SendProbe& send(loop::Socket& socket, std::string text);
  SendProbe& send_pieces(loop::Socket& socket, std::vector<std::string> texts);
  AcceptProbe& accept(loop::Socket& listener);
  ConnectProbe& start_connect(loop::Socket& socket, const os::Address& peer);
  /// Receives into `slots` slots that the fixture owns; `target` of the probe refers to them.
  ReceiveDatagramsProbe& receive_datagrams(loop::Socket& socket, std::size_t slots = 1,
                                           std::uint32_t bytes_max = Buffer::default_capacity);
  /// Sends all texts to `peer`.
  SendDatagramsProbe& send_datagrams(loop::Socket& socket, std::vector<std::string> texts,
                                     const os::Address& peer = {});
  void cancel(loop::Operation& operation) { backend_of(*operation.socket()).cancel(operation); }
  HangupProbe& observe_hangup(loop::Socket& socket) {
    return observe(socket, loop::HangupObserver::Event::hangup);
  }
  HangupProbe& observe_input(loop::Socket& socket) {
    return observe(socket, loop::HangupObserver::Event::input);
  }

  // Turning.

  void turn();
  /// Turns the loops until `done` returns true, for at most 20 s of the platform's time.
  /// Returns: true if `done` returned true.
  [[nodiscard]] bool until(const std::function<bool()>& done);
  /// Turns the loops until the operation is done.
  template <class P>
  P& finish(P& probe) {
    if (!until([&] { return probe.done(); })) abort_test("an operation does not finish");
    return probe;
  }
  /// Lets all data in flight arrive: two messages make a round trip on a new connection.
  void settle();
  /// Sends `text` and expects success.
  void write(loop::Socket& socket, std::string text);
  /// Receives exactly `size` bytes, in buffers of the backend.
  std::string read(loop::Socket& socket, std::size_t size);
  /// Receives once, and appends the bytes to `text`.
  Result<> read_once(loop::Socket& socket, std::string& text);
  /// Receives until the end of the stream.
  std::string read_all(loop::Socket& socket);

 private:
  struct PendingSend {
    SendProbe probe;
    std::vector<std::string> texts;
    std::vector<Bytes> pieces;
  };
  struct PendingReceive {
    ReceiveDatagramsProbe probe;
    std::vector<loop::Datagram> slots;
  };
  struct PendingDatagrams {
    SendDatagramsProbe probe;
    std::vector<std::string> texts;
    std::vector<loop::OutgoingDatagram> datagrams;
  };
  [[noreturn]] static void abort_test(const std::string& what, std::error_code error = {});
  HangupProbe& observe(loop::Socket& socket, loop::HangupObserver::Event event);

  ContractEnvironment& environment_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Loop> other_;
  ScopedBlockPool blocks_;
  BackendChoice choice_;
  std::size_t unread_overshoot_;
  Loop* active_loop_;
  bool busy_ = false;  // true if the last turn did work
  std::map<const loop::Socket*, Loop*> sockets_;
  std::list<ReceiveProbe> receives_;
  std::list<PendingSend> sends_;
  std::list<AcceptProbe> accepts_;
  std::list<ConnectProbe> connects_;
  std::list<HangupProbe> observers_;
  std::list<PendingReceive> datagram_receives_;
  std::list<PendingDatagrams> datagram_sends_;
};

/// Returns `size` pseudo-random bytes without repetition that depend on `seed` alone.
std::string pattern(std::size_t size, std::uint64_t seed);

}  // namespace weir
