// What the network and the file system are asked for, cancelled at any time on every real backend;
// see tests/cancel_sweep.hpp.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/cancel_sweep.hpp"
#include "weir/net/dns/connect.hpp"
#include "weir/net/files.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/resolver.hpp"
#include "weir/net/tcp.hpp"
#include "weir/net/udp.hpp"
#include "weir/net/listen/unix_socket.hpp"
#include "weir/task/combinators.hpp"

namespace weir::tests {
namespace {

Task<> write_all(tcp::Stream* stream, std::string_view text) {
  co_await yield();
  EXPECT_TRUE(co_await stream->write(text));
}

/// The four bytes of "late", of which some have come already.
Task<std::string> read_rest(tcp::Stream& stream, std::string_view come) {
  std::string whole(come);
  while (whole.size() < 4) {
    const auto bytes = co_await stream.read();
    EXPECT_TRUE(bytes) << "behind " << whole;
    if (!bytes) break;
    whole += bytes->text();
  }
  co_return whole;
}

Task<> reading(Blow& blow, Stage& stage) {
  Pair pair = co_await connect_pair();
  stage.spawn(write_all(&pair.far, "late"));
  const auto bytes = co_await blow.strike(as_task(pair.near.read()));
  co_await stage.quiet();
  const std::string_view come = succeeded(bytes) ? bytes->text() : std::string_view();
  EXPECT_EQ(co_await read_rest(pair.near, come), "late");
}

Task<> reading_into_a_span(Blow& blow, Stage& stage) {
  Pair pair = co_await connect_pair();
  stage.spawn(write_all(&pair.far, "late"));
  std::array<std::byte, 16> room{};
  const auto count = co_await blow.strike(as_task(pair.near.read_into(room)));
  co_await stage.quiet();
  const Bytes come = Bytes(room).first(succeeded(count) ? *count : 0);
  EXPECT_EQ(co_await read_rest(pair.near, to_text(come)), "late");
}

/// Until the end.
Task<> drop_all(tcp::Stream* stream) {
  while (const auto bytes = co_await stream->read()) {
  }
}

Task<> writing(Blow& blow, Stage& stage) {
  Pair pair = co_await connect_pair();
  const std::string much(2'000'000, 'x');
  stage.spawn(drop_all(&pair.far));
  static_cast<void>(succeeded(co_await blow.strike(as_task(pair.near.write(much)))));
  pair.near.close();
  co_await stage.quiet();
}

Task<> listening(Blow& blow, Stage&) {
  static_cast<void>(succeeded(co_await blow.strike(tcp::listen(Endpoint::loopback(0)))));
}

/// An address that somebody else lets go of some rounds later.
class TakenAddress {
 public:
  TakenAddress(Stage& stage, Result<Descriptor> held)
      : held_(std::move(held).value()),
        address_(stage.loop().host().local_address(held_.value()).value()) {
    stage.later([this] { held_.reset(); });
  }
  const Endpoint& address() const noexcept { return address_; }

 private:
  Descriptor held_;
  Endpoint address_;
};

Task<> listening_on_a_taken_address(Blow& blow, Stage& stage) {
  const ListenOptions alone{.reuse_port = false};
  const TakenAddress taken(stage, stage.loop().host().listen(Endpoint::loopback(0), alone));
  static_cast<void>(succeeded(co_await blow.strike(tcp::listen(taken.address()))));
  co_await stage.quiet();
}

Task<> connect_to(Endpoint endpoint, std::optional<tcp::Stream>* stream) {
  co_await yield();
  auto connected = co_await tcp::connect(endpoint);
  EXPECT_TRUE(connected);
  if (connected) stream->emplace(std::move(*connected));
}

Task<> accepting(Blow& blow, Stage& stage) {
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  std::optional<tcp::Stream> far;
  stage.spawn(connect_to(listener->local_address(), &far));
  auto near = co_await blow.strike(as_task(listener->accept()));
  co_await stage.quiet();
  if (!succeeded(near)) near = co_await listener->accept();
  EXPECT_EQ(near->peer_address(), far->local_address());
}

Task<> connecting(Blow& blow, Stage&) {
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  static_cast<void>(succeeded(co_await blow.strike(tcp::connect(listener->local_address()))));
}

Task<> connecting_to_a_name(Blow& blow, Stage&) {
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  const auto port = listener->local_address().port();
  auto connected = tcp::connect(std::string("localhost"), port);
  static_cast<void>(succeeded(co_await blow.strike(std::move(connected))));
}

/// In the abstract namespace, as nobody else has it.
std::string unix_name(const Stage& stage) {
  return "@weir-sweep-" + std::to_string(::getpid()) + "-" +
         std::to_string(reinterpret_cast<std::uintptr_t>(&stage));
}

Task<> connecting_to_a_unix_socket(Blow& blow, Stage& stage) {
  const std::string name = unix_name(stage);
  auto listener = co_await unix_socket::listen(name);
  static_cast<void>(succeeded(co_await blow.strike(unix_socket::connect(name))));
}

Task<> listening_on_a_unix_socket(Blow& blow, Stage& stage) {
  static_cast<void>(succeeded(co_await blow.strike(unix_socket::listen(unix_name(stage)))));
}

Task<> binding_for_datagrams(Blow& blow, Stage&) {
  static_cast<void>(succeeded(co_await blow.strike(udp::bind(Endpoint::loopback(0)))));
}

Task<> binding_to_a_taken_address(Blow& blow, Stage& stage) {
  const DatagramOptions alone{.local = Endpoint::loopback(0)};
  const TakenAddress taken(stage, stage.loop().host().open_datagrams(alone));
  static_cast<void>(succeeded(co_await blow.strike(udp::bind(taken.address()))));
  co_await stage.quiet();
}

Task<> connecting_for_datagrams(Blow& blow, Stage&) {
  auto peer = co_await udp::bind(Endpoint::loopback(0));
  static_cast<void>(succeeded(co_await blow.strike(udp::connect(peer->local_address()))));
}

Task<> send_to(udp::Socket* socket, Endpoint peer) {
  co_await yield();
  EXPECT_TRUE(co_await socket->send("late", peer));
}

Task<> receiving_a_datagram(Blow& blow, Stage& stage) {
  auto near = co_await udp::bind(Endpoint::loopback(0));
  auto far = co_await udp::bind(Endpoint::loopback(0));
  stage.spawn(send_to(&*far, near->local_address()));
  auto datagram = co_await blow.strike(as_task(near->receive()));
  co_await stage.quiet();
  if (!succeeded(datagram)) datagram = co_await near->receive();
  EXPECT_EQ(datagram->buffer.text(), "late");
}

Task<> sending_a_datagram(Blow& blow, Stage&) {
  auto near = co_await udp::bind(Endpoint::loopback(0));
  auto far = co_await udp::bind(Endpoint::loopback(0));
  const Endpoint peer = near->local_address();
  static_cast<void>(succeeded(co_await blow.strike(as_task(far->send("text", peer)))));
}

Task<> receiving_several_datagrams(Blow& blow, Stage& stage) {
  auto near = co_await udp::bind(Endpoint::loopback(0));
  auto far = co_await udp::bind(Endpoint::loopback(0));
  stage.spawn(send_to(&*far, near->local_address()));
  std::array<udp::Datagram, 4> slots;
  auto count = co_await blow.strike(as_task(near->receive(slots)));
  co_await stage.quiet();
  if (!succeeded(count)) count = co_await near->receive(slots);
  EXPECT_EQ(*count, 1U);
  EXPECT_EQ(slots[0].buffer.text(), "late");
}

Task<> sending_several_datagrams(Blow& blow, Stage&) {
  auto near = co_await udp::bind(Endpoint::loopback(0));
  auto far = co_await udp::bind(Endpoint::loopback(0));
  const std::array<udp::Outgoing, 2> both{udp::Outgoing{to_bytes("a"), near->local_address()},
                                          udp::Outgoing{to_bytes("b"), near->local_address()}};
  const bool sent = succeeded(co_await blow.strike(as_task(far->send(both))));
  EXPECT_TRUE(!sent || far->sent() == 2);
}

Task<> asking_a_resolver(Blow& blow, Stage&) {
  names::Resolver resolver;
  static_cast<void>(succeeded(co_await blow.strike(resolver.resolve("localhost", 80))));
}

Task<> looking_up_a_name(Blow& blow, Stage&) {
  static_cast<void>(succeeded(co_await blow.strike(names::resolve("localhost", 80))));
}

constexpr std::array network = {
    SweepCase{"Stream::read", reading},
    SweepCase{"Stream::read_into", reading_into_a_span},
    SweepCase{"Stream::write", writing},
    SweepCase{"tcp::Listener::accept", accepting},
    SweepCase{"tcp::listen", listening},
    SweepCase{"tcp::listen on a taken address", listening_on_a_taken_address},
    SweepCase{"tcp::connect", connecting},
    SweepCase{"tcp::connect to a name", connecting_to_a_name},
    SweepCase{"unix_socket::connect", connecting_to_a_unix_socket},
    SweepCase{"unix_socket::listen", listening_on_a_unix_socket},
    SweepCase{"udp::bind", binding_for_datagrams},
    SweepCase{"udp::bind to a taken address", binding_to_a_taken_address},
    SweepCase{"udp::connect", connecting_for_datagrams},
    SweepCase{"udp::Socket::receive", receiving_a_datagram},
    SweepCase{"udp::Socket::receive of several", receiving_several_datagrams},
    SweepCase{"udp::Socket::send", sending_a_datagram},
    SweepCase{"udp::Socket::send of several", sending_several_datagrams},
    SweepCase{"names::Resolver::resolve", asking_a_resolver},
    SweepCase{"names::resolve", looking_up_a_name},
};

class CancelSweepOfNet : public CancelSweep {};

TEST_P(CancelSweepOfNet, Sockets) {
  sweep_all(network);
}
TEST(CancelSweepInTheWorld, Sockets) {
  sweep_all_in_a_world(network);
}

Task<> opening_a_file(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  folder.write("file", "text");
  static_cast<void>(succeeded(co_await blow.strike(files::open(folder.path("file")))));
}

Task<> reading_a_file(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  folder.write("file", "text");
  auto file = co_await files::open(folder.path("file"));
  auto bytes = co_await blow.strike(file->read());
  if (!succeeded(bytes)) bytes = co_await file->read();
  EXPECT_EQ(bytes->text(), "text");
}

Task<> writing_a_file(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  auto file = co_await files::open(folder.path("file"), files::Mode::replace);
  const bool written = succeeded(co_await blow.strike(file->write("text")));
  const auto text = co_await files::read_file(folder.path("file"));
  EXPECT_TRUE(*text == "text" || (!written && text->empty())) << *text;
}

Task<> syncing_a_file(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  auto file = co_await files::open(folder.path("file"), files::Mode::replace);
  static_cast<void>(succeeded(co_await blow.strike(file->sync())));
}

Task<> replacing_a_file(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  folder.write("file", "old");
  const bool written =
      succeeded(co_await blow.strike(files::write_file(folder.path("file"), "new")));
  const auto text = co_await files::read_file(folder.path("file"));
  EXPECT_TRUE(*text == "new" || (!written && *text == "old")) << *text;
}

Task<> listing_a_directory(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  folder.write("file", "text");
  static_cast<void>(succeeded(co_await blow.strike(files::list(folder.root()))));
}

Task<> reading_at_a_place(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  folder.write("file", "some text");
  auto file = co_await files::open(folder.path("file"));
  const auto bytes = co_await blow.strike(file->read_at(5));
  EXPECT_EQ(succeeded(bytes) ? bytes->text() : "text", "text");
}

Task<> writing_at_a_place(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  auto file = co_await files::open(folder.path("file"), files::Mode::replace);
  static_cast<void>(succeeded(co_await blow.strike(file->write_at(2, to_bytes("text")))));
}

Task<> resizing_a_file(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  auto file = co_await files::open(folder.path("file"), files::Mode::replace);
  const bool resized = succeeded(co_await blow.strike(file->resize(7)));
  const auto status = co_await file->status();
  EXPECT_TRUE(status->size == 7 || (!resized && status->size == 0)) << status->size;
}

Task<> the_status_of_a_file(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  folder.write("file", "text");
  auto file = co_await files::open(folder.path("file"));
  const auto status = co_await blow.strike(file->status());
  EXPECT_EQ(succeeded(status) ? status->size : 4, 4U);
}

Task<> closing_a_file(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  folder.write("file", "text");
  auto file = co_await files::open(folder.path("file"));
  co_await blow.strike(file->close());
}

Task<> reading_a_whole_file(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  folder.write("file", "text");
  const auto text = co_await blow.strike(files::read_file(folder.path("file")));
  EXPECT_EQ(succeeded(text) ? *text : "text", "text");
}

Task<Result<>> write_new(files::File& file) {
  return file.write("new");
}

Task<> filling_a_new_file(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  folder.write("file", "old");
  auto replacing = files::replace(folder.path("file"), write_new);
  const bool replaced = succeeded(co_await blow.strike(std::move(replacing)));
  const auto text = co_await files::read_file(folder.path("file"));
  EXPECT_TRUE(*text == "new" || (!replaced && *text == "old")) << *text;
  const auto entries = co_await files::list(folder.root());
  EXPECT_EQ(entries->size(), 1U) << "what it was written to is left";
}

Task<> the_status_of_a_path(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  static_cast<void>(succeeded(co_await blow.strike(files::status(folder.root()))));
}

Task<> renaming_a_file(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  folder.write("old", "text");
  auto renaming = files::rename(folder.path("old"), folder.path("new"));
  const bool renamed = succeeded(co_await blow.strike(std::move(renaming)));
  const bool there = (co_await files::status(folder.path("new"))).has_value();
  EXPECT_TRUE(there || !renamed);
}

Task<> removing_a_file(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  folder.write("file", "text");
  const bool removed = succeeded(co_await blow.strike(files::remove(folder.path("file"))));
  const bool there = (co_await files::status(folder.path("file"))).has_value();
  EXPECT_TRUE(!there || !removed);
}

Task<> making_a_directory(Blow& blow, Stage& stage) {
  const Folder folder(stage);
  const bool made = succeeded(co_await blow.strike(files::make_directory(folder.path("new"))));
  const bool there = (co_await files::status(folder.path("new"))).has_value();
  EXPECT_TRUE(there || !made);
}

constexpr std::array of_files = {
    SweepCase{"files::open", opening_a_file},
    SweepCase{"files::File::read", reading_a_file},
    SweepCase{"files::File::write", writing_a_file},
    SweepCase{"files::File::read_at", reading_at_a_place},
    SweepCase{"files::File::write_at", writing_at_a_place},
    SweepCase{"files::File::sync", syncing_a_file},
    SweepCase{"files::File::resize", resizing_a_file},
    SweepCase{"files::File::status", the_status_of_a_file},
    SweepCase{"files::File::close", closing_a_file},
    SweepCase{"files::read_file", reading_a_whole_file},
    SweepCase{"files::write_file", replacing_a_file},
    SweepCase{"files::replace", filling_a_new_file},
    SweepCase{"files::status", the_status_of_a_path},
    SweepCase{"files::list", listing_a_directory},
    SweepCase{"files::rename", renaming_a_file},
    SweepCase{"files::remove", removing_a_file},
    SweepCase{"files::make_directory", making_a_directory},
};

TEST_P(CancelSweepOfNet, Files) {
  sweep_all(of_files);
}
TEST(CancelSweepInTheWorld, Files) {
  sweep_all_in_a_world(of_files);
}

INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfNet, testing::ValuesIn(every_backend), name_of);

}  // namespace
}  // namespace weir::tests
