// Tests of sessions: their life, fixation, foreign ids, and requests at the same time.
#include "weir/web/cookies/sessions.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/http/router/router.hpp"
#include "weir/http_testing/test_client.hpp"
#include "weir/web/cookies/memory_session_store.hpp"

namespace weir::http::sessions_test {
namespace {

using namespace std::chrono_literals;

struct Visit {
  std::string user;
  int count = 0;
};
using VisitSession = Session<Visit>;
/// The data of a later version of the service.
struct Other {
  int number;
};

CookieKeys keys() {
  return CookieKeys::from_secret(std::string(32, 'k')).value();
}

/// A store that fails on request, and counts its calls.
struct SpyStore final : SessionStore {
  Task<Result<std::optional<std::string>>> load(std::string id, Duration lifetime) override {
    ++loads;
    if (fails) co_return fail(Errc::closed);
    co_return co_await memory.load(std::move(id), lifetime);
  }
  Task<Result<>> save(std::string id, std::string data, Duration lifetime,
                      SessionSave how) override {
    if (fails) co_return fail(Errc::closed);
    if (full) co_return fail(Errc::limit_reached);
    if (forgets && how == SessionSave::replace) co_return fail(Errc::not_found);
    co_return co_await memory.save(std::move(id), std::move(data), lifetime, how);
  }
  Task<Result<>> remove(std::string id) override { return memory.remove(std::move(id)); }

  MemorySessionStore memory;
  int loads = 0;
  bool fails = false;
  bool full = false;     ///< true if no data fit
  bool forgets = false;  ///< true if another request ends the session before each change
};

Router routes(SessionStore& store, SessionOptions options = {}) {
  Router router;
  const Sessions<Visit> sessions(store, keys(), options);
  auto group = router.group<VisitSession>("", sessions);
  group.get("/me", [](const VisitSession& session) {
    return text(session ? session->user + " " + std::to_string(session->count) : "nobody");
  });
  group.get("/count", [](const VisitSession& session) {
    Visit visit;
    if (session) visit = *session;
    ++visit.count;
    session.set(visit);
    return no_content();
  });
  group.get("/twice", [](const VisitSession& session) {
    session.set({.user = "first"});
    session.set({.user = "second"});
    return no_content();
  });
  group.get("/login/{user}", [](std::string_view user, const VisitSession& session) {
    session.start({.user = std::string(user)});
    return no_content();
  });
  group.get("/logout", [](const VisitSession& session) {
    session.end();
    return no_content();
  });
  group.get("/again", [](const VisitSession& session) {
    session.end();
    session.set({.user = "again"});
    return no_content();
  });
  group.get("/large", [](const VisitSession& session) {
    session.set({.user = std::string(20'000, 'x')});
    return no_content();
  });
  return router;
}

/// A browser of one user, which keeps one cookie.
class SessionsTest : public testing::Test {
 protected:
  TestResponse get(std::string_view url) {
    TestResponse response = client_.get(url);
    if (const auto header = response.header("Set-Cookie")) {
      cookie_ = std::string(header->substr(0, header->find(';')));
      client_.set_header("Cookie", cookie_);
    }
    return response;
  }
  std::string me() { return get("/me").body(); }

  SpyStore store_;
  TestClient client_{routes(store_)};
  std::string cookie_;
};

TEST_F(SessionsTest, ClientWithoutASessionHoldsNothing) {
  EXPECT_EQ(me(), "nobody");
  EXPECT_EQ(cookie_, "");
  EXPECT_EQ(store_.memory.size(), 0U);
  EXPECT_EQ(store_.loads, 0);
}

TEST_F(SessionsTest, KeepsTypedDataFromRequestToRequest) {
  const auto response = get("/count");
  EXPECT_TRUE(cookie_.starts_with("__Host-session="));
  EXPECT_EQ(response.header("Set-Cookie")->substr(cookie_.size()),
            "; Max-Age=86400; Path=/; SameSite=Lax; Secure; HttpOnly");
  EXPECT_EQ(response.header("Cache-Control"), "no-store");
  const std::string first = cookie_;
  EXPECT_EQ(get("/count").header("Set-Cookie"), std::nullopt);
  EXPECT_EQ(me(), " 2");
  EXPECT_EQ(cookie_, first);
  EXPECT_EQ(store_.memory.size(), 1U);
}

TEST_F(SessionsTest, DataThatIsSetTwiceKeepsTheId) {
  get("/count");
  EXPECT_EQ(get("/twice").header("Set-Cookie"), std::nullopt);
  EXPECT_EQ(me(), "second 0");
  EXPECT_EQ(store_.memory.size(), 1U);
}

TEST_F(SessionsTest, LoginChangesTheId) {
  get("/count");
  const std::string planted = cookie_;  // by an attacker, in the browser of the user
  get("/login/ada");
  EXPECT_NE(cookie_, planted);
  EXPECT_EQ(me(), "ada 0");
  client_.set_header("Cookie", planted);
  EXPECT_EQ(client_.get("/me").body(), "nobody");
  EXPECT_EQ(store_.memory.size(), 1U);
}

TEST_F(SessionsTest, LogoutEndsTheSessionForAllCopiesOfTheCookie) {
  get("/login/ada");
  const std::string copy = cookie_;
  const auto response = get("/logout");
  EXPECT_TRUE(response.header("Set-Cookie")->starts_with("__Host-session=; Max-Age=0; "));
  EXPECT_EQ(store_.memory.size(), 0U);
  client_.set_header("Cookie", copy);
  EXPECT_EQ(client_.get("/me").body(), "nobody");
}

TEST_F(SessionsTest, DataAfterAnEndBeginsANewSession) {
  get("/login/ada");
  const std::string before = cookie_;
  get("/again");
  EXPECT_NE(cookie_, before);
  EXPECT_EQ(me(), "again 0");
  EXPECT_EQ(store_.memory.size(), 1U);
}

TEST_F(SessionsTest, IdsOfOthersNeverReachTheStore) {
  for (const char* cookie : {"__Host-session=", "__Host-session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                             "__Host-session=x; __Host-session=y"}) {
    client_.set_header("Cookie", cookie);
    EXPECT_EQ(client_.get("/me").body(), "nobody");
  }
  const auto other = CookieKeys::from_secret(std::string(32, 'o')).value();
  const WallTime far(std::chrono::hours(24 * 365 * 200));
  const auto forged = other.seal(CookieProtection::signed_value, "__Host-session", "id", far);
  client_.set_header("Cookie", "__Host-session=" + *forged);
  EXPECT_EQ(client_.get("/me").body(), "nobody");
  EXPECT_EQ(store_.loads, 0);
}

TEST_F(SessionsTest, EndsWithoutRequestsAndAtItsLifetime) {
  get("/login/ada");
  for (int each = 0; each < 3; ++each) {
    client_.advance(29min);
    EXPECT_EQ(me(), "ada 0");
  }
  client_.advance(31min);
  EXPECT_EQ(me(), "nobody");
  get("/login/bob");
  for (int each = 0; each < 24 * 3 - 1; ++each) {
    client_.advance(20min);
    EXPECT_EQ(me(), "bob 0") << each;
  }
  client_.advance(20min);
  EXPECT_EQ(me(), "nobody");
}

TEST_F(SessionsTest, FailingStoreAnswers503) {
  get("/login/ada");
  store_.fails = true;
  EXPECT_EQ(get("/me").status(), 503);
  client_.remove_header("Cookie");
  EXPECT_EQ(get("/me").status(), 200);
  EXPECT_EQ(get("/login/bob").status(), 503);
}

TEST_F(SessionsTest, ChangeDoesNotBringBackASessionThatHasEnded) {
  get("/login/ada");
  store_.forgets = true;
  const auto response = get("/count");
  EXPECT_EQ(response.status(), 204);
  EXPECT_EQ(response.header("Set-Cookie"), std::nullopt) << "the client may have logged in again";
}

TEST_F(SessionsTest, TooMuchDataIsAFaultOfTheProgram) {
  EXPECT_EQ(get("/large").status(), 500);
  EXPECT_EQ(store_.memory.size(), 0U);
  ASSERT_EQ(client_.logged().size(), 1U);
  EXPECT_EQ(client_.logged()[0],
            "weir: GET /large: handler failed: exception: http::Sessions: the data of a session "
            "has 20021 bytes, more than data_bytes_max: 16384");
  get("/login/ada");
  store_.full = true;
  EXPECT_EQ(get("/count").status(), 500);
}

TEST_F(SessionsTest, ForgetsDataOfAnotherForm) {
  get("/login/ada");
  const std::string_view sealed = std::string_view(cookie_).substr(cookie_.find('=') + 1);
  const auto id = keys().open(CookieProtection::signed_value, "__Host-session", sealed, WallTime());
  ASSERT_TRUE(id.has_value());
  Router router;
  router.group<Session<Other>>("", Sessions<Other>(store_, keys()))
      .get("/me", [](const Session<Other>& session) {
        return text(std::string(session ? "some" : "none"));
      });
  TestClient other(std::move(router));
  other.set_header("Cookie", cookie_);
  EXPECT_EQ(other.get("/me").body(), "none");
}

TEST(Sessions, RefuseInvalidOptions) {
  MemorySessionStore store;
  SessionOptions options;
  options.cookie.secure = false;
  EXPECT_THROW(Sessions<Visit>(store, keys(), options), std::invalid_argument);
  options.cookie.name = "session";
  EXPECT_NO_THROW(Sessions<Visit>(store, keys(), options));
}

}  // namespace
}  // namespace weir::http::sessions_test
