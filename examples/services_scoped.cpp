// services_scoped: each request has a session and a trace of its own, made when first needed.
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

/// One for each request.
struct Trace {
  explicit Trace(const Request& of) : request(of) {}
  ~Trace() { std::fprintf(stderr, "trace of %s: written\n", request.user.c_str()); }
  const Request& request;
};

/// Likewise: of the request, a service of the core, and the same request's trace.
struct Session {
  Session(Request& of, Users& by, Trace&) : request(of), users(by) {}
  ~Session() { std::fprintf(stderr, "session of %s: closed\n", request.user.c_str()); }
  Request& request;
  Users& users;
};

class Web {
 public:
  Web(Scoped<Request> requests, Scope& scope) : requests_(requests) { scope.spawn(serve()); }

 private:
  Task<Result<>> serve() {
    for (const char* const user : {"Ada", "Grace"}) {
      Request request{user};
      auto scope = requests_.open(request);
      const auto session = scope.get<Session>();
      if (!session) co_return fail(session.error());  // a database may be down
      std::fprintf(stderr, "web: %s, %s\n", session->get().users.greeting, user);
      co_await yield();
    }
    co_return {};
  }

  Scoped<Request> requests_;
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
