// services_faked: the test of services_lease, with its services, a fake store and a fake clock. A
// client in the same process sends requests. The test uses only memory and takes no real time.
#include "examples/services_lease.hpp"

#include <cstdio>
#include <vector>
#include <weir/testing/memory/memory_platform.hpp>

using namespace weir;

struct ListStore : Store {
  explicit ListStore(std::vector<std::string>& list) : names(list) {}
  Task<Result<>> keep(std::string name) override {
    if (name == "bob") co_return fail(std::make_error_code(std::errc::no_space_on_device));
    names.push_back(std::move(name));
    co_return {};
  }
  std::vector<std::string>& names;
};

const Endpoint here = os::Address::loopback(80);

Task<std::string> ask(std::string name) {
  auto stream = co_await tcp::connect(here);
  if (!stream) co_return stream.error().message();
  const std::string request = "POST /lease/" + name + " HTTP/1.1\r\nHost: a\r\n" +
                              "Content-Length: 0\r\nConnection: close\r\n\r\n";
  if (auto sent = co_await stream->write(request); !sent) co_return sent.error().message();
  std::string answer;
  while (auto bytes = co_await stream->read()) answer += bytes->text();
  co_return answer.size() < 12 ? answer : answer.substr(9, 3);  // its status
}

/// Ann takes the lease and Eve is refused. The store fails an hour later, and Ann takes it again.
Task<> test(Scope&, App& app, FakeClock clock, std::string& heard) {
  if (auto started = co_await app.start(); !started) co_return;
  for (const char* const name : {"ann", "eve", "bob", "ann"}) {
    heard += co_await ask(name) + " ";
    if (*name != 'a') clock.advance(1h);
  }
  co_await app.stop();
}

int main() {
  MemoryPlatform platform;
  http::Router router;
  App app;
  wire(app, router, here);
  FakeClock clock;
  std::vector<std::string> kept;
  app.fake<Clock>([clock] { return FakeClock(clock); });
  app.fake<Store>([&kept] { return ListStore(kept); });
  std::string heard;
  Runtime runtime(platform, {.cores = 1, .announce = false});
  const int status = runtime.run_on_each_core(test, std::ref(app), clock, std::ref(heard));
  std::printf("heard %s, kept %zu\n", heard.c_str(), kept.size());
  return status == 0 && heard == "200 409 500 200 " && kept.size() == 2 ? 0 : 1;
}
