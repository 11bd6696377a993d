// https: serves HTTPS at port 8443, and sends clients of plain HTTP at port 8080 there. Try:
//   https & curl -k https://localhost:8443/; curl -kL http://localhost:8080/
#include <weir/http.hpp>
#include <weir/net/files.hpp>
#include <weir/runtime.hpp>
#include <weir/tls.hpp>

using namespace weir;

http::Response connection(http::Request& request) {
  const TlsInfo* const tls = request.tls();  // nullptr for a plain connection
  return http::text(std::string(name_of(tls->version)) + " with " + std::string(tls->cipher) +
                    "\n");
}

// Answers http-01 challenges (RFC 8555, 8.3) with the files of an ACME client, such as
// certbot certonly --webroot --webroot-path .
Task<http::Response> challenge(std::string token) {
  auto answer = co_await files::read_file(".well-known/acme-challenge/" + token, 4096);
  if (!answer) co_return http::Response(http::Status::not_found);
  co_return http::text(std::move(*answer));
}

int main(int argc, char** argv) {
  auto options = http::ProgramOptions::from_args(argc, argv);
  if (options.tls == nullptr) {
    tls::ServerOptions secure;
    secure.self_signed.emplace();  // for development; `secure.files` names those of a service
    options.tls = std::make_shared<tls::Server>(std::move(secure));
  }
  http::Router pages;
  pages.get("/", connection);
  http::Router plain;
  plain.get("/.well-known/acme-challenge/{token:[A-Za-z0-9_-]+}", challenge);
  plain.fallback(http::RedirectToHttps(8443));

  const http::ServeOptions http{.endpoint = options.endpoint, .plain_http2 = options.plain_http2};
  const http::ServeOptions https{.endpoint = options.endpoint.with_port(8443), .tls = options.tls};
  return Runtime(options).run_on_each_core([&](Scope& scope) {
    scope.spawn(http::serve(scope, plain, http));
    return http::serve(scope, pages, https);
  });
}
