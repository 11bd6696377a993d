// live_routes: adds and removes pages while every core serves them.
//   curl -X PUT -d "Hello." localhost:8080/pages/greeting; curl localhost:8080/greeting
#include <map>
#include <weir/http.hpp>
#include <weir/runtime/on_core.hpp>

using namespace weir;

/// The published pages. Core 0 owns them; a handler changes them on that core.
struct Pages {
  http::LiveRoutes routes;
  std::map<std::string, http::RouteId> up;
};

Task<Result<>> publish_page(Pages* pages, std::string name, std::string content) {
  auto show = [content = std::move(content)] { return http::text(content); };
  if (const auto known = pages->up.find(name); known != pages->up.end()) {
    co_return co_await pages->routes.replace(known->second, std::move(show));
  }
  auto pattern = http::Pattern::parse("/" + name);
  if (!pattern || !pattern->is_literal()) co_return fail(Errc::bad_input);
  WEIR_CO_TRY(auto added, co_await pages->routes.get(*pattern, std::move(show)));
  pages->up.emplace(name, added);
  co_return {};
}

Task<Result<>> remove_page(Pages* pages, std::string name) {
  const auto page = pages->up.extract(name);
  if (page.empty()) co_return fail(Errc::not_found);
  co_return co_await pages->routes.remove(page.mapped());  // returns when no request uses it
}

http::Response answer(const Result<>& changed) {
  return changed ? http::Status::no_content : http::to_status(changed.error());
}

int main(int argc, char** argv) {
  http::Router routes;
  Pages pages{http::LiveRoutes(routes), {}};
  auto put = [&](http::Request& request, std::string name) -> Task<http::Response> {
    auto content = co_await request.body();
    if (!content) co_return http::to_status(content.error());
    co_return answer(co_await on_core(0, publish_page, &pages, name, *content));
  };
  auto remove = [&](std::string name) -> Task<http::Response> {
    co_return answer(co_await on_core(0, remove_page, &pages, name));
  };
  routes.put("/pages/{name}", put);
  routes.del("/pages/{name}", remove);
  return http::run(routes, argc, argv);
}
