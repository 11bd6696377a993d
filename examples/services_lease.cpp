// services_lease: a service with a route, a store and a clock; services_faked tests it.
//   curl -X POST localhost:8080/lease/ann
#include "examples/services_lease.hpp"

#include <weir/tls.hpp>

int main(int argc, char** argv) {
  auto options = weir::http::ProgramOptions::from_args(argc, argv);
  options.cores = 1;  // one lease for all
  weir::http::Router router;
  weir::App app;
  wire(app, router, options.serve_options());
  return app.run(options);
}
