// notes_tested: tests notes_api in one process, in virtual time, without sockets.
#include "examples/notes_api.hpp"

#include <cstdio>
#include <weir/http_testing.hpp>

/// A test framework would have EXPECT_EQ(response.status(), 201) in place of this.
void check(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

int main() {
  Store store;
  http::TestClient client(routes(), store);
  check(client.get("/notes/1").status() == 401, "a guest is rejected");
  client.set_header("Authorization", "Bearer secret");
  const auto added = client.post("/notes", Note{"milk"});
  check(added.status() == 201 && added.header("Location") == "/notes/1", "a note is stored");
  check(client.get("/notes/1").json<Note>()->text == "milk", "the note is found");
  client.put("/notes/1", Note{"oats", true});
  check(get_note(1, store)->done, "the store has the replaced note");
  const auto rejected = client.post("/notes", Note{""});
  check(rejected.status() == 422 && rejected.body().contains("/text"), "an empty note is rejected");
  check(client.del("/notes/1").status() == 200, "the note is removed");
  check(client.get("/notes/1").status() == 404, "the note is gone");
  std::printf("passed\n");
}
