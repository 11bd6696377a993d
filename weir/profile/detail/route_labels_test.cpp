// Tests of labels, with memory that is no trace context.
#include "weir/profile/detail/route_labels.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "weir/http/server/detail/request_trace.hpp"
#include "weir/http_testing/test_client.hpp"
#include "weir/os/detail/process/cpu_sampler.hpp"

namespace weir::profile::route_labels_test {
namespace {

class RouteLabelsTest : public testing::Test {
 protected:
  using Look = std::function<void(const TraceContext&)>;

  void SetUp() override {
    int number = 0;
    if (!os::copy_own_memory(&number, &number, sizeof number))
      GTEST_SKIP() << "process_vm_readv(2) is refused here";
  }
  /// Calls `look` inside of a request of GET `pattern`.
  static void in_request(const Look& look, std::string_view path = "/users/7") {
    http::Router routes;
    const auto handler = [&look](int) {
      look(*loop::CurrentActivity::trace());
      return http::Response();
    };
    routes.get("/users/{id}", handler);
    routes.get("/later/{id}", [&look](int) -> Task<http::Response> {
      const Context context = co_await this_context();
      look(*context.trace());
      co_return http::Response();
    });
    http::TestClient client(std::move(routes));
    EXPECT_EQ(client.get(path).status(), 200);
  }
};

TEST_F(RouteLabelsTest, NamesTheRouteOfARequest) {
  unsigned calls = 0;
  for (const std::string_view path : {"/users/7", "/later/7"}) {
    in_request(
        [&](const TraceContext& trace) {
          RouteLabels labels(2, &trace);
          const std::uintptr_t label = labels.read(1, &trace);
          EXPECT_EQ(labels.text(1, label),
                    path == "/users/7" ? "GET /users/{id}" : "GET /later/{id}");
          EXPECT_EQ(labels.read(1, &trace), label) << "the same route has the same label";
          EXPECT_EQ(labels.text(0, label), "") << "another core has other labels";
          EXPECT_EQ(labels.text(1, 0), "");
          ++calls;
        },
        path);
  }
  EXPECT_EQ(calls, 2u);
}

TEST_F(RouteLabelsTest, SurvivesMemoryThatIsNoTraceContext) {
  in_request([](const TraceContext& trace) {
    RouteLabels labels(1, &trace);
    void* const page =
        ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    ASSERT_EQ(::mprotect(static_cast<char*>(page) + 4096, 4096, PROT_NONE), 0);
    const auto at = [page](std::size_t offset) {
      return reinterpret_cast<const TraceContext*>(static_cast<char*>(page) + offset);
    };
    EXPECT_EQ(labels.read(0, nullptr), 0u);
    EXPECT_EQ(labels.read(0, at(0)), 0u) << "zeros";
    EXPECT_EQ(labels.read(0, at(4096)), 0u) << "not readable";
    EXPECT_EQ(labels.read(0, at(4096 - 8)), 0u) << "partly readable";
    EXPECT_EQ(labels.read(0, reinterpret_cast<const TraceContext*>(std::uintptr_t{1} << 60)), 0u);
    // The right first word, and a route that is not readable.
    std::memcpy(page, static_cast<const void*>(&trace), sizeof(http::RequestTrace));
    EXPECT_NE(labels.read(0, at(0)), 0u) << "a copy of a trace context is like the original";
    std::memset(static_cast<char*>(page) + sizeof(void*), 0x5a, 4096 - sizeof(void*));
    EXPECT_EQ(labels.read(0, at(0)), 0u);
    ::munmap(page, 8192);
    EXPECT_EQ(labels.read(0, at(0)), 0u) << "unmapped";
  });
}

/// A trace context of another kind of work.
class OtherTrace final : public TraceContext {
 public:
  std::string_view kind() const noexcept override { return "other"; }
  std::string_view id(IdBuffer) const noexcept override { return "1"; }
};

TEST_F(RouteLabelsTest, HasNoLabelsWithoutARequest) {
  const OtherTrace other;
  for (const TraceContext* const example :
       {static_cast<const TraceContext*>(nullptr), static_cast<const TraceContext*>(&other)}) {
    RouteLabels labels(1, example);
    in_request([&](const TraceContext& trace) { EXPECT_EQ(labels.read(0, &trace), 0u); });
  }
  in_request([&](const TraceContext& trace) {
    RouteLabels labels(1, &trace);
    EXPECT_EQ(labels.read(0, &other), 0u);
  });
}

/// Changes where a copy of a trace context finds its route.
class FakeTrace {
 public:
  explicit FakeTrace(const TraceContext& trace)
      : request_(dynamic_cast<const http::RequestTrace&>(trace)), copy_(sizeof request_) {
    std::memcpy(copy_.data(), static_cast<const void*>(&request_), copy_.size());
  }
  const TraceContext* with(const http::Route* route) {
    std::memcpy(copy_.data() + request_.route_offset(), &route, sizeof route);
    return reinterpret_cast<const TraceContext*>(copy_.data());
  }

 private:
  const http::RequestTrace& request_;
  std::vector<std::byte> copy_;
};

http::Route made_route(std::string method, std::string_view pattern) {
  return {std::move(method),
          http::Pattern::parse(pattern).value(),
          http::Handler::of([] { return http::Response(); }),
          {}};
}

TEST_F(RouteLabelsTest, NamesARouteThatHasTheAddressOfARemovedOne) {
  in_request([](const TraceContext& trace) {
    RouteLabels labels(1, &trace);
    FakeTrace fake(trace);
    auto route = std::make_unique<http::Route>(made_route("GET", "/old/{id}"));
    const std::uintptr_t old = labels.read(0, fake.with(route.get()));
    *route = made_route("DELETE", "/new");
    const std::uintptr_t next = labels.read(0, fake.with(route.get()));
    EXPECT_EQ(labels.text(0, old), "GET /old/{id}");
    EXPECT_EQ(labels.text(0, next), "DELETE /new");
    *route = made_route("GET", "/old/{id}");
    EXPECT_EQ(labels.read(0, fake.with(route.get())), old) << "one name has one label";
  });
}

TEST_F(RouteLabelsTest, HasNoLabelForMemoryThatIsNoRoute) {
  in_request([](const TraceContext& trace) {
    RouteLabels labels(1, &trace);
    FakeTrace fake(trace);
    auto route = std::make_unique<http::Route>(made_route("GET", "/a"));
    route->method.clear();
    EXPECT_EQ(labels.read(0, fake.with(route.get())), 0u);
    route->method = std::string(33, 'M');
    EXPECT_EQ(labels.read(0, fake.with(route.get())), 0u);
    route->method = "GET";
    const_cast<std::string&>(route->pattern.text()) = "no path";
    EXPECT_EQ(labels.read(0, fake.with(route.get())), 0u);
    const_cast<std::string&>(route->pattern.text()).clear();
    EXPECT_EQ(labels.read(0, fake.with(route.get())), 0u);
    EXPECT_EQ(labels.read(1, fake.with(route.get())), 0u) << "a thread beyond the limit";
    EXPECT_EQ(labels.text(1, 1), "");
  });
}

TEST_F(RouteLabelsTest, LimitsTheNumberAndTheLengthOfNames) {
  in_request([](const TraceContext& trace) {
    RouteLabels labels(1, &trace);
    FakeTrace fake(trace);
    std::vector<std::unique_ptr<http::Route>> routes;
    for (std::size_t number = 0; number < RouteLabels::routes_max + 10; ++number) {
      const std::string pattern = "/" + std::to_string(number) + std::string(300, 'x');
      routes.push_back(std::make_unique<http::Route>(made_route("GET", pattern)));
      const std::uintptr_t label = labels.read(0, fake.with(routes.back().get()));
      ASSERT_EQ(label != 0, number < RouteLabels::routes_max) << number;
      if (label == 0) continue;
      EXPECT_EQ(labels.text(0, label).size(), RouteLabels::name_bytes_max);
      EXPECT_TRUE(labels.text(0, label).starts_with("GET /" + std::to_string(number) + "xx"));
    }
  });
}

}  // namespace
}  // namespace weir::profile::route_labels_test
