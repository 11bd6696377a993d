// crud: notes in JSON. Each user logs in with a token, and has notes of their own.
#include <expected>
#include <map>
#include <mutex>
#include <string>
#include <vector>
#include <weir/http.hpp>

using namespace weir;

using Title = Checked<std::string, rule::Length<1, 80>>;  // characters, not bytes
using Text = Checked<std::string, rule::Length<0, 10'000>>;
struct Draft {
  Title title;
  Text text;
};
struct Note {
  int id;
  Title title;
  Text text;
};

struct Store {  // all cores use it
  const std::map<std::string, std::string, std::less<>> users{{"1", "Ann"}, {"2", "Bob"}};
  std::mutex mutex;  // protects the members below
  std::map<std::string, std::map<int, Note>> notes_by_user;
  int last_id = 0;
};

struct User {
  std::string name;

  static std::expected<User, http::Response> from_request(const http::Request& request,
                                                          const Store& store) {
    WEIR_TRY(const auto bearer, http::Bearer::from_request(request));  // else 401
    const auto found = store.users.find(bearer.token);
    if (found != store.users.end()) return User{found->second};
    return std::unexpected(http::unauthorized(http::Bearer::invalid_token));
  }
};

std::vector<Note> list_notes(User user, Store& store) {
  const std::lock_guard lock(store.mutex);
  std::vector<Note> all;
  for (const auto& [id, note] : store.notes_by_user[user.name]) all.push_back(note);
  return all;
}

http::Response add_note(User user, http::Json<Draft> draft, Store& store) {
  const std::lock_guard lock(store.mutex);
  const Note note{++store.last_id, draft->title, draft->text};
  store.notes_by_user[user.name].emplace(note.id, note);
  auto response = http::json(note, http::Status::created);
  response.set_header("Location", "/notes/" + std::to_string(note.id));
  return response;
}

Result<Note> get_note(User user, int id, Store& store) {
  const std::lock_guard lock(store.mutex);
  const auto& notes = store.notes_by_user[user.name];
  const auto found = notes.find(id);
  if (found == notes.end()) return fail(Errc::not_found);  // 404
  return found->second;
}

Result<Note> change_note(User user, int id, http::Json<Draft> draft, Store& store) {
  const std::lock_guard lock(store.mutex);
  auto& notes = store.notes_by_user[user.name];
  const auto found = notes.find(id);
  if (found == notes.end()) return fail(Errc::not_found);
  return found->second = {id, draft->title, draft->text};
}

http::Status delete_note(User user, int id, Store& store) {
  const std::lock_guard lock(store.mutex);
  const bool existed = store.notes_by_user[user.name].erase(id) > 0;
  return existed ? http::Status::no_content : http::Status::not_found;
}

int main(int argc, char** argv) {
  Store store;
  http::Router router;
  router.get("/notes", list_notes);
  router.post("/notes", add_note, {.body_max = 64 * 1024});
  router.get("/notes/{id}", get_note);
  router.put("/notes/{id}", change_note, {.body_max = 64 * 1024});
  router.del("/notes/{id}", delete_note);
  router.bind(store);  // a handler that takes a Store& gets this one
  return http::run(router, argc, argv);
}
