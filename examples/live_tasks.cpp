// live_tasks: shows which task waits for what. GET /orders/tea waits for a supplier that never
// answers; GET /tasks and `kill -QUIT` name it.
#include <weir/http.hpp>
#include <weir/runtime.hpp>

using namespace weir;

Task<Result<>> ask_supplier(std::string item) {
  const Duration time_to_answer = item == "tea" ? Duration(1h) : Duration(1ms);
  co_return co_await sleep(time_to_answer);
}

Task<http::Response> place_order(std::string item) {
  auto answer = co_await ask_supplier(item);
  if (!answer) co_return answer.error();
  co_return http::text(item + " is on its way\n");
}

Task<http::Response> list_tasks() {
  auto report = co_await report_tasks();
  if (!report) co_return report.error();
  co_return http::text(report->to_text());
}

int main(int argc, char** argv) {
  http::Router routes;
  routes.get("/orders/{item}", place_order);
  routes.get("/tasks", list_tasks);
  return http::run(routes, argc, argv);
}
