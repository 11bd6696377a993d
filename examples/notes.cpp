// notes: greets by name, and takes the notes of clients that are logged in.
#include <weir/http.hpp>

using namespace weir;

struct Note {
  Checked<std::string, rule::Length<1, 200>> text;  // characters, not bytes
};

http::Response hello(std::string_view name) {
  return http::text("Hello, " + std::string(name) + "!\n");
}

http::Response add_note(int user, http::Json<Note> note) {
  return http::text("user " + std::to_string(user) + " said " + *note->text + "\n");
}

Task<http::Response> require_login(http::Request& request, http::Next next) {
  if (!request.header("Authorization")) co_return http::unauthorized("Bearer");
  co_return co_await next(request);
}

int main(int argc, char** argv) {
  http::Router router;
  router.get("/hello/{name}", hello);
  auto api = router.group("/api", require_login);  // middleware for the group
  api.post("/users/{user}/notes", add_note, {.timeout = 5s, .body_max = 64 * 1024});
  return http::run(router, argc, argv);  // all cores, signals, drain, --help
}
