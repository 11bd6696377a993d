// services_requester: gives each service its own logger, which lives as long as the service.
#include <weir/app.hpp>

#include <cstdio>
#include <string>

using namespace weir;

enum class Level { quiet, loud };

class Logger {
 public:
  explicit Logger(inject::Requester requester) : name_(requester.name()) {
    const Level* const level = requester.properties().get<Level>();
    loud_ = level != nullptr && *level == Level::loud;
  }
  ~Logger() { say("stopped"); }
  void say(const char* text) const {
    std::fprintf(stderr, "[%s] %s%s\n", name_.c_str(), text, loud_ ? "!" : "");
  }

 private:
  std::string name_;
  bool loud_ = false;
};

struct Orders {
  explicit Orders(Logger& own) : log(own) { log.say("ready"); }
  Logger& log;
};
struct Alarms {
  Alarms(Logger& own, Orders&) : log(own) { log.say("ready"); }
  Logger& log;
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  options.cores = 1;
  App app;
  app.per_core<Logger>();
  app.per_core<Orders>();
  app.per_core<Alarms>({.properties = {Level::loud}});
  return app.run(options);
}
