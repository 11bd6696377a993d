// gateway: passes requests below /api on to other servers, and answers the others itself.
#include <weir/net.hpp>
#include <weir/tls.hpp>
#include <weir/web.hpp>

using namespace weir;

/// Moves the URLs out of the arguments of the program.
std::vector<std::string> take_urls(std::vector<char*>& arguments) {
  std::vector<std::string> urls;
  std::erase_if(arguments, [&](char* each) {
    const bool is_url = std::string_view(each).starts_with("http");
    if (is_url) urls.push_back(each);
    return is_url;
  });
  if (urls.empty()) urls.push_back("http://127.0.0.1:8081");
  return urls;
}

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  const auto backends = take_urls(arguments);
  auto options =
      http::ProgramOptions::from_args(static_cast<int>(arguments.size()), arguments.data());

  http::ReverseProxyOptions proxying;
  proxying.strip_prefix = "/api";
  proxying.choice = http::UpstreamChoice::least_requests;
  proxying.client.limits.head_timeout = 10s;
  http::Router routes;
  routes.get("/", [] { return http::text("a gateway\n"); });
  routes.group("/api").fallback(http::reverse_proxy(backends, proxying),
                                {.body_max = 64 * 1024 * 1024});

  http::ServeOptions serving = options.serve_options();
  ProxyProtocolOptions balancer;
  balancer.proxies = {"10.0.0.0/8"};  // a load balancer that begins with a PROXY header
  serving.proxy_protocol = std::make_shared<const ProxyProtocol>(balancer);
  return Runtime(options).run_on_each_core(http::serve, std::cref(routes), serving);
}
