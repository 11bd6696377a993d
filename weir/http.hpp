// Everything that an HTTP service needs: include this one file.
#pragma once

#include "weir/runtime/runtime.hpp"
#include "weir/http/message/json.hpp"
#include "weir/http/limits.hpp"
#include "weir/http/router/live_routes.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/serve.hpp"
#include "weir/json.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/task.hpp"
#include "weir/task/timeout.hpp"
#include "weir/task/combinators.hpp"
