// services_notes: notes in a store, for users that have logged in. The handlers take the store.
#include <map>
#include <mutex>
#include <weir/app.hpp>
#include <weir/http.hpp>
#include <weir/tls.hpp>

using namespace weir;

struct Note {
  Checked<std::string, rule::Length<1, 200>> text;
};

class Store {  // all cores use it
 public:
  bool knows(std::string_view token) const { return token == "secret"; }
  int add(const std::string& text) const {
    const std::lock_guard lock(mutex_);
    notes_.emplace(++last_id_, text);
    return last_id_;
  }
  std::optional<std::string> find(int id) const {
    const std::lock_guard lock(mutex_);
    const auto found = notes_.find(id);
    return found == notes_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::map<int, std::string> notes_;
  mutable int last_id_ = 0;
};

struct User {
  static std::expected<User, http::Response> from_request(const http::Request& request,
                                                          const Store& store) {
    WEIR_TRY(const auto bearer, http::Bearer::from_request(request));
    if (store.knows(bearer.token)) return User();
    return std::unexpected(http::unauthorized(http::Bearer::invalid_token));
  }
};

http::Response add_note(User, http::Json<Note> note, const Store& store) {
  return http::text(std::to_string(store.add(*note->text)) + "\n", http::Status::created);
}

http::Response get_note(User, int id, const Store& store) {
  const auto text = store.find(id);
  return text ? http::text(*text + "\n") : http::Response(http::Status::not_found);
}

int main(int argc, char** argv) {
  auto options = http::ProgramOptions::from_args(argc, argv);
  http::Router router;
  router.post("/notes", add_note);
  router.get("/notes/{id}", get_note);
  App app;
  app.shared<Store>();
  serve_http(app, router, options.serve_options());
  return app.run(options);
}
