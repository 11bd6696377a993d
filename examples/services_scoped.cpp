// services_scoped: creates a session and a trace for each request when get() first needs them.
#include <weir/app.hpp>

#include <cstdio>
#include <string>
using namespace weir;

struct Request {
  std::string user;
};

struct Users {
  const char* greeting = "Hello";
};

struct Trace {
  explicit Trace(const Request& traced) : request(traced) {}
  ~Trace() { std::fprintf(stderr, "trace of %s: written\n", request.user.c_str()); }
  const Request& request;
};

struct Session {
  Session(Request& root, Users& all, Trace&) : request(root), users(all) {}
  ~Session() { std::fprintf(stderr, "session of %s: closed\n", request.user.c_str()); }
  Request& request;
  Users& users;
};

class Web {
 public:
  Web(inject::Scoped<Request> requests, Scope& scope) : requests_(requests) {
    scope.spawn(serve());
  }

 private:
  Task<Result<>> serve() {
    for (const char* const user : {"Ada", "Grace"}) {
      Request request{user};
      auto scope = requests_.open(request);
      WEIR_CO_TRY(const auto session, scope.get<Session>());  // a database may be down
      std::fprintf(stderr, "web: %s, %s\n", session.get().users.greeting, user);
      co_await yield();
    }
    co_return {};
  }

  inject::Scoped<Request> requests_;
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  options.cores = 1;
  App app;
  app.per_core<Users>();
  app.scoped<Request, Trace>();
  app.scoped<Request, Session>();
  app.per_core<Web>();
  return app.run(options);
}
