// Tests runtimes in this process that start, serve over real sockets and stop repeatedly, also
// two at the same time. Afterwards the process has as many descriptors, threads and bytes as
// before.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/client.hpp"
#include "tests/sanitized.hpp"
#include "tests/server.hpp"
#include "weir/http.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::tests::runtime_lifecycle_test {
namespace {

std::size_t entries(const char* folder) {
  const std::filesystem::directory_iterator each(folder);
  return static_cast<std::size_t>(std::distance(begin(each), end(each)));
}

// A leak of 16 KiB in each of twenty rounds exceeds the sanitizers' limit. The limit of resident
// memory detects a leak of 256 KiB per round.
constexpr std::size_t growth_max = sanitized ? 64 * 1024 : 4096 * 1024;

std::size_t bytes_in_use() {
  if (sanitized) return __sanitizer_get_current_allocated_bytes();
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// The resources that this process uses.
struct Usage {
  std::size_t descriptors = entries("/proc/self/fd");
  std::size_t threads = entries("/proc/self/task");
  std::size_t bytes = bytes_in_use();
};

/// Waits, because a joined thread may remain visible in /proc for a moment.
bool wait_for_thread_count(std::size_t threads) {
  return eventually([&] { return Usage().threads <= threads; });
}

Task<http::Response> twice(http::Request& request) {
  auto body = co_await request.body();
  if (!body) co_return http::to_status(body.error());
  co_return http::text(*body + *body);
}

/// A runtime that serves on a thread of its own.
class Service {
 public:
  Service(Runtime& runtime, std::string name)
      : runtime_(runtime), name_(std::move(name)), address_(free_address()) {
    routes_.get("/", [this] { return http::text(name_); });
    routes_.post("/twice", twice);
    status_ = std::async(std::launch::async, [this] {
      return runtime_.run_on_each_core(http::serve, std::cref(routes_),
                                       http::ServeOptions{address_});
    });
  }

  const os::Address& address() const { return address_; }

  bool wait_until_listening() const {
    return eventually([&] { return Client::connect(address_).has_value(); });
  }

  /// Returns the runtime's exit status. The caller has called drain() or stop().
  int wait_for_the_end() { return status_.get(); }

 private:
  Runtime& runtime_;
  std::string name_;
  os::Address address_;
  http::Router routes_;
  std::future<int> status_;
};

/// Sends requests one after the other and in a pipeline.
void use(const Service& service, const std::string& name) {
  Client client(service.address());
  const auto root = client.exchange(get("/"));
  ASSERT_TRUE(root) << root.error().message();
  EXPECT_EQ(root->body, name);
  const auto body = client.exchange(post("/twice", std::string(3000, 'x')));
  ASSERT_TRUE(body) << body.error().message();
  EXPECT_EQ(body->body, std::string(6000, 'x'));
  const auto batch = client.pipeline(get("/"), 50);
  ASSERT_TRUE(batch) << batch.error().message();
  for (const Response& each : *batch) EXPECT_EQ(each.body, name);
}

class RuntimeLifecycle : public EachBackend {
 protected:
  // The thread sanitizer starts a permanent thread of its own with the first thread.
  RuntimeLifecycle() {
    std::thread([] {}).join();
  }

  RuntimeOptions options() const {
    RuntimeOptions options;
    options.cores = 2;
    options.backend = to_backend_choice(GetParam());
    options.handle_signals = false;
    options.announce = false;
    return options;
  }

  /// Runs the runtime once from start to end. Some clients stay connected.
  void live(Runtime& runtime, bool drained) {
    Service service(runtime, "one\n");
    ASSERT_TRUE(service.wait_until_listening());
    std::vector<Client> idle;
    for (int i = 0; i < 10; ++i) {
      idle.emplace_back(service.address());
      if (i % 2 == 0) {
        ASSERT_TRUE(idle.back().exchange(get("/")));
      }
      if (i % 3 == 0) {
        ASSERT_TRUE(idle.back().send("GET / HTTP/1.1\r\nHo"));
      }
    }
    use(service, "one\n");
    if (drained) idle.clear();
    drained ? runtime.drain() : runtime.stop();
    EXPECT_EQ(service.wait_for_the_end(), 0);
  }
};

TEST_P(RuntimeLifecycle, RepeatedRunsLeakNothing) {
  const auto one_round = [&](bool drained) {
    Runtime runtime(options());
    live(runtime, drained);
  };
  for (int round = 0; round < 4; ++round) one_round(round % 2 == 0);  // creates what is made once
  // A leak grows in every series. The memory that concurrent threads need grows in some only.
  std::size_t grown = 0;
  for (int series = 0; series < 4; ++series) {
    const Usage before;
    for (int round = 0; round < 20; ++round) one_round(round % 2 == 0);
    EXPECT_TRUE(wait_for_thread_count(before.threads)) << Usage().threads;
    const Usage after;
    EXPECT_EQ(after.descriptors, before.descriptors);
    grown = after.bytes - std::min(after.bytes, before.bytes);
    if (grown <= growth_max) break;
  }
  EXPECT_LE(grown, growth_max);
}

TEST_P(RuntimeLifecycle, OneRuntimeRunsRepeatedly) {
  Runtime runtime(options());
  for (int round = 0; round < 5; ++round) live(runtime, round % 2 == 0);
}

TEST_P(RuntimeLifecycle, TwoRuntimesAreIndependent) {
  const Usage before;
  {
    Runtime first(options());
    Runtime second(options());
    Service one(first, "one\n");
    std::optional<Service> two(std::in_place, second, "two\n");
    ASSERT_TRUE(one.wait_until_listening() && two->wait_until_listening());
    Client stays(one.address());
    for (int round = 0; round < 5; ++round) {
      std::thread concurrent([&] { use(one, "one\n"); });
      use(*two, "two\n");
      concurrent.join();
      ASSERT_TRUE(stays.exchange(get("/")));
      round % 2 == 0 ? second.drain() : second.stop();
      EXPECT_EQ(two->wait_for_the_end(), 0);
      ASSERT_TRUE(stays.exchange(get("/"))) << "only the other runtime has ended";
      two.emplace(second, "two\n");
      ASSERT_TRUE(two->wait_until_listening());
    }
    stays.close();
    first.drain();
    second.drain();
    EXPECT_EQ(one.wait_for_the_end(), 0);
    EXPECT_EQ(two->wait_for_the_end(), 0);
  }
  EXPECT_TRUE(wait_for_thread_count(before.threads)) << Usage().threads;
  EXPECT_EQ(Usage().descriptors, before.descriptors);
}

TEST_P(RuntimeLifecycle, APortThatIsTakenEndsAllCores) {
  const os::Fd taken = os::open_listener(os::Address::loopback(0)).value();
  const os::Address address = os::local_address(taken.get()).value();
  http::Router routes;
  const Usage before;
  for (int round = 0; round < 2; ++round) {  // each retries for a second
    Runtime runtime(options());
    EXPECT_EQ(runtime.run_on_each_core(http::serve, std::cref(routes), http::ServeOptions{address}),
              1);
  }
  EXPECT_TRUE(wait_for_thread_count(before.threads)) << Usage().threads;
  EXPECT_EQ(Usage().descriptors, before.descriptors);
}

INSTANTIATE_TEST_SUITE_P(On, RuntimeLifecycle, testing::ValuesIn(sampled_backends()), name_of);

}  // namespace
}  // namespace weir::tests::runtime_lifecycle_test
