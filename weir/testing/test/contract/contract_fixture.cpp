// The bench: opening, starting and turning, with everything kept until its end.
#include "weir/testing/test/contract/contract_fixture.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace weir {
namespace {

constexpr Duration patience = std::chrono::seconds(20);
// Of a host whose clock does not move by itself.
constexpr unsigned turns_max = 1'000'000;

std::unique_ptr<Loop> make_loop(Host& host, BackendChoice choice, unsigned core) {
  Loop::Options options;
  options.backend = choice;
  options.core = core;
  auto loop = Loop::make(host, options);
  if (!loop) throw std::runtime_error("no loop: " + loop.error().message());
  return std::move(*loop);
}

}  // namespace

ContractBench::ContractBench(const Subject& subject)
    : world_(subject.world),
      loop_(make_loop(subject.world.host(), subject.choice, 0)),
      blocks_(loop_->blocks()),
      choice_(subject.choice),
      unread_overshoot_(subject.unread_overshoot),
      used_(loop_.get()) {}

ContractBench::~ContractBench() {
  world_.allow_descriptors();
  const auto cancel_all = [&](auto& probes, auto probe_of) {
    for (auto& each : probes) {
      Operation& operation = probe_of(each);
      if (operation.state() == Operation::State::pending) cancel(operation);
    }
  };
  const auto same = [](auto& probe) -> Operation& { return probe; };
  cancel_all(receives_, same);
  cancel_all(accepts_, same);
  cancel_all(connects_, same);
  const auto held = [](auto& each) -> Operation& { return each.probe; };
  cancel_all(sends_, held);
  cancel_all(datagram_receives_, held);
  cancel_all(datagram_sends_, held);
  const auto at_rest = [](const auto& probe) { return probe.at_rest(); };
  const auto held_at_rest = [](const auto& each) { return each.probe.at_rest(); };
  const bool rested = until([&] {
    return std::ranges::all_of(receives_, at_rest) && std::ranges::all_of(accepts_, at_rest) &&
           std::ranges::all_of(connects_, at_rest) && std::ranges::all_of(sends_, held_at_rest) &&
           std::ranges::all_of(datagram_receives_, held_at_rest) &&
           std::ranges::all_of(datagram_sends_, held_at_rest);
  });
  if (!rested) std::abort();  // memory that a backend still uses cannot be freed
  while (!sockets_.empty()) close(*const_cast<Socket*>(sockets_.begin()->first));
}

void ContractBench::give_up(const std::string& what, std::error_code error) {
  throw std::runtime_error(error ? what + ": " + error.message() : what);
}

Loop& ContractBench::other_loop() {
  if (other_ == nullptr) other_ = make_loop(host(), choice_, 1);
  return *other_;
}

Backend& ContractBench::backend_of(const Socket& socket) {
  return sockets_.at(&socket)->backend();
}

Socket& ContractBench::adopt(Descriptor descriptor, SocketOptions options) {
  const auto socket = used_->backend().adopt(std::move(descriptor), options);
  if (!socket) give_up("adopt", socket.error());
  sockets_.emplace(*socket, used_);
  return **socket;
}

Socket& ContractBench::listen(const os::Address& address, const ListenOptions& options) {
  auto descriptor = host().listen(address, options);
  if (!descriptor) give_up("listen on " + address.to_string(), descriptor.error());
  return adopt(std::move(*descriptor), {.role = SocketRole::listener});
}

Socket& ContractBench::open(const os::Address& peer, SocketOptions options) {
  auto descriptor = host().open_stream(peer);
  if (!descriptor) give_up("open a stream", descriptor.error());
  return adopt(std::move(*descriptor), options);
}

Socket& ContractBench::open_datagrams(const DatagramOptions& options) {
  auto descriptor = host().open_datagrams(options);
  if (!descriptor) give_up("open a datagram socket", descriptor.error());
  return adopt(std::move(*descriptor), {.role = SocketRole::datagrams});
}

os::Address ContractBench::address_of(const Socket& socket) {
  const auto address = host().local_address(socket.descriptor);
  if (!address) give_up("local address", address.error());
  return *address;
}

ContractBench::Pair ContractBench::connect_to(Socket& listener, SocketOptions options) {
  const os::Address address = address_of(listener);
  Socket& client = open(address, options);
  AcceptProbe& accepted = accept(listener);
  ConnectProbe& connected = finish(start_connect(client, address));
  if (connected.error()) give_up("connect", connected.error());
  finish(accepted);
  if (accepted.error()) give_up("accept", accepted.error());
  return {client, adopt(std::move(accepted.accepted), options)};
}

ContractBench::Pair ContractBench::connect(SocketOptions options) {
  Socket& listener = listen();
  const Pair pair = connect_to(listener, options);
  close(listener);
  return pair;
}

Socket& ContractBench::accept_one(Socket& listener) {
  AcceptProbe& accepted = finish(accept(listener));
  if (accepted.error()) give_up("accept", accepted.error());
  return adopt(std::move(accepted.accepted));
}

void ContractBench::close(Socket& socket) {
  Backend& backend = backend_of(socket);
  sockets_.erase(&socket);
  backend.close(socket);
}

void ContractBench::reset(Socket& socket) {
  world_.reset_on_close(socket.descriptor);
  close(socket);
}

ReceiveProbe& ContractBench::receive(Socket& socket, MutableBytes target) {
  ReceiveProbe& probe = receives_.emplace_back();
  probe.target = target;
  start(backend_of(socket), socket, probe);
  return probe;
}

SendProbe& ContractBench::send(Socket& socket, std::string text) {
  std::vector<std::string> texts;
  texts.push_back(std::move(text));
  return send_pieces(socket, std::move(texts));
}

SendProbe& ContractBench::send_pieces(Socket& socket, std::vector<std::string> texts) {
  HeldSend& held = sends_.emplace_back();
  held.texts = std::move(texts);
  for (const std::string& text : held.texts) held.pieces.push_back(to_bytes(text));
  held.probe.pieces = held.pieces;
  start(backend_of(socket), socket, held.probe);
  return held.probe;
}

AcceptProbe& ContractBench::accept(Socket& listener) {
  AcceptProbe& probe = accepts_.emplace_back();
  start(backend_of(listener), listener, probe);
  return probe;
}

ConnectProbe& ContractBench::start_connect(Socket& socket, const os::Address& peer) {
  ConnectProbe& probe = connects_.emplace_back();
  probe.peer = peer;
  start(backend_of(socket), socket, probe);
  return probe;
}

ReceiveDatagramsProbe& ContractBench::receive_datagrams(Socket& socket, std::size_t slots,
                                                        std::uint32_t bytes_max) {
  HeldReceive& held = datagram_receives_.emplace_back();
  held.slots.resize(slots);
  held.probe.target = held.slots;
  held.probe.bytes_max = bytes_max;
  start(backend_of(socket), socket, held.probe);
  return held.probe;
}

SendDatagramsProbe& ContractBench::send_datagrams(Socket& socket, std::vector<std::string> texts,
                                                  const os::Address& peer) {
  HeldDatagrams& held = datagram_sends_.emplace_back();
  held.texts = std::move(texts);
  for (const std::string& text : held.texts) held.datagrams.push_back({to_bytes(text), peer});
  held.probe.datagrams = held.datagrams;
  start(backend_of(socket), socket, held.probe);
  return held.probe;
}

HangupProbe& ContractBench::watch(Socket& socket) {
  HangupProbe& watcher = watchers_.emplace_back();
  backend_of(socket).watch(socket, &watcher);
  return watcher;
}

void ContractBench::turn() {
  if (other_ == nullptr) {
    // Who waits right after something has finished delays what runs because of it.
    const Instant now = host().now();
    busy_ = loop_->turn(busy_ ? now : after(now, std::chrono::milliseconds(5)));
    return;
  }
  loop_->turn(host().now());
  other_->turn(host().now());
}

bool ContractBench::until(const std::function<bool()>& done) {
  const Instant end = after(host().now(), patience);
  for (unsigned turns = 0; !done(); ++turns) {
    if (host().now() >= end || turns == turns_max) return false;
    turn();
  }
  return true;
}

void ContractBench::settle() {
  const Pair pair = connect();
  for (int round = 0; round < 2; ++round) {
    write(pair.client, "there");
    read(pair.server, 5);
    write(pair.server, "back");
    read(pair.client, 4);
  }
  close(pair.client);
  close(pair.server);
}

void ContractBench::write(Socket& socket, std::string text) {
  SendProbe& sent = finish(send(socket, std::move(text)));
  if (sent.error()) give_up("send", sent.error());
}

Result<> ContractBench::read_once(Socket& socket, std::string& text) {
  ReceiveProbe& received = finish(receive(socket));
  if (received.error()) return fail(received.error());
  if (received.buffer.empty()) give_up("a receive finished without a byte");
  text += received.buffer.text();
  received.buffer = {};
  return {};
}

std::string ContractBench::read(Socket& socket, std::size_t size) {
  std::string text;
  while (text.size() < size) {
    if (const auto read = read_once(socket, text); !read) {
      give_up("receive after " + std::to_string(text.size()) + " bytes", read.error());
    }
  }
  if (text.size() > size) give_up("more bytes than were expected");
  return text;
}

std::string ContractBench::read_all(Socket& socket) {
  std::string text;
  for (;;) {
    const auto read = read_once(socket, text);
    if (read) continue;
    if (read.error() != Errc::end_of_stream) give_up("receive", read.error());
    return text;
  }
}

std::string pattern(std::size_t size, std::uint64_t seed) {
  std::string text(size, '\0');
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::size_t at = 0; at < size; at += sizeof state) {
    state ^= state << 13;  // xorshift64 (Marsaglia, "Xorshift RNGs", 2003)
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(text.data() + at, &state, std::min(sizeof state, size - at));
  }
  return text;
}

}  // namespace weir
