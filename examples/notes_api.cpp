// notes_api: serves the notes of notes_api.hpp; notes_tested tests them.
#include "examples/notes_api.hpp"

#include <weir/app.hpp>
#include <weir/app/http_server.hpp>
#include <weir/tls.hpp>

using namespace weir;

int main(int argc, char** argv) {
  auto options = http::ProgramOptions::from_args(argc, argv);
  http::Router router = routes();
  App app;
  app.shared<Store>();
  serve_http(app, router, options.serve_options());
  return app.run(options);
}
