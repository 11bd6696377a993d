// The bench on which a backend is tried: a host, one or two loops, sockets, and what is pending.
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

/// What a contract test needs of a host beyond its contract.
class ContractWorld {
 public:
  virtual ~ContractWorld() = default;
  virtual Host& host() = 0;
  virtual std::size_t open_descriptors() = 0;
  /// Nothing more can be opened (EMFILE) until allow_descriptors().
  virtual void forbid_descriptors() = 0;
  virtual void allow_descriptors() = 0;
  /// Closing this connection from now on resets it.
  virtual void reset_on_close(int descriptor) = 0;
  /// A name for a Unix socket that nobody uses.
  virtual os::Address fresh_local_address() = 0;
};

/// Both ends of every connection are on the bench's own loops, so nothing here needs a thread. Its
/// core's blocks are the current ones while it exists. What has gone wrong beyond what a clause
/// can check is thrown as std::runtime_error. At its end it cancels and closes what is left.
class ContractBench {
 public:
  struct Subject {
    ContractWorld& world;
    BackendChoice choice;
    /// By how much reading ahead may go beyond a stream's `unread_max`.
    std::size_t unread_overshoot = 256 * 1024;
  };
  explicit ContractBench(const Subject& subject);
  ~ContractBench();
  ContractBench(const ContractBench&) = delete;
  ContractBench& operator=(const ContractBench&) = delete;

  ContractWorld& world() noexcept { return world_; }
  Host& host() noexcept { return world_.host(); }
  std::size_t unread_overshoot() const noexcept { return unread_overshoot_; }
  Loop& loop() noexcept { return *loop_; }
  Backend& backend() noexcept { return loop_->backend(); }
  /// A second loop on this thread, made by the first call; from then on both are turned.
  Loop& other_loop();
  /// Everything that is opened from here on belongs to this loop.
  void use(Loop& loop) noexcept { used_ = &loop; }

  // Sockets. What is opened is closed by close() or at the end.

  Socket& adopt(Descriptor descriptor, SocketOptions options = {});
  Socket& listen(const os::Address& address = os::Address::loopback(0),
                 const ListenOptions& options = {});
  Socket& open(const os::Address& peer, SocketOptions options = {});
  Socket& open_datagrams(const DatagramOptions& options);
  /// One on a port of its own that talks with everybody.
  Socket& open_datagrams() { return open_datagrams({.local = os::Address::loopback(0)}); }
  os::Address address_of(const Socket& socket);
  struct Pair {
    Socket& client;
    Socket& server;
  };
  /// A connection through `listener`, with nothing else waiting there.
  Pair connect_to(Socket& listener, SocketOptions options = {});
  Pair connect(SocketOptions options = {});
  /// An accepted connection.
  Socket& accept_one(Socket& listener);
  void close(Socket& socket);
  /// Closes it so that the other side sees a reset. Not for Unix sockets.
  void reset(Socket& socket);
  Backend& backend_of(const Socket& socket);

  // Operations. What is started lives until the end, so a failed clause leaves nothing dangling.

  ReceiveProbe& receive(Socket& socket, MutableBytes target = {});
  SendProbe& send(Socket& socket, std::string text);
  SendProbe& send_pieces(Socket& socket, std::vector<std::string> texts);
  AcceptProbe& accept(Socket& listener);
  ConnectProbe& start_connect(Socket& socket, const os::Address& peer);
  /// Into slots of its own, which `target` names.
  ReceiveDatagramsProbe& receive_datagrams(Socket& socket, std::size_t slots = 1,
                                           std::uint32_t bytes_max = Buffer::default_capacity);
  /// All to `peer`.
  SendDatagramsProbe& send_datagrams(Socket& socket, std::vector<std::string> texts,
                                     const os::Address& peer = {});
  void cancel(Operation& operation) { backend_of(*operation.socket()).cancel(operation); }
  HangupProbe& watch(Socket& socket);

  // Turning.

  void turn();
  /// Turns until `done`, at most 20 s of the host's time. Returns whether it came to that.
  [[nodiscard]] bool until(const std::function<bool()>& done);
  /// Turns until the operation is done.
  template <class P>
  P& finish(P& probe) {
    if (!until([&] { return probe.done(); })) give_up("an operation does not finish");
    return probe;
  }
  /// Lets everything that is on its way arrive: two messages go round trip on a fresh connection.
  void settle();
  /// Sends and expects success.
  void write(Socket& socket, std::string text);
  /// Receives exactly `size` bytes, through lent buffers.
  std::string read(Socket& socket, std::size_t size);
  /// Receives until the end of the stream.
  std::string read_all(Socket& socket);

 private:
  struct HeldSend {
    SendProbe probe;
    std::vector<std::string> texts;
    std::vector<Bytes> pieces;
  };
  struct HeldReceive {
    ReceiveDatagramsProbe probe;
    std::vector<Datagram> slots;
  };
  struct HeldDatagrams {
    SendDatagramsProbe probe;
    std::vector<std::string> texts;
    std::vector<OutgoingDatagram> datagrams;
  };
  [[noreturn]] static void give_up(const std::string& what, std::error_code error = {});
  Result<> read_once(Socket& socket, std::string& text);

  ContractWorld& world_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Loop> other_;
  BlockPool::Use blocks_;
  BackendChoice choice_;
  std::size_t unread_overshoot_;
  Loop* used_;
  bool busy_ = false;  // the last turn has done something
  std::map<const Socket*, Loop*> sockets_;
  std::list<ReceiveProbe> receives_;
  std::list<HeldSend> sends_;
  std::list<AcceptProbe> accepts_;
  std::list<ConnectProbe> connects_;
  std::list<HangupProbe> watchers_;
  std::list<HeldReceive> datagram_receives_;
  std::list<HeldDatagrams> datagram_sends_;
};

/// `size` bytes that look random, repeat nowhere and depend on `seed` alone.
std::string pattern(std::size_t size, std::uint64_t seed);

}  // namespace weir
