// services_lease: the first client gets a lease for an hour. Defines the services and their wiring.
#pragma once

#include <weir/app.hpp>
#include <weir/app/clock.hpp>
#include <weir/app/http_server.hpp>
#include <weir/http.hpp>
#include <weir/http/router/service_routes.hpp>
#include <weir/net/files.hpp>

#include <string>
#include <utility>

/// Stores the name of the lease's owner.
struct Store {
  virtual ~Store() = default;
  virtual weir::Task<weir::Result<>> keep(std::string name) = 0;
};

struct FileStore : Store {
  weir::Task<weir::Result<>> keep(std::string name) override {
    return weir::files::write_file("lease.txt", std::move(name));
  }
};

class Leases {
 public:
  Leases(weir::http::ServiceRoutes& routes, Store& store, const weir::Clock& clock)
      : store_(store), clock_(clock) {
    routes.post("/lease/{name}", [this](std::string name) { return take(std::move(name)); });
  }

 private:
  weir::Task<weir::http::Response> take(std::string name) {
    using namespace std::chrono_literals;
    if (clock_.now() < until_) co_return weir::http::Response(weir::http::Status::conflict);
    until_ = clock_.now() + 1h;
    if (auto kept = co_await store_.keep(name); !kept) {
      until_ = {};
      co_return weir::http::to_status(kept.error());
    }
    co_return weir::http::text("yours, " + name + "\n");
  }

  Store& store_;
  const weir::Clock& clock_;
  weir::Instant until_{};
};

inline void wire(weir::App& app, weir::http::Router& router,
                 const weir::http::ServeOptions& serving) {
  app.per_core<weir::SystemClock, weir::Clock>();
  app.per_core<FileStore, Store>();
  app.per_core<Leases>();
  weir::serve_http(app, router, serving);
}
