// services_lazy: a renderer that takes its time to start is made when the first report needs it.
#include <weir/app.hpp>

#include <cstdio>

using namespace weir;

class Renderer {
 public:
  Task<Result<>> start() {
    std::fputs("renderer: starting\n", stderr);
    if (auto slept = co_await sleep(20ms); !slept) co_return slept;
    std::fputs("renderer: started\n", stderr);
    co_return {};
  }
  ~Renderer() { std::fputs("renderer: gone\n", stderr); }
  void render(const char* page) { std::fprintf(stderr, "renderer: %s, page %d\n", page, ++pages_); }

 private:
  int pages_ = 0;
};

/// Does not wait for the renderer before it starts, and never starts one if nobody wants a report.
class Reports {
 public:
  Reports(Lazy<Renderer> renderer, Scope& scope) : renderer_(renderer) {
    std::fputs("reports: ready\n", stderr);
    scope.spawn(print("summary"));
    scope.spawn(print("details"));
  }
  ~Reports() { std::fputs("reports: gone\n", stderr); }

 private:
  Task<Result<>> print(const char* page) {
    if (auto slept = co_await sleep(10ms); !slept) co_return slept;
    const auto renderer = co_await renderer_.get();
    if (!renderer) co_return fail(renderer.error());
    renderer->get().render(page);
    co_return {};
  }

  Lazy<Renderer> renderer_;
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  options.cores = 1;
  App app;
  app.per_core<Renderer>();
  app.per_core<Reports>();
  return app.run(options);
}
