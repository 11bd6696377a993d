// The contract fixture: it opens sockets, starts operations and turns the loops, and keeps
// everything until its end.
#include "weir/testing/test/contract/contract_fixture.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace weir {
namespace {

constexpr Duration wait_max = std::chrono::seconds(20);
// Limit for a platform whose clock does not move on its own.
constexpr unsigned turns_max = 1'000'000;

std::unique_ptr<Loop> make_loop(loop::Platform& platform, BackendChoice choice, unsigned core) {
  Loop::Options options;
  options.backend = choice;
  options.core = core;
  auto loop = Loop::make(platform, options);
  if (!loop) throw std::runtime_error("no loop: " + loop.error().message());
  return std::move(*loop);
}

}  // namespace

ContractFixture::ContractFixture(const Subject& subject)
    : environment_(subject.environment),
      loop_(make_loop(subject.environment.platform(), subject.choice, 0)),
      blocks_(loop_->blocks()),
      choice_(subject.choice),
      unread_overshoot_(subject.unread_overshoot),
      active_loop_(loop_.get()) {}

ContractFixture::~ContractFixture() {
  environment_.allow_descriptors();
  const auto cancel_all = [&](auto& probes, auto probe_of) {
    for (auto& each : probes) {
      loop::Operation& operation = probe_of(each);
      if (operation.state() == loop::Operation::State::pending) cancel(operation);
    }
  };
  const auto same = [](auto& probe) -> loop::Operation& { return probe; };
  cancel_all(receives_, same);
  cancel_all(accepts_, same);
  cancel_all(connects_, same);
  const auto held = [](auto& each) -> loop::Operation& { return each.probe; };
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
  if (!rested) std::abort();  // a backend still uses the memory, so it cannot be freed
  while (!sockets_.empty()) close(*const_cast<loop::Socket*>(sockets_.begin()->first));
}

void ContractFixture::abort_test(const std::string& what, std::error_code error) {
  throw std::runtime_error(error ? what + ": " + error.message() : what);
}

Loop& ContractFixture::other_loop() {
  if (other_ == nullptr) other_ = make_loop(platform(), choice_, 1);
  return *other_;
}

loop::Backend& ContractFixture::backend_of(const loop::Socket& socket) {
  return sockets_.at(&socket)->backend();
}

loop::Socket& ContractFixture::adopt(loop::Descriptor descriptor, loop::SocketOptions options) {
  const auto socket = active_loop_->backend().adopt(std::move(descriptor), options);
  if (!socket) abort_test("adopt", socket.error());
  sockets_.emplace(*socket, active_loop_);
  return **socket;
}

loop::Socket& ContractFixture::listen(const os::Address& address, const ListenOptions& options) {
  auto descriptor = platform().listen(address, options);
  if (!descriptor) abort_test("listen on " + address.to_string(), descriptor.error());
  return adopt(std::move(*descriptor), {.role = loop::SocketRole::listener});
}

loop::Socket& ContractFixture::open(const os::Address& peer, loop::SocketOptions options) {
  auto descriptor = platform().open_stream(peer);
  if (!descriptor) abort_test("open a stream", descriptor.error());
  return adopt(std::move(*descriptor), options);
}

loop::Socket& ContractFixture::open_datagrams(const loop::DatagramOptions& options) {
  auto descriptor = platform().open_datagrams(options);
  if (!descriptor) abort_test("open a datagram socket", descriptor.error());
  return adopt(std::move(*descriptor), {.role = loop::SocketRole::datagrams});
}

os::Address ContractFixture::address_of(const loop::Socket& socket) {
  const auto address = platform().local_address(socket.descriptor);
  if (!address) abort_test("local address", address.error());
  return *address;
}

ContractFixture::Pair ContractFixture::connect_to(loop::Socket& listener,
                                                  loop::SocketOptions options) {
  const os::Address address = address_of(listener);
  loop::Socket& client = open(address, options);
  AcceptProbe& accepted = accept(listener);
  ConnectProbe& connected = finish(start_connect(client, address));
  if (connected.error()) abort_test("connect", connected.error());
  finish(accepted);
  if (accepted.error()) abort_test("accept", accepted.error());
  return {client, adopt(std::move(accepted.accepted), options)};
}

ContractFixture::Pair ContractFixture::connect(loop::SocketOptions options) {
  loop::Socket& listener = listen();
  const Pair pair = connect_to(listener, options);
  close(listener);
  return pair;
}

loop::Socket& ContractFixture::accept_one(loop::Socket& listener) {
  AcceptProbe& accepted = finish(accept(listener));
  if (accepted.error()) abort_test("accept", accepted.error());
  return adopt(std::move(accepted.accepted));
}

void ContractFixture::close(loop::Socket& socket) {
  loop::Backend& backend = backend_of(socket);
  sockets_.erase(&socket);
  backend.close(socket);
}

void ContractFixture::reset(loop::Socket& socket) {
  environment_.reset_on_close(socket.descriptor);
  close(socket);
}

ReceiveProbe& ContractFixture::receive(loop::Socket& socket, MutableBytes target) {
  ReceiveProbe& probe = receives_.emplace_back();
  probe.target = target;
  start(backend_of(socket), socket, probe);
  return probe;
}

SendProbe& ContractFixture::send(loop::Socket& socket, std::string text) {
  std::vector<std::string> texts;
  texts.push_back(std::move(text));
  return send_pieces(socket, std::move(texts));
}

SendProbe& ContractFixture::send_pieces(loop::Socket& socket, std::vector<std::string> texts) {
  PendingSend& held = sends_.emplace_back();
  held.texts = std::move(texts);
  for (const std::string& text : held.texts) held.pieces.push_back(to_bytes(text));
  held.probe.pieces = held.pieces;
  start(backend_of(socket), socket, held.probe);
  return held.probe;
}

AcceptProbe& ContractFixture::accept(loop::Socket& listener) {
  AcceptProbe& probe = accepts_.emplace_back();
  start(backend_of(listener), listener, probe);
  return probe;
}

ConnectProbe& ContractFixture::start_connect(loop::Socket& socket, const os::Address& peer) {
  ConnectProbe& probe = connects_.emplace_back();
  probe.peer = peer;
  start(backend_of(socket), socket, probe);
  return probe;
}

ReceiveDatagramsProbe& ContractFixture::receive_datagrams(loop::Socket& socket, std::size_t slots,
                                                          std::uint32_t bytes_max) {
  PendingReceive& held = datagram_receives_.emplace_back();
  held.slots.resize(slots);
  held.probe.target = held.slots;
  held.probe.bytes_max = bytes_max;
  start(backend_of(socket), socket, held.probe);
  return held.probe;
}

SendDatagramsProbe& ContractFixture::send_datagrams(loop::Socket& socket,
                                                    std::vector<std::string> texts,
                                                    const os::Address& peer) {
  PendingDatagrams& held = datagram_sends_.emplace_back();
  held.texts = std::move(texts);
  for (const std::string& text : held.texts) held.datagrams.push_back({to_bytes(text), peer});
  held.probe.datagrams = held.datagrams;
  start(backend_of(socket), socket, held.probe);
  return held.probe;
}

HangupProbe& ContractFixture::observe(loop::Socket& socket, loop::HangupObserver::Event event) {
  HangupProbe& observer = observers_.emplace_back(event);
  backend_of(socket).observe_hangup(socket, &observer);
  return observer;
}

void ContractFixture::turn() {
  if (other_ == nullptr) {
    // A wait right after work was done would delay the work that follows.
    const Instant now = platform().now();
    busy_ = loop_->turn(busy_ ? now : after(now, std::chrono::milliseconds(5)));
    return;
  }
  loop_->turn(platform().now());
  other_->turn(platform().now());
}

bool ContractFixture::until(const std::function<bool()>& done) {
  const Instant end = after(platform().now(), wait_max);
  for (unsigned turns = 0; !done(); ++turns) {
    if (platform().now() >= end || turns == turns_max) return false;
    turn();
  }
  return true;
}

void ContractFixture::settle() {
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

void ContractFixture::write(loop::Socket& socket, std::string text) {
  SendProbe& sent = finish(send(socket, std::move(text)));
  if (sent.error()) abort_test("send", sent.error());
}

Result<> ContractFixture::read_once(loop::Socket& socket, std::string& text) {
  ReceiveProbe& received = finish(receive(socket));
  if (received.error()) return fail(received.error());
  if (received.buffer.empty()) abort_test("a receive finished without a byte");
  text += received.buffer.text();
  received.buffer = {};
  return {};
}

std::string ContractFixture::read(loop::Socket& socket, std::size_t size) {
  std::string text;
  while (text.size() < size) {
    if (const auto read = read_once(socket, text); !read) {
      abort_test("receive after " + std::to_string(text.size()) + " bytes", read.error());
    }
  }
  if (text.size() > size) abort_test("more bytes than were expected");
  return text;
}

std::string ContractFixture::read_all(loop::Socket& socket) {
  std::string text;
  for (;;) {
    const auto read = read_once(socket, text);
    if (read) continue;
    if (read.error() != Errc::end_of_stream) abort_test("receive", read.error());
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
