// notes_api: creates, reads, replaces and removes notes, for clients that have logged in.
#pragma once

#include <map>
#include <mutex>
#include <weir/http.hpp>

namespace http = weir::http;

struct Note {
  weir::Checked<std::string, weir::rule::Length<1, 200>> text;
  bool done = false;
};

class Store {  // all cores use it
 public:
  int add(const Note& note) const {
    const std::lock_guard lock(mutex_);
    return notes_.emplace(++last_id_, note).first->first;
  }
  weir::Result<Note> with(int id, auto use) const {
    const std::lock_guard lock(mutex_);
    const auto at = notes_.find(id);  // the position of the note
    return at != notes_.end() ? weir::Result<Note>(use(notes_, at))
                              : weir::fail(weir::Errc::not_found);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::map<int, Note> notes_;
  mutable int last_id_ = 0;
};

inline http::Response add_note(http::Json<Note> note, const Store& store) {
  auto response = http::json(*note, http::Status::created);
  response.set_header("Location", "/notes/" + std::to_string(store.add(*note)));
  return response;
}
inline weir::Result<Note> get_note(int id, const Store& store) {
  return store.with(id, [](auto&, auto at) { return at->second; });
}
inline weir::Result<Note> replace_note(int id, http::Json<Note> note, const Store& store) {
  return store.with(id, [&](auto&, auto at) { return at->second = *note; });
}
inline weir::Result<Note> remove_note(int id, const Store& store) {
  return store.with(id, [](auto& notes, auto at) { return notes.extract(at).mapped(); });
}
inline weir::Task<http::Response> require_login(http::Request& request, http::Next next) {
  auto bearer = http::Bearer::from_request(request);
  if (!bearer) co_return std::move(bearer.error());
  if (bearer->token != "secret") co_return http::unauthorized(http::Bearer::invalid_token);
  co_return co_await next(request);
}
inline http::Router routes() {
  http::Router router;
  auto notes = router.group("/notes", require_login);
  notes.post("/", add_note);
  notes.get("/{id}", get_note);
  notes.put("/{id}", replace_note);
  notes.del("/{id}", remove_note);
  return router;
}
