// resolve: prints the addresses of a name in the order of connection attempts. If a port is given,
// it connects to the first address that answers.
// resolve NAME [PORT [NAME_SERVER]], such as: resolve example.org 443 192.0.2.53:53
#include <weir/net/dns/connect.hpp>
#include <weir/runtime/runtime.hpp>
#include <weir/task/timeout.hpp>

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

using namespace weir;

struct Wanted {
  std::string name;
  std::uint16_t port = 0;
  dns::ResolverOptions options;
};

Task<Result<>> look(Scope&, const Wanted& wanted) {
  dns::Resolver resolver(wanted.options);  // dns::resolve() uses the default options
  const auto found = co_await timeout(20s, resolver.resolve(wanted.name, wanted.port));
  if (!found) co_return std::unexpected(found.error());
  for (const Endpoint& each : *found) std::printf("%s\n", each.to_string().c_str());
  if (wanted.port == 0) co_return {};

  tcp::ConnectOptions racing;
  racing.resolver = &resolver;
  const auto stream = co_await timeout(20s, tcp::connect(wanted.name, wanted.port, racing));
  if (!stream) co_return std::unexpected(stream.error());
  std::printf("connected to %s\n", stream->peer_address().to_string().c_str());
  co_return {};
}

int main(int argc, char** argv) {
  Wanted wanted;
  bool understood = argc >= 2 && argc <= 4;
  if (understood) wanted.name = argv[1];
  if (understood && argc > 2) {
    const std::string_view port = argv[2];
    const char* const end = port.data() + port.size();
    const auto [rest, error] = std::from_chars(port.data(), end, wanted.port);
    understood = rest == end && error == std::errc();
  }
  if (understood && argc > 3) {
    const auto server = Endpoint::parse(argv[3]);
    understood = server && server->is_inet();
    if (understood) wanted.options.servers.push_back(*server);
  }
  if (!understood) {
    std::fprintf(stderr, "usage: resolve NAME [PORT [NAME_SERVER]]\n");
    return 2;
  }
  const RuntimeOptions options{.cores = 1, .announce = false};
  return Runtime(options).run_on_each_core(look, std::cref(wanted));
}
