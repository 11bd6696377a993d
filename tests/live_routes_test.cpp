// Routes that come, are replaced and go on running servers, over real sockets and on every backend,
// while clients ask without a pause: each answer is one that was right while it was waited for, and
// no handler goes while a request is in it.
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

namespace weir::tests {
namespace {

using namespace std::chrono_literals;

/// What goes wrong on any thread.
class Complaints {
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

/// The life of one route, in steps: at each fourth it is not there, at the others there is another
/// handler, which answers with the step. What clients may see lies between these two.
struct Course {
  Course(std::string of, Complaints& to) : path(std::move(of)), complaints(to) {}
  static bool there(std::uint64_t step) { return step % 4 != 0; }

  const std::string path;
  Complaints& complaints;
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::uint64_t> begun{0};
  http::RouteId id;  // of the core that changes it
};

/// The handler of one step. It answers at once, after a while, or as a stream.
class Step {
 public:
  Step(Course& course, std::uint64_t number, const Loop& home)
      : inside_(std::make_unique<Inside>(course, number, home)) {}

  Task<http::Response> operator()(http::Request& request) const {
    const Guest guest(*inside_);
    if (request.query("later")) static_cast<void>(co_await sleep(1ms));
    if (request.query("streamed")) co_return http::stream("text/plain", &write, inside_.get());
    co_return http::text(inside_->text());
  }

 private:
  struct Inside {
    Inside(Course& of, std::uint64_t step, const Loop& loop)
        : course(of), number(step), home(loop) {}
    ~Inside() {
      if (requests != 0) course.complaints.add("a handler goes that has a request");
      if (Loop::current() != &home) course.complaints.add("a handler goes on another core");
    }
    std::string text() const { return std::to_string(number); }

    Course& course;
    const std::uint64_t number;
    const Loop& home;
    std::atomic<int> requests{0};
  };
  struct Guest {
    explicit Guest(Inside& of) : inside(of) { ++inside.requests; }
    ~Guest() { --inside.requests; }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;
    Inside& inside;
  };
  static Task<Result<>> write(http::BodySink& sink, Inside* inside) {
    const Guest guest(*inside);
    const std::string text = inside->text();
    for (const char each : text) {
      if (auto sent = co_await sink.write(std::string_view(&each, 1)); !sent) co_return sent;
      static_cast<void>(co_await sleep(1ms));
    }
    co_return {};
  }
  std::unique_ptr<Inside> inside_;
};

/// Some runtimes that serve one router, each core with a course of its own, until it is told to
/// stop; and what all who take part know.
class Show {
 public:
  static constexpr unsigned cores = 2;

  Show(std::size_t runtimes, const RuntimeOptions& options) {
    routes_.get("/steady", [] { return http::text("steady"); });
    for (std::size_t index = 0; index < runtimes * cores; ++index) {
      courses_.emplace_back("/course/" + std::to_string(index), complaints_);
    }
    for (std::size_t index = 0; index < runtimes; ++index) {
      Stage& stage = stages_.emplace_back(options, index * cores);
      stage.status = std::async(std::launch::async, [this, &stage] {
        return stage.runtime.run_on_each_core(&Show::serve, this, &stage);
      });
    }
  }

  bool wait_until_they_listen() {
    return eventually([this] {
      return std::ranges::all_of(
          stages_, [](const Stage& stage) { return Client::connect(stage.address).has_value(); });
    });
  }
  const os::Address& address(std::size_t runtime) const { return stages_[runtime].address; }
  std::size_t runtimes() const { return stages_.size(); }
  std::deque<Course>& courses() { return courses_; }
  Complaints& complaints() { return complaints_; }
  std::atomic<std::uint64_t>& answers() { return answers_; }
  /// Every course has been run long enough, and so have the clients; or something went wrong.
  bool over() const { return courses_run_ == courses_.size() || complaints_.any(); }

  void drain() {
    for (Stage& stage : stages_) stage.runtime.drain();
  }
  /// After drain().
  void expect_a_good_end() {
    for (Stage& stage : stages_) EXPECT_EQ(stage.status.get(), 0);
    EXPECT_EQ(complaints_.text(), "");
  }

 private:
  struct Stage {
    Stage(const RuntimeOptions& options, std::size_t first)
        : runtime(options), first_course(first) {}
    Runtime runtime;
    std::size_t first_course;
    os::Address address = free_address();
    std::future<int> status;
  };

  static Task<Result<>> serve(Scope& scope, Show* show, Stage* stage) {
    scope.spawn(show->run(show->courses_[stage->first_course + scope.loop().core()]));
    return http::serve(scope, show->routes_, stage->address);
  }

  /// Whole rounds, so that the route has gone in the end; until the loop drains.
  Task<> run(Course& course) {
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
  Task<> step(Course& course, const Loop& loop) {
    const std::uint64_t next = course.done + 1;
    course.begun = next;
    std::error_code error;
    if (!Course::there(next)) {
      const auto removed = co_await live_.remove(course.id);
      if (!removed) error = removed.error();
    } else if (!Course::there(next - 1)) {
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
    if (error) complaints_.add("a change failed: " + error.message());
    course.done = next;
  }

  Complaints complaints_;
  http::Router routes_;
  http::LiveRoutes live_{routes_};
  std::deque<Course> courses_;
  std::deque<Stage> stages_;
  std::atomic<std::uint64_t> answers_{0};
  std::atomic<std::size_t> courses_run_{0};
};

/// Asks in a tight loop, single requests and pipelines of all kinds, until the show is over.
class Spectator {
 public:
  Spectator(Show& show, std::size_t habit)
      : show_(show),
        address_(show.address(habit % show.runtimes())),
        habit_(habit),
        thread_([this] { watch(); }) {}
  ~Spectator() { thread_.join(); }

 private:
  struct Asked {
    Course* course;  ///< nullptr for the route that stays
    std::uint64_t done;
  };

  void watch() {
    while (!show_.over()) {
      auto client = Client::connect(address_);
      if (!client) return complain("connect", client.error());
      // A new connection now and then, since the kernel chooses its core.
      for (int round = 0; round < 40 && !show_.over(); ++round) {
        if (!ask(*client)) return;
      }
    }
  }

  bool ask(Client& client) {
    static constexpr std::array<std::string_view, 5> kinds{"", "", "?later", "", "?streamed"};
    const std::size_t batch = habit_ % 2 == 0 ? 1 : 8;
    std::vector<Asked> asked;
    std::string requests;
    for (std::size_t count = 0; count < batch; ++count) {
      const std::size_t number = next_++;
      const std::size_t which = number % (show_.courses().size() + 1);
      Course* const course = which < show_.courses().size() ? &show_.courses()[which] : nullptr;
      asked.push_back({course, course == nullptr ? 0 : course->done.load()});
      requests +=
          get(course == nullptr ? "/steady" : course->path + std::string(kinds[number % 5]));
    }
    if (auto sent = client.send(requests); !sent) return fails("send", sent.error());
    for (const Asked& each : asked) {
      const auto answer = client.read();
      if (!answer) return fails("read", answer.error());
      if (!is_right(each, *answer)) return false;
      ++show_.answers();
    }
    return true;
  }

  bool is_right(const Asked& asked, const Response& answer) {
    if (asked.course == nullptr) {
      if (answer.status == 200 && answer.body == "steady") return true;
      return fails("steady: " + std::to_string(answer.status) + " " + answer.body, {});
    }
    const std::uint64_t begun = asked.course->begun;
    for (std::uint64_t step = asked.done; step <= begun; ++step) {
      if (Course::there(step) ? answer.status == 200 && answer.body == std::to_string(step)
                              : answer.status == 404) {
        return true;
      }
    }
    return fails("between " + std::to_string(asked.done) + " and " + std::to_string(begun) + ": " +
                     std::to_string(answer.status) + " " + answer.body,
                 {});
  }

  void complain(const std::string& what, std::error_code error) {
    show_.complaints().add(what + ": " + error.message());
  }
  bool fails(const std::string& what, std::error_code error) {
    complain(what, error);
    return false;
  }

  Show& show_;
  os::Address address_;
  std::size_t habit_;
  std::size_t next_ = 0;
  std::thread thread_;
};

class LiveRoutes : public EachBackend {
 protected:
  RuntimeOptions options() const {
    RuntimeOptions options;
    options.cores = Show::cores;
    options.backend = choice_of(GetParam());
    options.handle_signals = false;
    options.announce = false;
    return options;
  }
  static void watch(Show& show) {
    std::deque<Spectator> crowd;
    for (std::size_t habit = 0; habit < 4; ++habit) crowd.emplace_back(show, habit);
  }
};

TEST_P(LiveRoutes, EveryAnswerIsRightWhileRoutesComeAndGo) {
  Show show(1, options());
  ASSERT_TRUE(show.wait_until_they_listen());
  watch(show);
  show.drain();
  show.expect_a_good_end();
}

TEST_P(LiveRoutes, TwoRuntimesMayServeOneRouter) {
  Show show(2, options());
  ASSERT_TRUE(show.wait_until_they_listen());
  watch(show);
  show.drain();
  show.expect_a_good_end();
}

TEST_P(LiveRoutes, TheyMayChangeUntilTheEndOfADrain) {
  for (int round = 0; round < 2; ++round) {
    Show show(1, options());
    ASSERT_TRUE(show.wait_until_they_listen());
    Client waiting(show.address(0));
    ASSERT_TRUE(waiting.send(get("/course/0?later") + get("/steady")));
    show.drain();
    const auto first = waiting.read();
    ASSERT_TRUE(first) << first.error().message();
    show.expect_a_good_end();
  }
}

INSTANTIATE_TEST_SUITE_P(On, LiveRoutes, testing::ValuesIn(every_backend), name_of);

}  // namespace
}  // namespace weir::tests
