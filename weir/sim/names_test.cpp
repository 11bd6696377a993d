// Tests of DNS names and files in a World. The DNS server is another host, behind a network with
// losses, copies and partitions. Each host has its own files, and operations on them take a
// random time.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/net/dns/connect.hpp"
#include "weir/net/dns/resolver.hpp"
#include "weir/net/files.hpp"
#include "weir/net/test/name_server_fixture.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"

namespace weir::sim::names_test {
namespace {

/// A World of three hosts: a client, a service, and a DNS server that has the address of the
/// service. The client has another name of the service in a hosts file.
class NamedWorld {
 public:
  explicit NamedWorld(const WorldOptions& options, MemoryFiles files = MemoryFiles::by_backend)
      : world(options), client(world.host("client", {.files = files})) {
    server.start_service(
        [](loop::Platform& host) { return Runtime(host, quiet(2)).run_on_each_core(serve_echo); });
    names.start([this](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(know_names, std::ref(*this));
    });
    client.start([this](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(ask, std::ref(*this));
    });
  }
  WorldReport run() { return world.run_until_done(2h); }

  static Task<> know_names(Scope&, NamedWorld& its) {
    its.known.rules["service.example"].addresses = {its.server.address(0)};
    const auto wait = []() -> Task<> { std::ignore = co_await sleep(1h); };
    co_await dns::with_name_server(its.known, wait, Endpoint::any(53));
  }
  static Task<> ask(Scope&, NamedWorld& its) {
    const auto slept = co_await sleep(1s);
    EXPECT_TRUE(slept);
    const auto written = co_await files::write_file(
        "/hosts", its.server.address(0).to_string().substr(0, 8) + " local.example\n");
    EXPECT_TRUE(written) << written.error().message();
    dns::ResolverOptions options = dns::only({its.names.address(53)});
    options.hosts_file = "/hosts";
    options.timeout = 1s;
    options.attempts = 60;  // one of them succeeds although a fifth of the datagrams is lost
    dns::Resolver resolver(options);
    const Instant begun = its.client.now();
    tcp::ConnectOptions by_this;
    by_this.resolver = &resolver;
    auto stream = co_await tcp::connect(its.name, 7, by_this);
    its.took = its.client.now() - begun;
    if (!stream) its.error = stream.error();
    if (!stream) co_return;
    std::ignore = co_await all(write_text(*stream, its.asked), read_text(*stream, its.asked));
  }

  World world;
  Host& client;
  Host& server = world.host("server", {.cores = 2});
  Host& names = world.host("names");
  dns::FakeDnsServer known;
  std::string name = "service.example";
  EchoRequest asked;
  std::error_code error;
  Duration took{};
};

TEST(WorldNames, AreResolvedByAServerOnAnotherHost) {
  NamedWorld its(fresh_world_options());
  const WorldReport report = its.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(its.asked.received, its.asked.text) << its.error.message();
  EXPECT_EQ(its.known.times_asked("service.example A"), 1U);
}

TEST(WorldNames, InTheHostsFileNeedNoServer) {
  for (const MemoryFiles files : {MemoryFiles::by_backend, MemoryFiles::by_threads}) {
    NamedWorld its(fresh_world_options(), files);
    its.name = "local.example";
    const WorldReport report = its.run();
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(its.asked.received, its.asked.text) << its.error.message();
    EXPECT_TRUE(its.known.asked.empty());
  }
}

Task<> ask_by_name(Scope&, std::string name, EchoRequest& asked) {
  const auto slept = co_await sleep(1s);
  EXPECT_TRUE(slept);
  auto stream = co_await tcp::connect(std::move(name), 7);
  if (!stream) asked.connecting = stream.error();
  if (!stream) co_return;
  std::ignore = co_await all(write_text(*stream, asked), read_text(*stream, asked));
}

TEST(WorldNames, OfHostsAreInTheHostsFileOfEveryHost) {
  for (const std::string name : {"server", "SERVER", "later.example", "unknown"}) {
    EchoRequest asked;
    World world;
    Host& client = world.host("client");
    client.start([&](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(ask_by_name, name, std::ref(asked));
    });
    for (const char* const each : {"server", "later.example", "no host's name"}) {
      world.host(each).start_service([](loop::Platform& host) {
        return Runtime(host, quiet(1)).run_on_each_core(serve_echo);
      });
    }
    client.files().lose_power();  // the hosts file must survive the loss of power
    const WorldReport report = world.run_until_done(2h);
    EXPECT_TRUE(report.ok()) << report.text();
    const bool known = name != "unknown";
    EXPECT_EQ(asked.received == asked.text, known) << name << ": " << asked.connecting.message();
    EXPECT_EQ(static_cast<bool>(asked.connecting), !known);
  }
}

TEST(WorldNames, AreFoundThroughALossyNetwork) {
  std::uint64_t injected = 0;
  for (int run = 0; run < 20; ++run) {
    NamedWorld its(fresh_world_options());
    its.world.faults().rates.loss = 0.2;
    its.world.faults().rates.doubling = 0.2;
    const WorldReport report = its.run();
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(its.asked.received, its.asked.text) << its.error.message() << "\n" << report.text();
    injected += its.world.faults().injected();
  }
  EXPECT_GT(injected, 0U);
}

TEST(WorldNames, AreFoundWhenAnyDatagramIsLostOrDoubled) {
  const WorldOptions options = fresh_world_options();
  for (const Fault fault : {Fault::loss, Fault::doubling}) {
    for (const char* const host : {"client", "names"}) {
      bool injected = true;
      std::uint64_t at = 0;
      for (; injected; ++at) {
        NamedWorld its(options);
        its.world.faults().inject(host, at, fault);
        const WorldReport report = its.run();
        EXPECT_TRUE(report.ok()) << report.text();
        EXPECT_EQ(its.asked.received, its.asked.text)
            << to_string(fault) << " " << at << ": " << report.text();
        injected = its.world.faults().injected() == 1;
        if (injected && fault == Fault::loss) {
          EXPECT_LT(its.took, 2s) << "the client repeats the query after a second: "
                                  << report.text();
        }
      }
      EXPECT_GT(at, 2U) << "there are queries and answers for both families";
    }
  }
}

TEST(WorldNames, AreFoundAfterThePartition) {
  NamedWorld its(fresh_world_options());
  its.world.partition(its.names, its.client);
  its.world.schedule(10s, [&its] { its.world.heal(its.names, its.client); });
  const WorldReport report = its.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(its.asked.received, its.asked.text) << its.error.message();
  EXPECT_GT(its.took, 8s);
}

TEST(WorldNames, AreNotFoundWhenTheServerIsUnreachable) {
  NamedWorld its(fresh_world_options());
  its.world.partition(its.names, its.client);
  const WorldReport report = its.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(its.error, dns::ResolveError::timed_out);
  EXPECT_EQ(its.asked.received, "");
}

}  // namespace
}  // namespace weir::sim::names_test
