// The verb `weir bench`: options, threads and exit status.
#include "tools/weir/bench_command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/weir/bench_report.hpp"
#include "tools/weir/load.hpp"
#include "tools/weir/option_limits.hpp"
#include "tools/weir/process_cpu_time.hpp"
#include "tools/weir/url.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/tls/client.hpp"

namespace weir::bench {
namespace {

const std::map<std::string, BackendChoice> backends{{"auto", BackendChoice::automatic},
                                                    {"uring", BackendChoice::uring},
                                                    {"uring:6.1", BackendChoice::uring_6_1},
                                                    {"epoll", BackendChoice::epoll},
                                                    {"poll", BackendChoice::poll}};

const std::map<std::string, TlsVersion> tls_versions{{"1.2", TlsVersion::tls_1_2},
                                                     {"1.3", TlsVersion::tls_1_3}};

struct Command {
  std::string url;
  std::vector<Endpoint> endpoints;
  RequestOptions request;
  LoadPlan plan;
  unsigned threads = 1;
  double seconds = 4;
  double warm_up_seconds = 0;
  double timeout_seconds = 5;
  std::string backend = "auto";
  std::string tls_version;
  std::shared_ptr<tls::Client> tls;
  std::vector<int> server_processes;
  bool numbered = false;
  bool busy_poll = false;
  bool json = false;
};

void add_options(CLI::App& verb, Command& command) {
  LoadPlan& plan = command.plan;
  verb.add_option("url", command.url,
                  "http[s]://host[:port][/path][?query]; a certificate is not verified")
      ->required();
  verb.add_option("-c,--connections", plan.connections, "connections")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("-d,--depth", plan.depth, "requests written together on each connection")
      ->check(whole_number(1, 10'000))
      ->capture_default_str();
  verb.add_option("-t,--threads", command.threads, "threads, each with a loop")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  auto* seconds =
      verb.add_option("-s,--seconds", command.seconds, "duration of the measurement in seconds")
          ->check(number(0.001, 1e6))
          ->capture_default_str();
  auto* warm_up = verb.add_option("--warm-up", command.warm_up_seconds,
                                  "seconds of load before the measurement")
                      ->check(number(0, 1e6));
  verb.add_option("-n,--requests", plan.requests, "measure until this number of requests was sent")
      ->check(whole_number(1, 1'000'000'000'000))
      ->excludes(seconds)
      ->excludes(warm_up);
  verb.add_flag("--abandon", plan.abandon, "when the time is over, do not wait for responses");
  verb.add_option("--rate", plan.rate,
                  "total requests per second; latency is measured from the time when each is due")
      ->check(number(0.001, 1e9));
  auto* new_connections = verb.add_flag("--new-connections", plan.new_connections,
                                        "a connection for each request, with Connection: close");
  verb.add_flag("--resume", plan.resume,
                "resume the TLS session of the previous connection, instead of full handshakes")
      ->needs(new_connections);
  verb.add_option("--tls-version", command.tls_version, "only this version of TLS")
      ->check(CLI::IsMember(tls_versions));
  verb.add_option("-m,--method", command.request.method, "method")->capture_default_str();
  verb.add_option("-b,--body", command.request.body, "body of each request");
  verb.add_option("-H,--header", command.request.headers, "\"Name: value\"; may be repeated")
      ->allow_extra_args(false);
  verb.add_flag("--numbered", command.numbered,
                "replace the run of # in each request by a unique number, which the body of its "
                "response must repeat");
  verb.add_option("--timeout", command.timeout_seconds, "seconds to wait for an answer")
      ->check(number(0.001, 1e6))
      ->capture_default_str();
  verb.add_option("--status", plan.rules.status, "the expected status")
      ->check(whole_number(200, 599))
      ->capture_default_str();
  verb.add_option("--body-bytes", plan.rules.body_bytes,
                  "the length of each body (default: that of the first)")
      ->check(whole_number(0, 1'000'000'000'000));
  verb.add_flag("--bodies-vary", plan.rules.bodies_vary, "bodies may differ from the first");
  verb.add_option("--backend", command.backend, "I/O backend of this program, not of the server")
      ->check(CLI::IsMember(backends))
      ->capture_default_str();
  verb.add_flag("--busy-poll", command.busy_poll,
                "never sleep while waiting, so that the server spends no time on wake-ups");
  verb.add_option("--server-pid", command.server_processes,
                  "id of a local process whose CPU time is measured; may be repeated")
      ->allow_extra_args(false);
  verb.add_flag("--json", command.json, "print one JSON object");
}

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

tls::ClientOptions tls_options(const Command& command) {
  tls::ClientOptions options;
  options.trust = {};
  options.verification = tls::Verification::none;
  if (!command.tls_version.empty()) {
    options.version_min = options.version_max = tls_versions.at(command.tls_version);
  }
  options.tickets = command.plan.resume;
  options.limits.timeout = command.plan.timeout;
  options.limits.concurrency_max = command.plan.connections;
  return options;
}

/// Fills in what the options imply.
/// Returns: empty, or a description of the error.
std::string complete(Command& command) {
  LoadPlan& plan = command.plan;
  const auto target = parse_url(command.url);
  if (!target && target.error() == Errc::unsupported) {
    return "only http:// and https:// can be measured";
  }
  if (!target) return "not a URL of a server: '" + command.url + "'";
  const auto endpoints = resolve(*target);
  if (!endpoints) return "no address for '" + target->host + "'";
  command.endpoints = *endpoints;
  plan.endpoint = endpoints->front();
  if (!target->secure && (plan.resume || !command.tls_version.empty())) {
    return "--resume and --tls-version require https://";
  }

  command.request.close = plan.new_connections;
  const auto request = make_request(*target, command.request);
  if (!request)
    return "the method is not a token, a header is not \"Name: value\", or both a header and "
           "--body give the length";
  plan.request = *request;
  if (command.numbered) {
    const auto number_placeholder = NumberPlaceholder::find(plan.request);
    if (!number_placeholder) return "--numbered takes one run of at most 18 # in the body";
    plan.rules.number_placeholder = *number_placeholder;
  }
  plan.rules.to_head = command.request.method == "HEAD";
  plan.warm_up = duration_of(command.warm_up_seconds);
  plan.length = duration_of(command.seconds);
  plan.timeout = duration_of(command.timeout_seconds);
  if (target->secure) {
    plan.tls_host = target->host;
    command.tls = std::make_shared<tls::Client>(tls_options(command));
    plan.tls = command.tls.get();
  }

  if (plan.new_connections && plan.depth != 1) return "--new-connections requires --depth 1";
  if (plan.depth > 1 && plan.depth * plan.request.size() > LoadPlan::batch_bytes_max) {
    return "requests written together may have " + std::to_string(LoadPlan::batch_bytes_max) +
           " bytes in total: --depth or --body is too large";
  }
  if (command.threads > plan.connections) return "more threads than connections";
  if (!command.server_processes.empty()) {
    std::ranges::sort(command.server_processes);
    const auto repeated = std::ranges::unique(command.server_processes);
    command.server_processes.erase(repeated.begin(), repeated.end());
    if (!process_cpu_time(command.server_processes))
      return "--server-pid: there is no such process";
    plan.server_cpu_time = [processes = command.server_processes]() -> std::optional<Duration> {
      const auto time = process_cpu_time(processes);
      return time ? std::optional(*time) : std::nullopt;
    };
  }
  return {};
}

struct Threads {
  LoadPlan plan;
  std::vector<LoadResult> results;
};

Task<> load_of_thread(Scope& scope, Threads& threads) {
  const unsigned thread = scope.loop().core();
  const auto count = static_cast<unsigned>(threads.results.size());
  threads.results[thread] = co_await generate_load(share_of(threads.plan, thread, count));
}

int run(const Command& command) {
  OsPlatform platform;
  const auto descriptors = platform.descriptor_limit();
  if (command.plan.connections + 64 > descriptors.descriptors_max) {
    std::fprintf(stderr, "weir bench: too many connections (%s)\n",
                 descriptors.explanation.c_str());
    return 2;
  }
  RuntimeOptions options;
  options.cores = command.threads;
  options.backend = backends.at(command.backend);
  options.pin = false;  // the calling process decides where it may run
  options.announce = false;
  options.busy_poll = command.busy_poll;
  options.drain_timeout = command.plan.timeout;
  Runtime runtime(platform, options);
  LoadGroup group(command.threads);
  Threads threads{command.plan, std::vector<LoadResult>(command.threads)};
  if (command.threads > 1) threads.plan.group = &group;
  if (command.endpoints.size() > 1) {
    const auto loop = Loop::make(platform, {.backend = BackendChoice::poll});
    if (loop) threads.plan.endpoint = weir::run(**loop, first_reachable(command.endpoints));
  }
  const int status = runtime.run_on_each_core(load_of_thread, std::ref(threads));
  if (status != 0) return status;

  LoadResult total;
  for (const LoadResult& each : threads.results) total.add(each);
  const std::string text =
      command.json ? to_json(command.plan, total) : to_text(command.plan, total);
  std::fputs(text.c_str(), stdout);
  return is_clean(total) ? 0 : 1;
}

}  // namespace

void add_command(CLI::App& tool, int& status) {
  auto command = std::make_shared<Command>();
  CLI::App* verb =
      tool.add_subcommand("bench", "generate load on an HTTP server and verify every response");
  add_options(*verb, *command);
  verb->callback([command, &status] {
    const std::string wrong = complete(*command);
    if (!wrong.empty()) {
      std::fprintf(stderr, "weir bench: %s\n", wrong.c_str());
      status = 2;
      return;
    }
    status = run(*command);
  });
}

}  // namespace weir::bench
