// Names and files in a World: the server that knows the names is another host, behind a network
// that loses, doubles and cuts; the files are the host's own, and take a drawn time.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/net/dns/connect.hpp"
#include "weir/net/files.hpp"
#include "weir/net/test/name_server_fixture.hpp"
#include "weir/net/resolver.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"

namespace weir {
namespace {

/// Three hosts: one asks by name for the service on the second, the third knows where that is. The
/// hosts file of the client knows it by another name.
class NamedWorld {
 public:
  explicit NamedWorld(const WorldOptions& options, MemoryFiles files = MemoryFiles::by_backend)
      : world(options), client(world.host("client", {.files = files})) {
    server.start_service(
        [](Host& host) { return Runtime(host, quiet(2)).run_on_each_core(serve_echo); });
    names.start([this](Host& host) {
      return Runtime(host, quiet()).run_on_each_core(know_names, std::ref(*this));
    });
    client.start([this](Host& host) {
      return Runtime(host, quiet()).run_on_each_core(ask, std::ref(*this));
    });
  }
  WorldReport run() { return world.run_until_done(2h); }

  static Task<> know_names(Scope&, NamedWorld& its) {
    its.known.rules["service.example"].addresses = {its.server.address(0)};
    const auto wait = []() -> Task<> { static_cast<void>(co_await sleep(1h)); };
    co_await names::with_name_server(its.known, wait, Endpoint::any(53));
  }
  static Task<> ask(Scope&, NamedWorld& its) {
    const auto slept = co_await sleep(1s);
    EXPECT_TRUE(slept);
    const auto written = co_await files::write_file(
        "/hosts", its.server.address(0).to_string().substr(0, 8) + " local.example\n");
    EXPECT_TRUE(written) << written.error().message();
    names::ResolverOptions options = names::only({its.names.address(53)});
    options.hosts_file = "/hosts";
    options.timeout = 1s;
    options.attempts = 60;  // with two of ten lost, one of them gets an answer
    names::Resolver resolver(options);
    const Instant begun = its.client.now();
    tcp::ConnectOptions by_this;
    by_this.resolver = &resolver;
    auto stream = co_await tcp::connect(its.name, 7, by_this);
    its.took = its.client.now() - begun;
    if (!stream) its.error = stream.error();
    if (!stream) co_return;
    static_cast<void>(co_await all(write_text(*stream, its.asked), read_text(*stream, its.asked)));
  }

  World world;
  WorldHost& client;
  WorldHost& server = world.host("server", {.cores = 2});
  WorldHost& names = world.host("names");
  names::NameServer known;
  std::string name = "service.example";
  Asked asked;
  std::error_code error;
  Duration took{};
};

TEST(WorldNames, AreKnownByAServerOnAnotherHost) {
  NamedWorld its(fresh_world());
  const WorldReport report = its.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(its.asked.received, its.asked.text) << its.error.message();
  EXPECT_EQ(its.known.times_asked("service.example A"), 1U);
}

TEST(WorldNames, OfTheHostsFileNeedNoServer) {
  for (const MemoryFiles files : {MemoryFiles::by_backend, MemoryFiles::by_threads}) {
    NamedWorld its(fresh_world(), files);
    its.name = "local.example";
    const WorldReport report = its.run();
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(its.asked.received, its.asked.text) << its.error.message();
    EXPECT_TRUE(its.known.asked.empty());
  }
}

Task<> ask_by_name(Scope&, std::string name, Asked& asked) {
  const auto slept = co_await sleep(1s);
  EXPECT_TRUE(slept);
  auto stream = co_await tcp::connect(std::move(name), 7);
  if (!stream) asked.connecting = stream.error();
  if (!stream) co_return;
  static_cast<void>(co_await all(write_text(*stream, asked), read_text(*stream, asked)));
}

TEST(WorldNames, OfHostsAreKnownToAll) {
  for (const std::string name : {"server", "SERVER", "later.example", "nobody"}) {
    Asked asked;
    World world;
    WorldHost& client = world.host("client");
    client.start([&](Host& host) {
      return Runtime(host, quiet()).run_on_each_core(ask_by_name, name, std::ref(asked));
    });
    for (const char* const each : {"server", "later.example", "no host's name"}) {
      world.host(each).start_service(
          [](Host& host) { return Runtime(host, quiet(1)).run_on_each_core(serve_echo); });
    }
    client.files().lose_power();  // they are known after that, too
    const WorldReport report = world.run_until_done(2h);
    EXPECT_TRUE(report.ok()) << report.text();
    const bool known = name != "nobody";
    EXPECT_EQ(asked.received == asked.text, known) << name << ": " << asked.connecting.message();
    EXPECT_EQ(static_cast<bool>(asked.connecting), !known);
  }
}

TEST(WorldNames, AreFoundThroughALossyNetwork) {
  std::uint64_t struck = 0;
  for (int run = 0; run < 20; ++run) {
    NamedWorld its(fresh_world());
    its.world.faults().rates.loss = 0.2;
    its.world.faults().rates.doubling = 0.2;
    const WorldReport report = its.run();
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(its.asked.received, its.asked.text) << its.error.message() << "\n" << report.text();
    struck += its.world.faults().struck();
  }
  EXPECT_GT(struck, 0U);
}

TEST(WorldNames, AreFoundWhicheverDatagramIsLostOrDoubled) {
  const WorldOptions options = fresh_world();
  for (const Fault fault : {Fault::loss, Fault::doubling}) {
    for (const char* const host : {"client", "names"}) {
      bool struck = true;
      std::uint64_t at = 0;
      for (; struck; ++at) {
        NamedWorld its(options);
        its.world.faults().strike(host, at, fault);
        const WorldReport report = its.run();
        EXPECT_TRUE(report.ok()) << report.text();
        EXPECT_EQ(its.asked.received, its.asked.text)
            << to_string(fault) << " " << at << ": " << report.text();
        struck = its.world.faults().struck() == 1;
        if (struck && fault == Fault::loss) {
          EXPECT_LT(its.took, 2s) << "asked again after a second: " << report.text();
        }
      }
      EXPECT_GT(at, 2U) << "both families were asked for, and answered";
    }
  }
}

TEST(WorldNames, AreFoundAfterThePartition) {
  NamedWorld its(fresh_world());
  its.world.cut(its.names, its.client);
  its.world.at(10s, [&its] { its.world.heal(its.names, its.client); });
  const WorldReport report = its.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(its.asked.received, its.asked.text) << its.error.message();
  EXPECT_GT(its.took, 8s);
}

TEST(WorldNames, AreNotFoundWhereTheirServerIsNeverReached) {
  NamedWorld its(fresh_world());
  its.world.cut(its.names, its.client);
  const WorldReport report = its.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(its.error, names::Failure::timed_out);
  EXPECT_EQ(its.asked.received, "");
}

}  // namespace
}  // namespace weir
