#include "weir/http/server/program_options.hpp"

namespace weir::http {

ProgramOptions ProgramOptions::from_args(int argc, char** argv) {
  HttpArguments http;
  ProgramOptions options;
  static_cast<tls::ProgramOptions&>(options) = tls::ProgramOptions::from_args(argc, argv, http);
  if (http.http2_plain) options.plain_http2 = PlainHttp2::prior_knowledge;
  return options;
}

ServeOptions ProgramOptions::serve_options(const Limits& limits) const {
  return {.endpoint = endpoint, .limits = limits, .tls = tls, .plain_http2 = plain_http2};
}

}  // namespace weir::http
