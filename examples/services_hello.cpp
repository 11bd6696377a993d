// services_hello: wires three services by their constructors. Ctrl-C stops them in reverse order.
#include <weir/app.hpp>

#include <cstdio>
#include <string>

using namespace weir;

struct Config {
  std::string name = "World";
};

/// Created first, because another service depends on it. Its start() may take long.
class Greeter {
 public:
  explicit Greeter(const Config& config) : name_(config.name) {}
  Task<Result<>> start() {
    std::ignore = co_await sleep(10ms);
    std::fputs("greeter: started\n", stderr);
    co_return {};
  }
  Task<> stop() {
    std::fputs("greeter: stopped\n", stderr);
    co_return;
  }
  std::string greeting() const { return "Hello, " + name_ + "!"; }

 private:
  std::string name_;
};

class Speaker {
 public:
  Speaker(const Greeter& greeter, const Config&) : greeter_(greeter) {}
  Task<Result<>> start() {
    std::fprintf(stderr, "speaker: %s\n", greeter_.greeting().c_str());
    co_return {};
  }
  Task<> stop() {
    std::fputs("speaker: Goodbye!\n", stderr);
    co_return;
  }

 private:
  const Greeter& greeter_;
};

int main(int argc, char** argv) {
  App app;
  app.shared<Speaker>();  // the order of these lines does not matter
  app.shared<Greeter>();
  app.shared([] { return Config{.name = "services"}; });
  return app.run(ServerOptions::from_args(argc, argv));
}
