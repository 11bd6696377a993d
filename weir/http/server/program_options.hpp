// The command line of a program that serves HTTP.
#pragma once

#include "weir/http/server/serve.hpp"
#include "weir/tls/server.hpp"

namespace weir::http {

/// The options of a program that serves HTTP at one endpoint:
///
///     const auto options = http::ProgramOptions::from_args(argc, argv);
///     return Runtime(options).run_on_each_core(http::serve, std::cref(router),
///                                              options.serve_options());
struct ProgramOptions : tls::ProgramOptions {
  PlainHttp2 plain_http2 = PlainHttp2::off;  ///< prior_knowledge for --http2-plain

  /// Parses the command line as tls::ProgramOptions::from_args() with HttpArguments does.
  static ProgramOptions from_args(int argc, char** argv);

  /// Returns the endpoint, the TLS and the versions of HTTP of a server.
  ServeOptions serve_options(const Limits& limits = {}) const;
};

}  // namespace weir::http
