// Tests services with routes that are replaced repeatedly while clients send requests, over real
// sockets on every backend. No request is lost. Each is answered by an instance that existed
// while the client waited.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/client.hpp"
#include "tests/server.hpp"
#include "weir/app.hpp"
#include "weir/app/http_server.hpp"
#include "weir/http.hpp"
#include "weir/http/router/service_routes.hpp"

namespace weir::tests::service_routes_test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t replacements = 50;

/// A VersionHistory is the sequence of versions of one service that is replaced. A client may see
/// the versions from `done` at its request to `begun` at its answer.
struct VersionHistory {
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::uint64_t> begun{0};
};

/// The state that all participants share.
struct SharedState {
  std::array<VersionHistory, 2> courses;  // of the per-core page and of the shared page
  std::atomic<std::uint64_t> answers{0};
  std::atomic<bool> over{false};

  void add_error(const std::string& what) {
    const std::lock_guard lock(mutex_);
    errors_ += what + "\n";
    over = true;
  }
  std::string errors() const {
    const std::lock_guard lock(mutex_);
    return errors_;
  }

 private:
  mutable std::mutex mutex_;
  std::string errors_;
};

struct Version {
  explicit Version(std::uint64_t of, SharedState& on) : number(of), shared(on) {}
  Task<Result<>> start() {
    co_await yield();
    co_return {};
  }
  std::uint64_t number;
  SharedState& shared;
};
struct SharedVersion : Version {
  using Version::Version;
};

/// A Page answers immediately, after a delay, or as a stream. Its destructor checks that no
/// request is in progress.
class Page {
 public:
  Page(const Version& version, http::ServiceRoutes& routes, std::string path)
      : shared_(version.shared), text_(std::to_string(version.number)) {
    const auto add = [&](const std::string& to, auto handler) {
      routes.get(http::Pattern::parse(path + to).value(), std::move(handler));
    };
    add("/now", [this] { return http::text(text_); });
    add("/later", [this]() -> Task<http::Response> {
      const Inside inside(*this);
      std::ignore = co_await sleep(1ms);
      co_return http::text(text_);
    });
    add("/streamed", [this] { return http::stream("text/plain", &write, this); });
  }
  ~Page() {
    if (inside_ != 0) shared_.add_error("a page with a request is destroyed");
    text_ = "gone";
  }

 private:
  struct Inside {
    explicit Inside(Page& of) : page(of) { ++page.inside_; }
    ~Inside() { --page.inside_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    Page& page;
  };
  static Task<Result<>> write(http::BodySink& sink, Page* page) {
    const Inside inside(*page);
    for (const char each : page->text_) {
      if (auto sent = co_await sink.write(std::string_view(&each, 1)); !sent) co_return sent;
      std::ignore = co_await sleep(1ms);
    }
    co_return {};
  }

  SharedState& shared_;
  std::string text_;
  std::atomic<int> inside_{0};
};
struct LocalPage : Page {
  LocalPage(Version& version, http::ServiceRoutes& routes) : Page(version, routes, "/0") {}
};
struct SharedPage : Page {
  SharedPage(const SharedVersion& version, http::ServiceRoutes& routes)
      : Page(version, routes, "/1") {}
};

/// A Manager replaces both services in turn, sometimes exclusively.
class Manager {
 public:
  Manager(App& app, Scope& scope, SharedState& shared, std::array<ServiceId, 2> versions)
      : app_(app), scope_(scope), shared_(shared), versions_(versions) {}
  Task<Result<>> start() {
    scope_.spawn(work());
    co_return {};
  }

 private:
  Task<> work() {
    constexpr std::uint64_t answers_each = 20;
    for (std::uint64_t number = 1; number <= replacements && !shared_.over; ++number) {
      const std::uint64_t enough = shared_.answers + answers_each;
      co_await replace(0, number);
      co_await replace(1, number);
      while (shared_.answers < enough && !shared_.over) {
        if (auto slept = co_await sleep(1ms); !slept) co_return;
      }
    }
    shared_.over = true;
  }
  Task<> replace(std::size_t which, std::uint64_t number) {
    VersionHistory& course = shared_.courses[which];
    course.begun = number;
    const ServiceOptions options{.replace_policy = number % 5 == 0 ? ReplacePolicy::exclusive
                                                                   : ReplacePolicy::side_by_side};
    SharedState& shared = shared_;
    const ServiceId fresh =
        which == 0
            ? app_.per_core([number, &shared] { return Version(number, shared); }, options)
            : app_.shared([number, &shared] { return SharedVersion(number, shared); }, options);
    const Result<> replaced = co_await app_.replace(versions_[which], fresh);
    if (!replaced) shared_.add_error("replacing failed: " + replaced.error().message());
    versions_[which] = fresh;
    course.done = number;
  }

  App& app_;
  Scope& scope_;
  SharedState& shared_;
  std::array<ServiceId, 2> versions_;
};

/// A CheckingClient sends requests in a tight loop until the test is over.
class CheckingClient {
 public:
  CheckingClient(SharedState& shared, const os::Address& address, std::size_t variant)
      : shared_(shared), address_(address), variant_(variant), thread_([this] { watch(); }) {}
  ~CheckingClient() { thread_.join(); }

 private:
  void watch() {
    while (!shared_.over) {
      auto client = Client::connect(address_);
      if (!client) return shared_.add_error("connect: " + client.error().message());
      // New connections reach other cores, because the kernel chooses the core.
      for (int round = 0; round < 40 && !shared_.over; ++round) {
        if (!ask(*client)) return;
      }
    }
  }
  bool ask(Client& client) {
    static constexpr std::array<std::string_view, 4> kinds{"/now", "/later", "/now", "/streamed"};
    struct PendingRequest {
      VersionHistory& course;
      std::uint64_t done;
    };
    std::vector<PendingRequest> pending;
    std::string requests;
    for (std::size_t count = 0; count < (variant_ % 2 == 0 ? 1 : 8); ++count) {
      const std::size_t which = next_++ % 2;
      pending.push_back({shared_.courses[which], shared_.courses[which].done});
      requests += get("/" + std::to_string(which) + std::string(kinds[next_ / 2 % kinds.size()]));
    }
    if (auto sent = client.send(requests); !sent) return fails("send", sent.error().message());
    for (const PendingRequest& each : pending) {
      const auto answer = client.read();
      if (!answer) return fails("read", answer.error().message());
      const std::uint64_t begun = each.course.begun;
      bool right = false;
      for (std::uint64_t number = each.done; number <= begun && answer->status == 200; ++number) {
        right = right || answer->body == std::to_string(number);
      }
      if (!right) {
        return fails("between " + std::to_string(each.done) + " and " + std::to_string(begun),
                     std::to_string(answer->status) + " " + answer->body);
      }
      ++shared_.answers;
    }
    return true;
  }
  bool fails(const std::string& what, const std::string& how) {
    shared_.add_error(what + ": " + how);
    return false;
  }

  SharedState& shared_;
  os::Address address_;
  std::size_t variant_;
  std::size_t next_ = 0;
  std::thread thread_;
};

class ServiceRoutes : public EachBackend {};

TEST_P(ServiceRoutes, ReplacingServicesUnderLoadLosesNoRequest) {
  SharedState shared;
  http::Router routes;
  App app;
  const std::array<ServiceId, 2> versions{
      app.per_core([&shared] { return Version(0, shared); }),
      app.shared([&shared] { return SharedVersion(0, shared); })};
  app.per_core<LocalPage>();
  app.shared<SharedPage>();
  app.on_core(0, [&](App& of, Scope& scope) { return Manager(of, scope, shared, versions); });
  const os::Address address = free_address();
  serve_http(app, routes, {.endpoint = address});
  RuntimeOptions options;
  options.cores = 2;
  options.backend = to_backend_choice(GetParam());
  options.handle_signals = false;
  options.announce = false;
  Runtime runtime(options);
  auto status = std::async(std::launch::async, [&] { return app.run(runtime); });
  ASSERT_TRUE(eventually([&] { return Client::connect(address).has_value(); }));
  {
    std::deque<CheckingClient> crowd;
    for (std::size_t variant = 0; variant < 4; ++variant)
      crowd.emplace_back(shared, address, variant);
  }
  runtime.drain();
  EXPECT_EQ(status.get(), 0);
  EXPECT_EQ(shared.errors(), "");
  EXPECT_EQ(shared.courses[0].done, replacements);
  EXPECT_EQ(shared.courses[1].done, replacements);
  EXPECT_GT(shared.answers, replacements);
}

INSTANTIATE_TEST_SUITE_P(On, ServiceRoutes, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::service_routes_test
