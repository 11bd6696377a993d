// arguments: handlers whose parameters are the parts of a request, which fit when the handler is
// called.
#include <weir/http.hpp>

#include <expected>

using namespace weir;

struct Note {
  Checked<std::string, rule::Length<1, 200>> text;  // characters, not bytes
  Checked<int, rule::Range<1, 5>> stars;
};
struct Search {
  std::string word;
  std::optional<unsigned> most;  // may be missing
};
struct Login {
  Checked<std::string, rule::Pattern<"[A-Za-z0-9]{1,40}">> name;  // safe in a cookie
};

/// The user of a request, or the answer to a request without one.
struct User {
  std::string name;

  static std::expected<User, http::Response> from_request(const http::Request& request) {
    WEIR_TRY(const auto bearer, http::Bearer::from_request(request));
    return User{std::string(bearer.token)};
  }
};

http::Response add_note(int board, User user, http::Json<Note> note) {
  return http::text(
      user.name + " wrote on board " + std::to_string(board) + ": " + *note->text + "\n",
      http::Status::created);
}

http::Response search(http::Query<Search> query) {
  return http::text("at most " + std::to_string(query->most.value_or(10)) + " notes with " +
                    query->word + "\n");
}

http::Response login(http::Form<Login> form) {
  auto response = http::text("welcome, " + *form->name + "\n");
  response.add_header("Set-Cookie", "name=" + *form->name + "; HttpOnly");
  return response;
}

http::Response greet(std::optional<http::Cookie<"name">> name) {
  return http::text("Hello, " + std::string(name ? **name : "stranger") + "\n");
}

int main(int argc, char** argv) {
  http::Router routes;
  routes.get("/", greet);
  routes.get("/notes", search);
  routes.post("/login", login);
  routes.post("/boards/{board}/notes", add_note, {.body_max = 64 * 1024});
  return http::run(routes, argc, argv);
}
