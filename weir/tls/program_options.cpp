// The options of a program with TLS, also in a build without OpenSSL.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "weir/tls/detail/program_server.hpp"
#include "weir/tls/openssl_memory.hpp"
#include "weir/tls/server.hpp"

namespace weir::tls {
namespace {

ProgramOptions program_options(const char* program, weir::ServerOptions of_server,
                               const TlsArguments& arguments) {
  erase_openssl_memory();  // the program owns its process
  ProgramOptions options;
  static_cast<weir::ServerOptions&>(options) = std::move(of_server);
  if (!arguments.used()) return options;
  auto server = detail::program_server(arguments);
  if (!server) {
    std::fprintf(stderr, "%s: tls: %s\n", program, server.error().text().c_str());
    std::exit(1);
  }
  options.tls = std::move(*server);
  return options;
}

}  // namespace

ProgramOptions ProgramOptions::from_args(int argc, char** argv) {
  TlsArguments arguments;
  auto of_server = weir::ServerOptions::from_args(argc, argv, arguments);
  return program_options(argv[0], std::move(of_server), arguments);
}

ProgramOptions ProgramOptions::from_args(int argc, char** argv, HttpArguments& http) {
  TlsArguments arguments;
  auto of_server = weir::ServerOptions::from_args(argc, argv, arguments, http);
  return program_options(argv[0], std::move(of_server), arguments);
}

}  // namespace weir::tls
