#include "weir/doctor/config_demands.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::doctor::config_demands_test {
namespace {

DoctorOptions read(std::string text) {
  auto demands = demands_of({.path = "shop.toml", .text = std::move(text), .error = {}});
  EXPECT_TRUE(demands) << demands.error().message();
  return demands ? std::move(*demands) : DoctorOptions();
}

using Texts = std::vector<std::string>;

TEST(ConfigDemands, AreFoundInAnyTable) {
  const DoctorOptions options = read(R"(
listen = ":8080"
database_url = "postgres://shop@db.example.org/shop"
host_names = ["mail.example.org"]
log_file = "/var/log/shop.log"
[runtime]
cores = 4
backend = "uring"
[runtime.real_time]
priority = 60
lock_memory = false
[server.limits]
connections_max = 20000
body_max = "64KiB"
backlog = 1024
[tls]
chain = "/etc/tls/chain.pem"
key = "/etc/tls/key.pem"
[cache]
url = "redis://cache"
[client.limits]
connections_max = 1000000
connections_per_origin_max = 500
[proxy]
upstreams = ["http://10.0.0.1:80", "http://10.0.0.2:80", "http://10.0.0.1:80"]
[[listener]]
address = "127.0.0.1"
port = 9000
[[listener]]
address = "::1"
port = 9001
[admin]
port = 9090
)");
  const checks::Demands& demands = options.demands;
  EXPECT_EQ(demands.cores, 4U);
  EXPECT_EQ(demands.backend, BackendChoice::uring);
  EXPECT_EQ(demands.real_time_priority, 60);
  EXPECT_FALSE(demands.lock_memory);
  EXPECT_EQ(demands.connections_max, 20'000U);
  EXPECT_EQ(demands.backlog, 1024);
  EXPECT_EQ(demands.outgoing_connections, 500);
  EXPECT_TRUE(demands.writes_files);
  Texts endpoints;
  for (const Endpoint& each : demands.endpoints) endpoints.push_back(each.to_string());
  EXPECT_EQ(endpoints, (Texts{"[::]:8080", "127.0.0.1:9000", "[::1]:9001", "[::]:9090"}));
  EXPECT_EQ(options.stores, (Texts{"postgres://shop@db.example.org/shop", "redis://cache",
                                   "http://10.0.0.1:80", "http://10.0.0.2:80"}));
  EXPECT_EQ(options.names, Texts{"mail.example.org"});
  ASSERT_EQ(options.certificates.size(), 1U);
  EXPECT_EQ(options.certificates[0].chain, "/etc/tls/chain.pem");
  EXPECT_EQ(options.certificates[0].key, "/etc/tls/key.pem");
}

TEST(ConfigDemands, IncludeTheMemoryOfTheConnections) {
  const auto small = read("connections_max = 100\nbody_max = 1024");
  const auto large = read("connections_max = 100\nbody_max = \"1MiB\"");
  ASSERT_TRUE(small.demands.memory_bytes && large.demands.memory_bytes);
  EXPECT_GT(*large.demands.memory_bytes, *small.demands.memory_bytes + 100 * 1'000'000ULL);
  EXPECT_FALSE(read("body_max = 1024").demands.memory_bytes);
  for (const std::string feature : {"plain_http2 = true", "http2 = \"prior_knowledge\"",
                                    "websockets = true", "proxy_protocol = [\"10.0.0.0/8\"]"}) {
    const auto more = read("connections_max = 100\nbody_max = 1024\n" + feature);
    EXPECT_GT(*more.demands.memory_bytes, *small.demands.memory_bytes) << feature;
  }
  EXPECT_EQ(read("connections_max = 100\nbody_max = 1024\nhttp2 = false").demands.memory_bytes,
            small.demands.memory_bytes);
}

TEST(ConfigDemands, PairListsOfCertificatesAndKeys) {
  const auto options = read("certificates = [\"a\", \"b\", \"c\"]\nkeys = [\"x\", \"y\"]");
  ASSERT_EQ(options.certificates.size(), 2U);
  EXPECT_EQ(options.certificates[1].chain, "b");
  EXPECT_EQ(options.certificates[1].key, "y");
}

TEST(ConfigDemands, IgnoreOtherKeysAndValuesOfAnotherKind) {
  const auto options = read(R"(
cores = "many"
connections_max = -1
backend = "kqueue"
listen = "here"
port = 70000
url = 5
real_time = true
key = "a secret"
upstreams = [1, 2]
[database]
host = "db.example.org"
port = 5432
)");
  const checks::Demands& demands = options.demands;
  EXPECT_FALSE(demands.cores || demands.connections_max || demands.real_time_priority);
  EXPECT_EQ(demands.backend, BackendChoice::automatic);
  EXPECT_TRUE(demands.endpoints.empty()) << "the port of a database is not an address to listen on";
  EXPECT_TRUE(options.stores.empty() && options.certificates.empty());
}

TEST(ConfigDemands, NeedAReadableFile) {
  const auto broken = demands_of({.path = "shop.toml", .text = "a = = 1", .error = {}});
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().message().starts_with("shop.toml:1:"));
  EXPECT_FALSE(demands_of({.path = "shop.toml", .text = {}, .error = {}}));
}

}  // namespace
}  // namespace weir::doctor::config_demands_test
