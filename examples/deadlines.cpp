// deadlines: cancels work that takes too long, waits for its end, and answers the request.
#include <weir/http.hpp>

using namespace weir;

Task<Result<std::string>> slow_answer(std::string name, Duration length) {
  if (auto slept = co_await sleep(length); !slept) co_return std::unexpected(slept.error());
  co_return name + " answered\n";
}

Task<http::Response> patient(int milliseconds) {
  auto answer = co_await timeout(200ms, slow_answer("it", std::chrono::milliseconds(milliseconds)));
  if (!answer) co_return answer.error();  // 504 for Errc::timed_out
  co_return http::text(*answer);
}

Task<http::Response> fastest() {
  auto answer = co_await first_ok(slow_answer("primary", 80ms), slow_answer("backup", 20ms));
  if (!answer) co_return answer.error();
  co_return http::text(*answer);
}

Task<http::Response> both() {
  auto answers = co_await all(slow_answer("one", 20ms), slow_answer("two", 30ms));
  if (!answers) co_return answers.error();
  co_return http::text(std::get<0>(*answers) + std::get<1>(*answers));
}

Task<http::Response> endless() {
  auto slept = co_await sleep(1h);
  co_return http::text(slept ? "an hour has passed\n" : "cancelled\n");
}

int main(int argc, char** argv) {
  http::Router routes;
  routes.get("/wait/{milliseconds}", patient);
  routes.get("/fastest", fastest);
  routes.get("/both", both);
  routes.get("/endless", endless, {.timeout = 300ms});
  return http::run(routes, argc, argv);
}
