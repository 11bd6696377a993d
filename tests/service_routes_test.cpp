// Services with routes that are replaced again and again while clients ask without a pause, over
// real sockets and on every backend: no request is lost, and each is answered by the instance that
// was there while it was waited for.
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

namespace weir::tests {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t replacements = 50;

/// One service that is replaced, by versions: what clients may see lies between the last that was
/// there when they asked and the last that had begun to come when they were answered.
struct Course {
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::uint64_t> begun{0};
};

/// What all who take part know.
struct Stage {
  std::array<Course, 2> courses;  // of the per-core page, and of the shared one
  std::atomic<std::uint64_t> answers{0};
  std::atomic<bool> over{false};

  void complain(const std::string& what) {
    const std::lock_guard lock(mutex_);
    complaints_ += what + "\n";
    over = true;
  }
  std::string complaints() const {
    const std::lock_guard lock(mutex_);
    return complaints_;
  }

 private:
  mutable std::mutex mutex_;
  std::string complaints_;
};

struct Version {
  explicit Version(std::uint64_t of, Stage& on) : number(of), stage(on) {}
  Task<Result<>> start() {
    co_await yield();
    co_return {};
  }
  std::uint64_t number;
  Stage& stage;
};
struct SharedVersion : Version {
  using Version::Version;
};

/// Answers at once, after a while, or as a stream; sees that no request is in it when it goes.
class Page {
 public:
  Page(const Version& version, http::Routes& routes, std::string path)
      : stage_(version.stage), text_(std::to_string(version.number)) {
    const auto add = [&](const std::string& to, auto handler) {
      routes.get(http::Pattern::parse(path + to).value(), std::move(handler));
    };
    add("/now", [this] { return http::text(text_); });
    add("/later", [this]() -> Task<http::Response> {
      const Inside inside(*this);
      static_cast<void>(co_await sleep(1ms));
      co_return http::text(text_);
    });
    add("/streamed", [this] { return http::stream("text/plain", &write, this); });
  }
  ~Page() {
    if (inside_ != 0) stage_.complain("a page goes that has a request");
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
      static_cast<void>(co_await sleep(1ms));
    }
    co_return {};
  }

  Stage& stage_;
  std::string text_;
  std::atomic<int> inside_{0};
};
struct LocalPage : Page {
  LocalPage(Version& version, http::Routes& routes) : Page(version, routes, "/0") {}
};
struct SharedPage : Page {
  SharedPage(const SharedVersion& version, http::Routes& routes) : Page(version, routes, "/1") {}
};

/// Replaces both, in turn, now and then exclusively.
class Manager {
 public:
  Manager(App& app, Scope& scope, Stage& stage, std::array<ServiceId, 2> versions)
      : app_(app), scope_(scope), stage_(stage), versions_(versions) {}
  Task<Result<>> start() {
    scope_.spawn(work());
    co_return {};
  }

 private:
  Task<> work() {
    constexpr std::uint64_t answers_each = 20;
    for (std::uint64_t number = 1; number <= replacements && !stage_.over; ++number) {
      const std::uint64_t enough = stage_.answers + answers_each;
      co_await replace(0, number);
      co_await replace(1, number);
      while (stage_.answers < enough && !stage_.over) {
        if (auto slept = co_await sleep(1ms); !slept) co_return;
      }
    }
    stage_.over = true;
  }
  Task<> replace(std::size_t which, std::uint64_t number) {
    Course& course = stage_.courses[which];
    course.begun = number;
    const ServiceOptions options{.replacing = number % 5 == 0 ? Replacing::exclusive
                                                              : Replacing::side_by_side};
    Stage& stage = stage_;
    const ServiceId fresh =
        which == 0
            ? app_.per_core([number, &stage] { return Version(number, stage); }, options)
            : app_.shared([number, &stage] { return SharedVersion(number, stage); }, options);
    const Result<> replaced = co_await app_.replace(versions_[which], fresh);
    if (!replaced) stage_.complain("replacing failed: " + replaced.error().message());
    versions_[which] = fresh;
    course.done = number;
  }

  App& app_;
  Scope& scope_;
  Stage& stage_;
  std::array<ServiceId, 2> versions_;
};

/// Asks in a tight loop until all is over.
class Spectator {
 public:
  Spectator(Stage& stage, const os::Address& address, std::size_t habit)
      : stage_(stage), address_(address), habit_(habit), thread_([this] { watch(); }) {}
  ~Spectator() { thread_.join(); }

 private:
  void watch() {
    while (!stage_.over) {
      auto client = Client::connect(address_);
      if (!client) return stage_.complain("connect: " + client.error().message());
      // A new connection now and then, since the kernel chooses its core.
      for (int round = 0; round < 40 && !stage_.over; ++round) {
        if (!ask(*client)) return;
      }
    }
  }
  bool ask(Client& client) {
    static constexpr std::array<std::string_view, 4> kinds{"/now", "/later", "/now", "/streamed"};
    struct Asked {
      Course& course;
      std::uint64_t done;
    };
    std::vector<Asked> asked;
    std::string requests;
    for (std::size_t count = 0; count < (habit_ % 2 == 0 ? 1 : 8); ++count) {
      const std::size_t which = next_++ % 2;
      asked.push_back({stage_.courses[which], stage_.courses[which].done});
      requests += get("/" + std::to_string(which) + std::string(kinds[next_ / 2 % kinds.size()]));
    }
    if (auto sent = client.send(requests); !sent) return fails("send", sent.error().message());
    for (const Asked& each : asked) {
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
      ++stage_.answers;
    }
    return true;
  }
  bool fails(const std::string& what, const std::string& how) {
    stage_.complain(what + ": " + how);
    return false;
  }

  Stage& stage_;
  os::Address address_;
  std::size_t habit_;
  std::size_t next_ = 0;
  std::thread thread_;
};

class ServiceRoutes : public EachBackend {};

TEST_P(ServiceRoutes, ReplacingThemUnderLoadLosesNoRequest) {
  Stage stage;
  http::Router routes;
  App app;
  const std::array<ServiceId, 2> versions{app.per_core([&stage] { return Version(0, stage); }),
                                          app.shared([&stage] { return SharedVersion(0, stage); })};
  app.per_core<LocalPage>();
  app.shared<SharedPage>();
  app.on_core(0, [&](App& of, Scope& scope) { return Manager(of, scope, stage, versions); });
  const os::Address address = free_address();
  serve_http(app, routes, {.endpoint = address});
  RuntimeOptions options;
  options.cores = 2;
  options.backend = choice_of(GetParam());
  options.handle_signals = false;
  options.announce = false;
  Runtime runtime(options);
  auto status = std::async(std::launch::async, [&] { return app.run(runtime); });
  ASSERT_TRUE(eventually([&] { return Client::connect(address).has_value(); }));
  {
    std::deque<Spectator> crowd;
    for (std::size_t habit = 0; habit < 4; ++habit) crowd.emplace_back(stage, address, habit);
  }
  runtime.drain();
  EXPECT_EQ(status.get(), 0);
  EXPECT_EQ(stage.complaints(), "");
  EXPECT_EQ(stage.courses[0].done, replacements);
  EXPECT_EQ(stage.courses[1].done, replacements);
  EXPECT_GT(stage.answers, replacements);
}

INSTANTIATE_TEST_SUITE_P(On, ServiceRoutes, testing::ValuesIn(every_backend), name_of);

}  // namespace
}  // namespace weir::tests
