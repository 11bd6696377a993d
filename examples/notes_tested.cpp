// notes_tested: a service of notes, and its test in one process, in virtual time, without sockets.
#include <cstdio>
#include <vector>
#include <weir/http.hpp>
#include <weir/http_testing/test_client.hpp>

using namespace weir;

// The service.
struct Note {
  std::string text;
};

struct Store {
  std::vector<Note> notes;
};

Task<http::Response> require_login(http::Request& request, http::Next next) {
  if (!request.header("Authorization")) co_return http::Status::unauthorized;
  co_return co_await next(request);
}

Task<http::Response> newest(Store& store) {
  if (store.notes.empty()) {
    if (auto slept = co_await sleep(10s); !slept) co_return http::Status::service_unavailable;
  }
  if (store.notes.empty()) co_return http::Status::not_found;
  co_return http::json(store.notes.back());
}

http::Router routes(Store& store) {
  http::Router router;
  auto api = router.group("/notes", require_login);
  api.get("/newest", [&store] { return newest(store); });
  api.post("/", [&store](http::Json<Note> note) {
    store.notes.push_back(*note);
    return http::json(*note, http::Status::created);
  });
  return router;
}

// The test. A test framework would have EXPECT_EQ(answer.status(), 201) in place of check().
int failures = 0;
void check(bool holds, const char* what) {
  if (!holds) failures += std::printf("failed: %s\n", what);
}

int main() {
  Store store;
  http::TestClient client(routes(store));
  check(client.get("/notes/newest").status() == 401, "a guest is rejected");
  client.set_header("Authorization", "Bearer 1");
  check(client.get("/notes/newest").status() == 404, "no note after 10 seconds");
  const auto answer = client.post("/notes", Note{"milk"});
  check(answer.status() == 201 && answer.json<Note>()->text == "milk", "a note is stored");
  check(client.get("/notes/newest").body() == R"({"text":"milk"})", "the note is found");
  check(store.notes.size() == 1, "the store has the note");
  std::printf("%d failures\n", failures);
  return failures;
}
