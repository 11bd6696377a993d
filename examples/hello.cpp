// hello: serves HTTP on every physical core. Ctrl-C drains the server and exits with 0.
#include <weir/http.hpp>

using namespace weir;

http::Response hello(std::string_view name) {
  return http::text("Hello, " + std::string(name) + "!\n");
}

Task<http::Response> add_note(http::Request& request, int user) {  // the path parameter is an int
  auto note = co_await request.body();
  if (!note) co_return http::to_status(note.error());  // 408, 413 or 400
  co_return http::text("user " + std::to_string(user) + " said " + *note + "\n");
}

int main(int argc, char** argv) {
  http::Router routes;
  routes.get("/", [] { return http::text("Hello, World!\n"); });
  routes.get("/hello/{name}", hello);
  routes.post("/users/{user}/notes", add_note);  // a wrong number of parameters does not compile
  return http::run(routes, argc, argv);
}
