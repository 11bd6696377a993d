// https: serves HTTPS at port 8443, and sends clients of plain HTTP at port 8080 there. Try:
//   https & curl -k https://localhost:8443/; curl -kL http://localhost:8080/
#include <weir/http.hpp>
#include <weir/runtime.hpp>
#include <weir/tls.hpp>

using namespace weir;

http::Response connection(http::Request& request) {
  const TlsInfo* const tls = request.tls();  // nullptr for a plain connection
  return http::text(std::string(name_of(tls->version)) + " with " + std::string(tls->cipher) +
                    "\n");
}

int main(int argc, char** argv) {
  const auto options = ServerOptions::from_args(argc, argv);
  http::Router pages;
  pages.get("/", connection);
  http::Router plain;
  plain.fallback(http::RedirectToHttps(8443));

  tls::ServerOptions secure;
  secure.self_signed.emplace();  // for development; `secure.files` names those of a service
  const auto server = std::make_shared<tls::Server>(std::move(secure));
  const http::ServeOptions https{.endpoint = options.endpoint.with_port(8443), .tls = server};
  const http::ServeOptions http{.endpoint = options.endpoint};
  return Runtime(options).run_on_each_core([&](Scope& scope) {
    scope.spawn(http::serve(scope, plain, http));
    return http::serve(scope, pages, https);
  });
}
