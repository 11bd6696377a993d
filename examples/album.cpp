// album: users log in with a session, and upload files into the folder uploads. Try:
//   mkdir uploads; curl -c jar -d 'user=ada&password=secret' localhost:8080/login
//   curl -b jar -F picture=@sea.jpg localhost:8080/pictures
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <weir/web.hpp>

using namespace weir;

struct Credentials {
  Checked<std::string, rule::Length<1, 40>> user;
  std::string password;
};
struct Login {  // the data of a session
  std::string user;
  int uploads = 0;
};
using Session = http::Session<Login>;

struct Picture {
  std::string name, path;
  std::uint64_t bytes;
};

http::Response log_in(http::Form<Credentials> form, const Session& session) {
  if (form->password != "secret")  // a service compares hashes, in a blocking pool
    return http::problem(http::Status::forbidden, "wrong user or password");
  session.start({.user = form->user});
  return http::text("welcome\n");
}

http::Response log_out(const Session& session) {
  session.end();
  return http::no_content();
}

Task<http::Response> require_login(http::Request& request, http::Next next) {
  if (!*request.get<Session>()) co_return http::problem(http::Status::forbidden, "log in first");
  co_return co_await next(request);
}

Login show_login(const Session& session) {
  return *session;
}

Task<Result<std::vector<Picture>>> upload(const Session& session, http::Multipart form) {
  std::vector<Picture> pictures;
  std::vector<http::SavedFile> files;  // removed if the upload fails
  for (;;) {
    WEIR_CO_TRY(http::Part* const part, co_await form.next_part());
    if (part == nullptr) break;
    if (!part->is_file() || part->file_name()->empty()) continue;
    std::string name = part->safe_file_name();  // to show; never a path
    WEIR_CO_TRY(auto saved, co_await part->save_to("uploads", 20'000'000));
    pictures.push_back({std::move(name), saved.path(), saved.bytes()});
    files.push_back(std::move(saved));
  }
  for (http::SavedFile& each : files) each.keep();
  session.set({session->user, session->uploads + static_cast<int>(files.size())});
  co_return pictures;
}

Result<http::Response> set_theme(std::string_view theme) {
  http::Response response = http::no_content();
  WEIR_TRY(
      http::set_cookie(response, {.name = "theme", .value = std::string(theme), .max_age = 24h}));
  return response;
}

http::Response show_theme(const http::Request& request) {
  return http::text(http::RequestCookies(request).find("theme").value_or("light"));
}

int main(int argc, char** argv) {
  // A service reads its secrets from a file. The sessions of random keys end with the program.
  const auto keys = http::CookieKeys::random().value();
  http::MemorySessionStore store({.sessions_max = 10'000});
  http::Router routes;
  auto all = routes.group<Session>("", http::Sessions<Login>(store, keys));
  all.post("/login", log_in);
  all.post("/logout", log_out);
  auto users = all.group("", require_login);
  users.get("/login", show_login);
  users.post("/pictures", upload, {.timeout = 10min, .body_max = 100'000'000});
  routes.put("/theme/{theme}", set_theme);
  routes.get("/theme", show_theme);
  return http::run(routes, argc, argv);
}
