// services_lazy: creates a renderer, which is slow to start, when the first report needs it.
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

/// Starts without the renderer. The app creates the renderer when get() is called first.
class Reports {
 public:
  Reports(inject::Lazy<Renderer> renderer, Scope& scope) : renderer_(renderer) {
    std::fputs("reports: ready\n", stderr);
    scope.spawn(print("summary"));
    scope.spawn(print("details"));
  }
  ~Reports() { std::fputs("reports: gone\n", stderr); }

 private:
  Task<Result<>> print(const char* page) {
    if (auto slept = co_await sleep(10ms); !slept) co_return slept;
    WEIR_CO_TRY(const auto renderer, co_await renderer_.get());
    renderer.get().render(page);
    co_return {};
  }

  inject::Lazy<Renderer> renderer_;
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  options.cores = 1;
  App app;
  app.per_core<Renderer>();
  app.per_core<Reports>();
  return app.run(options);
}
