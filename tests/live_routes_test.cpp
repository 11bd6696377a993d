// Tests adding, replacing and removing routes on running servers, over real sockets on every
// backend, while clients send requests without a pause. Each answer must have been correct at
// some time while the client waited for it. No handler is destroyed during a request.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/client.hpp"
#include "tests/server.hpp"
#include "weir/http.hpp"

namespace weir::tests::live_routes_test {
namespace {

using namespace std::chrono_literals;

/// An ErrorLog collects the failures of all threads.
class ErrorLog {
 public:
  void add(std::string what) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(what));
    any_ = true;
  }
  bool any() const { return any_; }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const std::string& each : all_) text += each + "\n";
    return text;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> all_;
  std::atomic<bool> any_{false};
};

/// A RouteHistory is the sequence of changes of one route, in steps. The route is missing at each
/// fourth step. A new handler, which answers with the step's number, serves it at each other
/// step. A client may see the steps from `done` at its request to `begun` at its answer.
struct RouteHistory {
  RouteHistory(std::string of, ErrorLog& to) : path(std::move(of)), errors(to) {}
  static bool exists(std::uint64_t step) { return step % 4 != 0; }

  const std::string path;
  ErrorLog& errors;
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::uint64_t> begun{0};
  http::RouteId id;  // used by the core that changes the route
};

/// A Step is the handler of one step. It answers immediately, after a delay, or as a stream.
class Step {
 public:
  Step(RouteHistory& course, std::uint64_t number, const Loop& owner_loop)
      : inside_(std::make_unique<Inside>(course, number, owner_loop)) {}

  Task<http::Response> operator()(http::Request& request) const {
    const InFlightCount guest(*inside_);
    if (request.query("later")) std::ignore = co_await sleep(1ms);
    if (request.query("streamed")) co_return http::stream("text/plain", &write, inside_.get());
    co_return http::text(inside_->text());
  }

 private:
  struct Inside {
    Inside(RouteHistory& of, std::uint64_t step, const Loop& loop)
        : course(of), number(step), owner_loop(loop) {}
    ~Inside() {
      if (requests != 0) course.errors.add("a handler with a request is destroyed");
      if (Loop::current() != &owner_loop)
        course.errors.add("a handler is destroyed on another core");
    }
    std::string text() const { return std::to_string(number); }

    RouteHistory& course;
    const std::uint64_t number;
    const Loop& owner_loop;
    std::atomic<int> requests{0};
  };
  struct InFlightCount {
    explicit InFlightCount(Inside& of) : inside(of) { ++inside.requests; }
    ~InFlightCount() { --inside.requests; }
    InFlightCount(const InFlightCount&) = delete;
    InFlightCount& operator=(const InFlightCount&) = delete;
    Inside& inside;
  };
  static Task<Result<>> write(http::BodySink& sink, Inside* inside) {
    const InFlightCount guest(*inside);
    const std::string text = inside->text();
    for (const char each : text) {
      if (auto sent = co_await sink.write(std::string_view(&each, 1)); !sent) co_return sent;
      std::ignore = co_await sleep(1ms);
    }
    co_return {};
  }
  std::unique_ptr<Inside> inside_;
};

/// A TestService runs one or more runtimes that serve one router until drain(). Each core changes
/// a route of its own. The object also holds the state that all participants share.
class TestService {
 public:
  static constexpr unsigned cores = 2;

  TestService(std::size_t runtimes, const RuntimeOptions& options) {
    routes_.get("/steady", [] { return http::text("steady"); });
    for (std::size_t index = 0; index < runtimes * cores; ++index) {
      courses_.emplace_back("/course/" + std::to_string(index), errors_);
    }
    for (std::size_t index = 0; index < runtimes; ++index) {
      TestRuntime& instance = instances_.emplace_back(options, index * cores);
      instance.status = std::async(std::launch::async, [this, &instance] {
        return instance.runtime.run_on_each_core(&TestService::serve, this, &instance);
      });
    }
  }

  bool wait_until_listening() {
    return eventually([this] {
      return std::ranges::all_of(instances_, [](const TestRuntime& instance) {
        return Client::connect(instance.address).has_value();
      });
    });
  }
  const os::Address& address(std::size_t runtime) const { return instances_[runtime].address; }
  std::size_t runtimes() const { return instances_.size(); }
  std::deque<RouteHistory>& courses() { return courses_; }
  ErrorLog& errors() { return errors_; }
  std::atomic<std::uint64_t>& answers() { return answers_; }
  /// Returns true if every route and the clients have done enough, or if something has failed.
  bool is_done() const { return courses_run_ == courses_.size() || errors_.any(); }

  void drain() {
    for (TestRuntime& instance : instances_) instance.runtime.drain();
  }
  /// Waits for all runtimes and checks the results. The caller has called drain().
  void expect_clean_exit() {
    for (TestRuntime& instance : instances_) EXPECT_EQ(instance.status.get(), 0);
    EXPECT_EQ(errors_.text(), "");
  }

 private:
  struct TestRuntime {
    TestRuntime(const RuntimeOptions& options, std::size_t first)
        : runtime(options), first_course(first) {}
    Runtime runtime;
    std::size_t first_course;
    os::Address address = free_address();
    std::future<int> status;
  };

  static Task<Result<>> serve(Scope& scope, TestService* service, TestRuntime* instance) {
    scope.spawn(service->run(service->courses_[instance->first_course + scope.loop().core()]));
    return http::serve(scope, service->routes_, {instance->address});
  }

  /// Runs complete rounds of four steps until the loop drains. The route is missing at the end.
  Task<> run(RouteHistory& course) {
    constexpr std::uint64_t steps_least = 4 * 25;
    constexpr std::uint64_t answers_least = 2000;
    const Context context = co_await this_context();
    const Loop& loop = *context.loop;
    bool counted = false;
    while (!loop.draining()) {
      for (int count = 0; count < 4; ++count) co_await step(course, loop);
      if (counted || course.done < steps_least || answers_ < answers_least) continue;
      counted = true;
      ++courses_run_;
    }
  }
  Task<> step(RouteHistory& course, const Loop& loop) {
    const std::uint64_t next = course.done + 1;
    course.begun = next;
    std::error_code error;
    if (!RouteHistory::exists(next)) {
      const auto removed = co_await live_.remove(course.id);
      if (!removed) error = removed.error();
    } else if (!RouteHistory::exists(next - 1)) {
      const auto pattern = http::Pattern::parse(course.path).value();
      Step handler(course, next, loop);
      const auto added = co_await live_.get(pattern, std::move(handler));
      if (added) course.id = *added;
      if (!added) error = added.error();
    } else {
      Step handler(course, next, loop);
      const auto replaced = co_await live_.replace(course.id, std::move(handler));
      if (!replaced) error = replaced.error();
    }
    if (error) errors_.add("a change failed: " + error.message());
    course.done = next;
  }

  ErrorLog errors_;
  http::Router routes_;
  http::LiveRoutes live_{routes_};
  std::deque<RouteHistory> courses_;
  std::deque<TestRuntime> instances_;
  std::atomic<std::uint64_t> answers_{0};
  std::atomic<std::size_t> courses_run_{0};
};

/// A CheckingClient sends single requests and pipelines of all kinds in a tight loop until the
/// service is done.
class CheckingClient {
 public:
  CheckingClient(TestService& service, std::size_t variant)
      : service_(service),
        address_(service.address(variant % service.runtimes())),
        variant_(variant),
        thread_([this] { watch(); }) {}
  ~CheckingClient() { thread_.join(); }

 private:
  struct PendingRequest {
    RouteHistory* course;  ///< nullptr for the permanent route
    std::uint64_t done;
  };

  void watch() {
    while (!service_.is_done()) {
      auto client = Client::connect(address_);
      if (!client) return add_error("connect", client.error());
      // New connections reach other cores, because the kernel chooses the core.
      for (int round = 0; round < 40 && !service_.is_done(); ++round) {
        if (!ask(*client)) return;
      }
    }
  }

  bool ask(Client& client) {
    static constexpr std::array<std::string_view, 5> kinds{"", "", "?later", "", "?streamed"};
    const std::size_t batch = variant_ % 2 == 0 ? 1 : 8;
    std::vector<PendingRequest> pending;
    std::string requests;
    for (std::size_t count = 0; count < batch; ++count) {
      const std::size_t number = next_++;
      const std::size_t which = number % (service_.courses().size() + 1);
      RouteHistory* const course =
          which < service_.courses().size() ? &service_.courses()[which] : nullptr;
      pending.push_back({course, course == nullptr ? 0 : course->done.load()});
      requests +=
          get(course == nullptr ? "/steady" : course->path + std::string(kinds[number % 5]));
    }
    if (auto sent = client.send(requests); !sent) return fails("send", sent.error());
    for (const PendingRequest& each : pending) {
      const auto answer = client.read();
      if (!answer) return fails("read", answer.error());
      if (!is_right(each, *answer)) return false;
      ++service_.answers();
    }
    return true;
  }

  bool is_right(const PendingRequest& pending, const Response& answer) {
    if (pending.course == nullptr) {
      if (answer.status == 200 && answer.body == "steady") return true;
      return fails("steady: " + std::to_string(answer.status) + " " + answer.body, {});
    }
    const std::uint64_t begun = pending.course->begun;
    for (std::uint64_t step = pending.done; step <= begun; ++step) {
      if (RouteHistory::exists(step) ? answer.status == 200 && answer.body == std::to_string(step)
                                     : answer.status == 404) {
        return true;
      }
    }
    return fails("between " + std::to_string(pending.done) + " and " + std::to_string(begun) +
                     ": " + std::to_string(answer.status) + " " + answer.body,
                 {});
  }

  void add_error(const std::string& what, std::error_code error) {
    service_.errors().add(what + ": " + error.message());
  }
  bool fails(const std::string& what, std::error_code error) {
    add_error(what, error);
    return false;
  }

  TestService& service_;
  os::Address address_;
  std::size_t variant_;
  std::size_t next_ = 0;
  std::thread thread_;
};

class LiveRoutes : public EachBackend {
 protected:
  RuntimeOptions options() const {
    RuntimeOptions options;
    options.cores = TestService::cores;
    options.backend = to_backend_choice(GetParam());
    options.handle_signals = false;
    options.announce = false;
    return options;
  }
  static void watch(TestService& service) {
    std::deque<CheckingClient> clients;
    for (std::size_t variant = 0; variant < 4; ++variant) clients.emplace_back(service, variant);
  }
};

TEST_P(LiveRoutes, EveryAnswerIsCorrectWhileRoutesChange) {
  TestService service(1, options());
  ASSERT_TRUE(service.wait_until_listening());
  watch(service);
  service.drain();
  service.expect_clean_exit();
}

TEST_P(LiveRoutes, TwoRuntimesMayServeOneRouter) {
  TestService service(2, options());
  ASSERT_TRUE(service.wait_until_listening());
  watch(service);
  service.drain();
  service.expect_clean_exit();
}

TEST_P(LiveRoutes, RoutesMayChangeUntilTheEndOfADrain) {
  for (int round = 0; round < 2; ++round) {
    TestService service(1, options());
    ASSERT_TRUE(service.wait_until_listening());
    Client waiting(service.address(0));
    ASSERT_TRUE(waiting.send(get("/course/0?later") + get("/steady")));
    service.drain();
    const auto first = waiting.read();
    ASSERT_TRUE(first) << first.error().message();
    service.expect_clean_exit();
  }
}

INSTANTIATE_TEST_SUITE_P(On, LiveRoutes, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::live_routes_test
