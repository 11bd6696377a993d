// Umbrella header of service applications: services that are injected by constructor signature.
#pragma once

#include "weir/app/app.hpp"
#include "weir/app/clock.hpp"
#include "weir/app/describe/service_options.hpp"
#include "weir/app/handles/handles.hpp"
#include "weir/app/handles/lazy.hpp"
#include "weir/app/handles/remote.hpp"
#include "weir/app/handles/scoped.hpp"
#include "weir/app/http_server.hpp"
#include "weir/app/lifecycle/app_status.hpp"
#include "weir/app/reloadable_service.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/task.hpp"
#include "weir/task/timeout.hpp"
