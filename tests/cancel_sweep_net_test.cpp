// Cancels network and file operations at any time on every real backend; see
// tests/cancel_sweep.hpp.
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
#include "weir/net/dns/resolver.hpp"
#include "weir/net/files.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/listen/unix_socket.hpp"
#include "weir/net/tcp.hpp"
#include "weir/net/udp.hpp"
#include "weir/task/combinators.hpp"

namespace weir::tests::cancel_sweep_net_test {
namespace {

Task<> write_all(tcp::Stream* stream, std::string_view text) {
  co_await yield();
  EXPECT_TRUE(co_await stream->write(text));
}

/// Reads the rest of "late" after `come` has arrived, and returns all four bytes.
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

Task<> reading(CancelInjector& injector, SweepEnvironment& env) {
  Pair pair = co_await connect_pair();
  env.spawn(write_all(&pair.far, "late"));
  const auto bytes = co_await injector.run_with_cancel(as_task(pair.near.read()));
  co_await env.wait_until_idle();
  const std::string_view come = succeeded(bytes) ? bytes->text() : std::string_view();
  EXPECT_EQ(co_await read_rest(pair.near, come), "late");
}

Task<> reading_into_a_span(CancelInjector& injector, SweepEnvironment& env) {
  Pair pair = co_await connect_pair();
  env.spawn(write_all(&pair.far, "late"));
  std::array<std::byte, 16> room{};
  const auto count = co_await injector.run_with_cancel(as_task(pair.near.read_into(room)));
  co_await env.wait_until_idle();
  const Bytes come = Bytes(room).first(succeeded(count) ? *count : 0);
  EXPECT_EQ(co_await read_rest(pair.near, to_text(come)), "late");
}

Task<> reading_with_a_timeout(CancelInjector& injector, SweepEnvironment& env) {
  Pair pair = co_await connect_pair();
  env.spawn(write_all(&pair.far, "late"));
  auto reading = as_task(pair.near.read({.timeout = std::chrono::hours(1)}));
  const auto bytes = co_await injector.run_with_cancel(std::move(reading));
  co_await env.wait_until_idle();
  const std::string_view come = succeeded(bytes) ? bytes->text() : std::string_view();
  EXPECT_EQ(co_await read_rest(pair.near, come), "late");
}

/// Reads and drops all bytes until the end of the stream.
Task<> drop_all(tcp::Stream* stream) {
  while (const auto bytes = co_await stream->read()) {
  }
}

Task<> writing(CancelInjector& injector, SweepEnvironment& env) {
  Pair pair = co_await connect_pair();
  const std::string much(2'000'000, 'x');
  env.spawn(drop_all(&pair.far));
  std::ignore = succeeded(co_await injector.run_with_cancel(as_task(pair.near.write(much))));
  pair.near.close();
  co_await env.wait_until_idle();
}

Task<> count_all(tcp::Stream* stream, std::size_t* count) {
  while (const auto bytes = co_await stream->read()) *count += bytes->size();
}

Task<> writing_the_last_bytes(CancelInjector& injector, SweepEnvironment& env) {
  Pair pair = co_await connect_pair();
  const std::string much(2'000'000, 'x');
  std::size_t count = 0;
  env.spawn(count_all(&pair.far, &count));
  auto writing = as_task(pair.near.write(much).last());
  const bool written = succeeded(co_await injector.run_with_cancel(std::move(writing)));
  if (written) {
    EXPECT_TRUE(pair.near.finish_writing());
  } else {
    pair.near.close();
  }
  co_await env.wait_until_idle();
  if (written) {
    EXPECT_EQ(count, much.size());
  }
}

Task<> listening(CancelInjector& injector, SweepEnvironment&) {
  std::ignore = succeeded(co_await injector.run_with_cancel(tcp::listen(Endpoint::loopback(0))));
}

/// An address that another socket holds and releases some loop turns later.
class TakenAddress {
 public:
  TakenAddress(SweepEnvironment& env, Result<loop::Descriptor> held)
      : held_(std::move(held).value()),
        address_(env.loop().platform().local_address(held_.value()).value()) {
    env.run_later([this] { held_.reset(); });
  }
  const Endpoint& address() const noexcept { return address_; }

 private:
  loop::Descriptor held_;
  Endpoint address_;
};

Task<> listening_on_a_taken_address(CancelInjector& injector, SweepEnvironment& env) {
  const ListenOptions alone{.reuse_port = false};
  const TakenAddress taken(env, env.loop().platform().listen(Endpoint::loopback(0), alone));
  std::ignore = succeeded(co_await injector.run_with_cancel(tcp::listen(taken.address())));
  co_await env.wait_until_idle();
}

Task<> connect_to(Endpoint endpoint, std::optional<tcp::Stream>* stream) {
  co_await yield();
  auto connected = co_await tcp::connect(endpoint);
  EXPECT_TRUE(connected);
  if (connected) stream->emplace(std::move(*connected));
}

Task<> accepting(CancelInjector& injector, SweepEnvironment& env) {
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  std::optional<tcp::Stream> far;
  env.spawn(connect_to(listener->local_address(), &far));
  auto near = co_await injector.run_with_cancel(as_task(listener->accept()));
  co_await env.wait_until_idle();
  if (!succeeded(near)) near = co_await listener->accept();
  EXPECT_EQ(near->peer_address(), far->local_address());
}

Task<> connecting(CancelInjector& injector, SweepEnvironment&) {
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  std::ignore =
      succeeded(co_await injector.run_with_cancel(tcp::connect(listener->local_address())));
}

Task<> connecting_to_a_name(CancelInjector& injector, SweepEnvironment&) {
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  const auto port = listener->local_address().port();
  auto connected = tcp::connect(std::string("localhost"), port);
  std::ignore = succeeded(co_await injector.run_with_cancel(std::move(connected)));
}

/// Returns a unique name in the abstract namespace.
std::string unix_name(const SweepEnvironment& env) {
  return "@weir-sweep-" + std::to_string(::getpid()) + "-" +
         std::to_string(reinterpret_cast<std::uintptr_t>(&env));
}

Task<> connecting_to_a_unix_socket(CancelInjector& injector, SweepEnvironment& env) {
  const std::string name = unix_name(env);
  auto listener = co_await unix_socket::listen(name);
  std::ignore = succeeded(co_await injector.run_with_cancel(unix_socket::connect(name)));
}

Task<> listening_on_a_unix_socket(CancelInjector& injector, SweepEnvironment& env) {
  std::ignore = succeeded(co_await injector.run_with_cancel(unix_socket::listen(unix_name(env))));
}

Task<> binding_for_datagrams(CancelInjector& injector, SweepEnvironment&) {
  std::ignore = succeeded(co_await injector.run_with_cancel(udp::bind(Endpoint::loopback(0))));
}

Task<> binding_to_a_taken_address(CancelInjector& injector, SweepEnvironment& env) {
  const loop::DatagramOptions alone{.local = Endpoint::loopback(0)};
  const TakenAddress taken(env, env.loop().platform().open_datagrams(alone));
  std::ignore = succeeded(co_await injector.run_with_cancel(udp::bind(taken.address())));
  co_await env.wait_until_idle();
}

Task<> connecting_for_datagrams(CancelInjector& injector, SweepEnvironment&) {
  auto peer = co_await udp::bind(Endpoint::loopback(0));
  std::ignore = succeeded(co_await injector.run_with_cancel(udp::connect(peer->local_address())));
}

Task<> send_to(udp::Socket* socket, Endpoint peer) {
  co_await yield();
  EXPECT_TRUE(co_await socket->send("late", peer));
}

Task<> receiving_a_datagram(CancelInjector& injector, SweepEnvironment& env) {
  auto near = co_await udp::bind(Endpoint::loopback(0));
  auto far = co_await udp::bind(Endpoint::loopback(0));
  env.spawn(send_to(&*far, near->local_address()));
  auto datagram = co_await injector.run_with_cancel(as_task(near->receive()));
  co_await env.wait_until_idle();
  if (!succeeded(datagram)) datagram = co_await near->receive();
  EXPECT_EQ(datagram->buffer.text(), "late");
}

Task<> sending_a_datagram(CancelInjector& injector, SweepEnvironment&) {
  auto near = co_await udp::bind(Endpoint::loopback(0));
  auto far = co_await udp::bind(Endpoint::loopback(0));
  const Endpoint peer = near->local_address();
  std::ignore = succeeded(co_await injector.run_with_cancel(as_task(far->send("text", peer))));
}

Task<> receiving_several_datagrams(CancelInjector& injector, SweepEnvironment& env) {
  auto near = co_await udp::bind(Endpoint::loopback(0));
  auto far = co_await udp::bind(Endpoint::loopback(0));
  env.spawn(send_to(&*far, near->local_address()));
  std::array<udp::Datagram, 4> slots;
  auto count = co_await injector.run_with_cancel(as_task(near->receive(slots)));
  co_await env.wait_until_idle();
  if (!succeeded(count)) count = co_await near->receive(slots);
  EXPECT_EQ(*count, 1U);
  EXPECT_EQ(slots[0].buffer.text(), "late");
}

Task<> sending_several_datagrams(CancelInjector& injector, SweepEnvironment&) {
  auto near = co_await udp::bind(Endpoint::loopback(0));
  auto far = co_await udp::bind(Endpoint::loopback(0));
  const std::array<udp::Outgoing, 2> both{udp::Outgoing{to_bytes("a"), near->local_address()},
                                          udp::Outgoing{to_bytes("b"), near->local_address()}};
  const bool sent = succeeded(co_await injector.run_with_cancel(as_task(far->send(both))));
  EXPECT_TRUE(!sent || far->sent() == 2);
}

Task<> asking_a_resolver(CancelInjector& injector, SweepEnvironment&) {
  dns::Resolver resolver;
  std::ignore = succeeded(co_await injector.run_with_cancel(resolver.resolve("localhost", 80)));
}

Task<> looking_up_a_name(CancelInjector& injector, SweepEnvironment&) {
  std::ignore = succeeded(co_await injector.run_with_cancel(dns::resolve("localhost", 80)));
}

constexpr std::array network = {
    SweepCase{"Stream::read", reading},
    SweepCase{"Stream::read with a timeout", reading_with_a_timeout},
    SweepCase{"Stream::read_into", reading_into_a_span},
    SweepCase{"Stream::write", writing},
    SweepCase{"Write::last", writing_the_last_bytes},
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
    SweepCase{"dns::Resolver::resolve", asking_a_resolver},
    SweepCase{"dns::resolve", looking_up_a_name},
};

class CancelSweepOfNet : public CancelSweep {};

TEST_P(CancelSweepOfNet, Sockets) {
  sweep_all(network);
}
TEST(CancelSweepInTheWorld, Sockets) {
  sweep_all_in_world(network);
}

Task<> opening_a_file(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("file", "text");
  std::ignore = succeeded(co_await injector.run_with_cancel(files::open(folder.path("file"))));
}

Task<> reading_a_file(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("file", "text");
  auto file = co_await files::open(folder.path("file"));
  auto bytes = co_await injector.run_with_cancel(file->read());
  if (!succeeded(bytes)) bytes = co_await file->read();
  EXPECT_EQ(bytes->text(), "text");
}

Task<> writing_a_file(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  auto file = co_await files::open(folder.path("file"), files::Mode::truncate);
  const bool written = succeeded(co_await injector.run_with_cancel(file->write("text")));
  const auto text = co_await files::read_file(folder.path("file"));
  EXPECT_TRUE(*text == "text" || (!written && text->empty())) << *text;
}

Task<> syncing_a_file(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  auto file = co_await files::open(folder.path("file"), files::Mode::truncate);
  std::ignore = succeeded(co_await injector.run_with_cancel(file->sync()));
}

Task<> replacing_a_file(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("file", "old");
  const bool written =
      succeeded(co_await injector.run_with_cancel(files::write_file(folder.path("file"), "new")));
  const auto text = co_await files::read_file(folder.path("file"));
  EXPECT_TRUE(*text == "new" || (!written && *text == "old")) << *text;
}

Task<> listing_a_directory(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("file", "text");
  std::ignore = succeeded(co_await injector.run_with_cancel(files::list(folder.root())));
}

Task<> reading_at_a_place(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("file", "some text");
  auto file = co_await files::open(folder.path("file"));
  const auto bytes = co_await injector.run_with_cancel(file->read_at(5));
  EXPECT_EQ(succeeded(bytes) ? bytes->text() : "text", "text");
}

Task<> writing_at_a_place(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  auto file = co_await files::open(folder.path("file"), files::Mode::truncate);
  std::ignore = succeeded(co_await injector.run_with_cancel(file->write_at(2, to_bytes("text"))));
}

Task<> resizing_a_file(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  auto file = co_await files::open(folder.path("file"), files::Mode::truncate);
  const bool resized = succeeded(co_await injector.run_with_cancel(file->resize(7)));
  const auto status = co_await file->status();
  EXPECT_TRUE(status->size == 7 || (!resized && status->size == 0)) << status->size;
}

Task<> the_status_of_a_file(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("file", "text");
  auto file = co_await files::open(folder.path("file"));
  const auto status = co_await injector.run_with_cancel(file->status());
  EXPECT_EQ(succeeded(status) ? status->size : 4, 4U);
}

Task<> closing_a_file(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("file", "text");
  auto file = co_await files::open(folder.path("file"));
  co_await injector.run_with_cancel(file->close());
}

Task<> reading_a_whole_file(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("file", "text");
  const auto text = co_await injector.run_with_cancel(files::read_file(folder.path("file")));
  EXPECT_EQ(succeeded(text) ? *text : "text", "text");
}

Task<Result<>> write_new(files::File& file) {
  return file.write("new");
}

Task<> filling_a_new_file(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("file", "old");
  auto replacing = files::replace(folder.path("file"), write_new);
  const bool replaced = succeeded(co_await injector.run_with_cancel(std::move(replacing)));
  const auto text = co_await files::read_file(folder.path("file"));
  EXPECT_TRUE(*text == "new" || (!replaced && *text == "old")) << *text;
  const auto entries = co_await files::list(folder.root());
  EXPECT_EQ(entries->size(), 1U) << "the temporary file is left";
}

Task<> the_status_of_a_path(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  std::ignore = succeeded(co_await injector.run_with_cancel(files::status(folder.root())));
}

Task<> renaming_a_file(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("old", "text");
  auto renaming = files::rename(folder.path("old"), folder.path("new"));
  const bool renamed = succeeded(co_await injector.run_with_cancel(std::move(renaming)));
  const bool there = (co_await files::status(folder.path("new"))).has_value();
  EXPECT_TRUE(there || !renamed);
}

Task<> removing_a_file(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  folder.write("file", "text");
  const bool removed =
      succeeded(co_await injector.run_with_cancel(files::remove(folder.path("file"))));
  const bool there = (co_await files::status(folder.path("file"))).has_value();
  EXPECT_TRUE(!there || !removed);
}

Task<> making_a_directory(CancelInjector& injector, SweepEnvironment& env) {
  const TempDirectory folder(env);
  const bool made =
      succeeded(co_await injector.run_with_cancel(files::make_directory(folder.path("new"))));
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
  sweep_all_in_world(of_files);
}

INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfNet, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::cancel_sweep_net_test
