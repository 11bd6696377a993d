// sleep(callback): sleeps for 50 ms on a thread of libuv's pool. Node's modules cannot occupy such
// a thread for a given time without computing. This addon uses asynchronous work of Node-API, which
// is uv_queue_work(), as a binding to a blocking library does.
#include <node_api.h>
#include <stdlib.h>
#include <time.h>

struct sleep_work {
  napi_async_work work;
  napi_ref callback;
};

static void sleep_on_thread(napi_env env, void* data) {
  (void)env;
  (void)data;
  const struct timespec length = {.tv_nsec = 50 * 1000 * 1000};
  nanosleep(&length, NULL);
}

static void end_on_loop(napi_env env, napi_status status, void* data) {
  struct sleep_work* const sleep = data;
  napi_value callback, undefined;
  (void)status;
  napi_get_reference_value(env, sleep->callback, &callback);
  napi_get_undefined(env, &undefined);
  napi_delete_reference(env, sleep->callback);
  napi_delete_async_work(env, sleep->work);
  free(sleep);
  napi_call_function(env, undefined, callback, 0, NULL, NULL);
}

static napi_value start(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value callback, name;
  struct sleep_work* const sleep = malloc(sizeof *sleep);
  if (sleep == NULL) abort();
  napi_get_cb_info(env, info, &count, &callback, NULL, NULL);
  napi_create_reference(env, callback, 1, &sleep->callback);
  napi_create_string_utf8(env, "sleep", NAPI_AUTO_LENGTH, &name);
  napi_create_async_work(env, NULL, name, sleep_on_thread, end_on_loop, sleep, &sleep->work);
  napi_queue_async_work(env, sleep->work);
  return NULL;
}

NAPI_MODULE_INIT() {
  napi_value function;
  napi_create_function(env, "sleep", NAPI_AUTO_LENGTH, start, NULL, &function);
  napi_set_named_property(env, exports, "sleep", function);
  return exports;
}
