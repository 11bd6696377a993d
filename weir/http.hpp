// Everything that an HTTP service needs: include this one file.
#pragma once

#include "weir/cores/runtime.hpp"
#include "weir/http/json.hpp"
#include "weir/http/limits.hpp"
#include "weir/http/live_routes.hpp"
#include "weir/http/request.hpp"
#include "weir/http/response.hpp"
#include "weir/http/router.hpp"
#include "weir/http/serve.hpp"
#include "weir/json.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/task.hpp"
#include "weir/task/timeout.hpp"
#include "weir/task/together.hpp"
