#include "weir/http/owned_routes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/http/test/live_routes_fixture.hpp"

namespace weir::http {
namespace {

using namespace std::chrono_literals;
using Reach = OwnedRoutes::Reach;

constexpr std::string_view nobody = "503";

class OwnedRoutesTest : public LiveRoutesTest {
 protected:
  OwnedRoutesTest() { board_.open(loop(0), loops()); }
  void TearDown() override {
    for (const auto& each : owners_) leave_now(*each);
    board_.close();
    LiveRoutesTest::TearDown();
    owners_.clear();
  }

  OwnedRoutes& owner(unsigned core, Reach reach = Reach::own_core) {
    owners_.push_back(std::make_unique<OwnedRoutes>(board_, "Owner", loop(core), reach));
    cores_.push_back(core);
    return *owners_.back();
  }
  /// One that answers GET /a with `what`, open.
  OwnedRoutes& open_with(unsigned core, std::string what, Reach reach = Reach::own_core) {
    OwnedRoutes& fresh = owner(core, reach);
    fresh.get("/a", Saying(fates_.emplace_back(), std::move(what)));
    EXPECT_TRUE(open(fresh));
    return fresh;
  }
  unsigned core_of(const OwnedRoutes& of) const {
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      if (owners_[i].get() == &of) return cores_[i];
    }
    return 0;
  }
  Result<> open(OwnedRoutes& of, const OwnedRoutes* beside = nullptr) {
    return run_on(core_of(of), of.open(beside));
  }
  static Task<bool> ended(Task<> task) {
    co_await std::move(task);
    co_return true;
  }
  void leave_now(OwnedRoutes& of, Leaving how = {}) {
    EXPECT_TRUE(run_on(core_of(of), ended(of.leave(how))));
  }
  void hand_over(OwnedRoutes& to) {
    for (Loop* const each : to.loops()) to.hand_over(*each);
  }

  RouteBoard board_{routes_, {.wait_max = 5s, .retry_after = 7s}};
  std::vector<std::unique_ptr<OwnedRoutes>> owners_;
  std::vector<unsigned> cores_;
};

TEST_F(OwnedRoutesTest, EachInstanceAnswersOnItsCoreUntilItLeaves) {
  start_all();
  EXPECT_EQ(ask_all("/a"), "404");
  OwnedRoutes& first = open_with(0, "zero ");
  EXPECT_EQ(ask(0, "/a"), "200 zero 0");
  EXPECT_EQ(ask(1, "/a"), nobody);
  OwnedRoutes& second = open_with(1, "one ");
  EXPECT_EQ(ask(0, "/a"), "200 zero 0");
  EXPECT_EQ(ask(1, "/a"), "200 one 0");
  EXPECT_EQ(ask(2, "/a"), nobody);
  leave_now(first);
  EXPECT_EQ(ask(0, "/a"), nobody);
  EXPECT_EQ(ask(1, "/a"), "200 one 0");
  leave_now(second);
  EXPECT_EQ(ask_all("/a"), "404");
}

TEST_F(OwnedRoutesTest, WhereNobodyIsTheClientIsToldWhenToTryAgain) {
  start_all();
  open_with(0, "zero ");
  const std::string answer = send_get(1, "/a").received();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("\r\nRetry-After: 7\r\n"), std::string::npos) << answer;
}

TEST_F(OwnedRoutesTest, ASharedOwnerAnswersOnAllCores) {
  start_all();
  OwnedRoutes& shared = open_with(1, "shared ", Reach::all_cores);
  EXPECT_EQ(ask_all("/a"), "200 shared 0");
  leave_now(shared);
  EXPECT_EQ(ask_all("/a"), "404");
}

TEST_F(OwnedRoutesTest, CapturesBodiesAndMethodsAreAsEverywhere) {
  start_all();
  OwnedRoutes& one = owner(1);
  one.get("/to/{name}/{rest...}", [](std::string_view name, Rest rest) {
    return text(std::string(name) + " " + std::string(rest.raw()));
  });
  one.post("/body", [](Request& request) -> Task<Response> {
    auto body = co_await request.body();
    co_return text(body ? *body : "none");
  });
  one.add("BREW", Pattern::parse("/pot/{id:[0-9]+}").value(),
          [](unsigned id) { return text(std::to_string(id)); });
  ASSERT_TRUE(open(one));
  EXPECT_EQ(ask(1, "/to/ann/b/c"), "200 ann b/c");
  EXPECT_EQ(said(send(1, "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")),
            "200 abc");
  EXPECT_EQ(said(send(1, "BREW /pot/12 HTTP/1.1\r\nHost: a\r\n\r\n")), "200 12");
  EXPECT_EQ(said(send(1, "BREW /pot/x HTTP/1.1\r\nHost: a\r\n\r\n")), "404");
  EXPECT_EQ(said(send(1, "BREW /body HTTP/1.1\r\nHost: a\r\n\r\n")), "405");
}

TEST_F(OwnedRoutesTest, LeavingWaitsForTheRequestsOfAllItsCores) {
  start_all();
  Fate& fate = fates_.emplace_back();
  OwnedRoutes& shared = owner(0, Reach::all_cores);
  shared.get("/wait", Waiting(fate, gates_, "waited"));
  shared.get("/stream", Streaming(fate, gates_, "part "));
  ASSERT_TRUE(open(shared));
  MemoryPeer& first = send_get(1, "/wait");
  MemoryPeer& second = send_get(2, "/stream");
  EXPECT_EQ(fate.inside, 2U);
  Running<bool> leaving(loop(0), ended(shared.leave({})));
  settle();
  EXPECT_FALSE(leaving.done());
  EXPECT_EQ(ask_all("/wait"), "404");
  gates_[1].set();
  settle();
  EXPECT_EQ(said(first), "200 waited");
  EXPECT_FALSE(leaving.done());
  gates_[2].set();
  settle();
  EXPECT_TRUE(second.received().ends_with("part \r\n0\r\n\r\n")) << second.received();
  EXPECT_TRUE(leaving.done());
}

TEST_F(OwnedRoutesTest, WhoTakesTooLongIsAskedToStop) {
  start_all();
  Fate& fate = fates_.emplace_back();
  OwnedRoutes& one = owner(1);
  one.get("/wait", Waiting(fate, gates_, "waited"));
  ASSERT_TRUE(open(one));
  MemoryPeer& peer = send_get(1, "/wait");
  Running<bool> leaving(loop(1), ended(one.leave({.patience = 3s})));
  host_.advance(loops(), 2s);
  EXPECT_FALSE(leaving.done());
  EXPECT_EQ(said(peer), "");
  host_.advance(loops(), 2s);
  EXPECT_TRUE(leaving.done());
  EXPECT_EQ(fate.stopped, 1U);
  EXPECT_EQ(said(peer), "503");
}

TEST_F(OwnedRoutesTest, AnImpatientLeaverAsksThemAtOnce) {
  start_all();
  Fate& fate = fates_.emplace_back();
  OwnedRoutes& one = owner(1);
  one.get("/wait", Waiting(fate, gates_, "waited"));
  ASSERT_TRUE(open(one));
  MemoryPeer& peer = send_get(1, "/wait");
  CancelSource cancel;
  Running<bool> leaving(loop(1), under(cancel, ended(one.leave({}))));
  settle();
  EXPECT_FALSE(leaving.done());
  cancel.cancel();
  settle();
  EXPECT_TRUE(leaving.done());
  EXPECT_EQ(said(peer), "503");
}

TEST_F(OwnedRoutesTest, RoutesChangeHandsInOneStep) {
  start_all();
  Fate& fate = fates_.emplace_back();
  for (const Reach reach : {Reach::own_core, Reach::all_cores}) {
    OwnedRoutes& old = owner(1, reach);
    old.get("/a", Saying(fates_.emplace_back(), "old "));
    old.get("/wait", Waiting(fate, gates_, "old"));
    old.get("/only-old", Saying(fates_.emplace_back(), "old "));
    ASSERT_TRUE(open(old));
    MemoryPeer& waiting = send_get(1, "/wait");
    OwnedRoutes& fresh = owner(1, reach);
    fresh.get("/a", Saying(fates_.emplace_back(), "new "));
    fresh.get("/wait", Saying(fates_.emplace_back(), "new "));
    fresh.get("/only-new", Saying(fates_.emplace_back(), "new "));
    ASSERT_TRUE(open(fresh, &old));
    EXPECT_EQ(ask(1, "/a"), "200 old 0");
    EXPECT_EQ(ask(1, "/only-new"), "200 new 0");
    hand_over(fresh);
    EXPECT_EQ(ask(1, "/a"), "200 new 0");
    EXPECT_EQ(ask(1, "/wait"), "200 new 0");
    Running<bool> leaving(loop(1), ended(old.leave({})));
    settle();
    EXPECT_FALSE(leaving.done());
    EXPECT_EQ(ask(1, "/a"), "200 new 0");
    EXPECT_EQ(ask(1, "/only-old"), "404");
    gates_[1].set();
    settle();
    EXPECT_TRUE(leaving.done());
    EXPECT_EQ(said(waiting), "200 old");
    gates_[1].reset();
    leave_now(fresh);
    EXPECT_EQ(ask_all("/a"), "404");
  }
}

TEST_F(OwnedRoutesTest, OneThatStandsByMayLeaveAgain) {
  start_all();
  OwnedRoutes& old = open_with(1, "old ");
  OwnedRoutes& fresh = owner(1);
  fresh.get("/a", Saying(fates_.emplace_back(), "new "));
  fresh.get("/b", Saying(fates_.emplace_back(), "new "));
  ASSERT_TRUE(open(fresh, &old));
  leave_now(fresh);
  EXPECT_EQ(ask(1, "/a"), "200 old 0");
  EXPECT_EQ(ask(1, "/b"), "404");
}

TEST_F(OwnedRoutesTest, WhoIsExpectedIsWaitedFor) {
  start_all();
  OwnedRoutes& old = open_with(1, "old ", Reach::all_cores);
  leave_now(old, {.expecting = true});
  MemoryPeer& first = send_get(0, "/a");
  MemoryPeer& second = send(1, "GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx");
  MemoryPeer& pipeline = send(2, get("/a") + get("/none") + get("/a"));
  host_.advance(loops(), 1s);
  EXPECT_EQ(said(first) + said(second) + said(pipeline), "");
  second.send("y");
  open_with(1, "new ", Reach::all_cores);
  EXPECT_EQ(said(first), "200 new 0");
  EXPECT_EQ(said(second), "200 new 0");
  EXPECT_EQ(said(pipeline), "200 new 0|404|200 new 0");
  EXPECT_TRUE(run_on(0, ended(board_.release_kept())));
  EXPECT_EQ(ask_all("/a"), "200 new 0");
}

TEST_F(OwnedRoutesTest, NobodyWaitsForEver) {
  start_all();
  OwnedRoutes& old = open_with(1, "old ");
  leave_now(old, {.expecting = true});
  MemoryPeer& early = send_get(1, "/a");
  host_.advance(loops(), 3s);
  MemoryPeer& late = send_get(1, "/a");
  host_.advance(loops(), 2s);
  EXPECT_EQ(said(early), "503");
  EXPECT_EQ(said(late), "");
  EXPECT_TRUE(run_on(0, ended(board_.release_kept())));
  EXPECT_EQ(said(late), "503");
  EXPECT_EQ(ask_all("/a"), "404");
}

TEST_F(OwnedRoutesTest, AClientThatLeavesWhileItWaitsIsNoTrouble) {
  start_all();
  OwnedRoutes& old = open_with(1, "old ");
  leave_now(old, {.expecting = true});
  send_get(1, "/a").close();
  send_get(1, "/a").reset();
  settle();
  open_with(1, "new ");
  settle();
  EXPECT_TRUE(run_on(0, ended(board_.release_kept())));
  EXPECT_EQ(ask(1, "/a"), "200 new 0");
}

TEST_F(OwnedRoutesTest, ARouteThatIsGivenUpStaysForWhoHasWaitedForATenant) {
  routes_.get("/fill/{size}", [](unsigned size) { return text(std::string(size, 'x')); });
  start_all();
  OwnedRoutes& old = owner(1);
  old.post("/page", [] { return text("old"); });
  ASSERT_TRUE(open(old));
  leave_now(old, {.expecting = true});
  // A client that does not read, until its connection holds some bytes more and no whole answer.
  constexpr std::size_t first_body = 60'000;
  MemoryPeer& slow = send_get(1, "/fill/" + std::to_string(first_body));
  const std::size_t head = slow.unread() - first_body;
  const std::size_t left = MemoryHostOptions().buffer_bytes - slow.unread();
  slow.send(get("/fill/" + std::to_string(left - head - 10)));
  settle();
  slow.send(get("/none") + "POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
  settle();
  ASSERT_EQ(slow.unread(), MemoryHostOptions().buffer_bytes);
  // Nobody comes: the route goes, but for the request, which waits for its client to read...
  Running<bool> releasing(loop(0), ended(board_.release_kept()));
  settle();
  EXPECT_FALSE(releasing.done());
  // ... and then for its own body.
  static_cast<void>(slow.received());
  settle();
  EXPECT_FALSE(releasing.done()) << "the route is gone, and a request will be answered by it";
  slow.send("hello");
  settle();
  EXPECT_TRUE(releasing.done());
  EXPECT_NE(slow.received().find("HTTP/1.1 503 "), std::string::npos);
}

TEST_F(OwnedRoutesTest, TwoCannotHaveTheSameRoute) {
  start_all();
  open_with(1, "first ");
  OwnedRoutes& other = owner(1);
  other.get("/b", Saying(fates_.emplace_back(), "b "));
  other.get("/a", Saying(fates_.emplace_back(), "other "));
  EXPECT_EQ(open(other).error(), Errc::conflict);
  EXPECT_EQ(other.problem(), "GET /a is Owner's already");
  EXPECT_EQ(ask(1, "/a"), "200 first 0");
  EXPECT_EQ(ask(1, "/b"), "404");
}

TEST_F(OwnedRoutesTest, NorOneThatTheRouterHas) {
  routes_.get("/x/{id}", [](unsigned) { return text("router"); });
  start_all();
  OwnedRoutes& other = owner(1);
  other.get("/b", Saying(fates_.emplace_back(), "b "));
  other.get("/x/{name}", [](std::string_view) { return text("owner"); });
  EXPECT_EQ(open(other).error(), Errc::conflict);
  EXPECT_EQ(other.problem(), "GET /x/{name}: there is such a route already");
  EXPECT_EQ(ask(1, "/x/1"), "200 router");
  EXPECT_EQ(ask(1, "/b"), "404");
}

TEST_F(OwnedRoutesTest, WhatIsRegisteredWronglyIsToldAtOnce) {
  OwnedRoutes& one = owner(1);
  one.get("/a/{x}", [](std::string_view) { return text("first"); });
  one.get("/a/{y}", [](std::string_view) { return text("second"); });
  one.get(Pattern::parse("/b/{x}").value(), [] { return text("no capture"); });
  EXPECT_EQ(open(one).error(), Errc::bad_configuration);
  EXPECT_TRUE(one.problem().starts_with("GET /a/{y}: the same as /a/{x}; GET /b/{x}: "))
      << one.problem();
  OwnedRoutes& other = owner(1);
  other.get(Pattern::parse("/c/{x:(}").value(), [](std::string_view) { return text("bad"); });
  EXPECT_FALSE(open(other));
  EXPECT_TRUE(other.problem().starts_with("GET /c/{x:(}: ")) << other.problem();
}

TEST_F(OwnedRoutesTest, TheyComeAndGoAtOnceOnAllCores) {
  start_all();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Running<bool>>> running;
    const auto life = [](OwnedRoutes& of) -> Task<bool> {
      const Result<> opened = co_await of.open(nullptr);
      const Leaving how;
      co_await of.leave(how);
      co_return opened.has_value();
    };
    for (unsigned core = 0; core < 3; ++core) {
      OwnedRoutes& each = owner(core);
      each.get("/a", Saying(fates_.emplace_back(), "a "));
      running.push_back(std::make_unique<Running<bool>>(loop(core), life(each)));
      if (core < static_cast<unsigned>(round) % 3) settle();
    }
    settle();
    for (const auto& each : running) EXPECT_TRUE(each->done() && each->value());
    EXPECT_EQ(ask_all("/a"), "404");
  }
}

TEST_F(OwnedRoutesTest, AServerOfAnotherRuntimeFindsNobody) {
  LoopGroup elsewhere;
  const auto stranger = Loop::make(host_, {.core = 1, .group = &elsewhere}).value();
  RouteSeats seats(loops(), 1s);
  EXPECT_EQ(seats.on(*stranger), nullptr);
  EXPECT_NE(seats.on(loop(1)), nullptr);
}

/// Owners on two cores and one for all open, change hands and leave, while one of them is
/// cancelled.
struct Relay {
  explicit Relay(Strike& of) : strike(of) {}

  Task<> on(unsigned core) {
    const Context context = co_await this_context();
    if (core == 0) board.open(*context.loop, context.loop->group().loops());
    is_open = is_open || core == 0;
    while (!is_open) static_cast<void>(co_await sleep(0s));
    if (core < 2) co_await relay(core, *context.loop);
    ++over;
  }
  Task<> relay(unsigned core, Loop& loop) {
    const Reach reach = core == 0 ? Reach::all_cores : Reach::own_core;
    OwnedRoutes old(board, "Old", loop, reach);
    add_routes(old, core);
    auto opening = old.open(nullptr);
    const Result<> opened = co_await strike.as_victim(core, std::move(opening));
    strike.point();
    EXPECT_TRUE(opened || opened.error() == Errc::cancelled);
    OwnedRoutes fresh(board, "Fresh", loop, reach);
    add_routes(fresh, core);
    auto opening_beside = fresh.open(&old);
    const Result<> opened_beside = co_await strike.as_victim(core, std::move(opening_beside));
    EXPECT_TRUE(opened_beside || opened_beside.error() == Errc::cancelled);
    const Leaving how;
    auto leaving = old.leave(how);
    co_await strike.as_victim(core, std::move(leaving));
    auto leaving_too = fresh.leave(how);
    co_await strike.as_victim(core, std::move(leaving_too));
  }
  static void add_routes(OwnedRoutes& to, unsigned core) {
    to.get(Pattern::parse("/of/" + std::to_string(core)).value(), [] { return text("a"); });
    to.get(Pattern::parse("/too/" + std::to_string(core)).value(), [] { return text("b"); });
  }
  bool outside() const { return false; }
  void check() {
    EXPECT_EQ(over, 3);
    EXPECT_EQ(routes.size(), 0U);
    board.close();
  }

  Strike& strike;
  Router routes;
  RouteBoard board{routes};
  bool is_open = false;
  int over = 0;
};

using OwnedRoutesSteps = CoresTest;

TEST_F(OwnedRoutesSteps, CancelledAtEveryStep) {
  EXPECT_GT(sweep<Relay>(2), 40U);
}

}  // namespace
}  // namespace weir::http
