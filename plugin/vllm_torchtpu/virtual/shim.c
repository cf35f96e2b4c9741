/* The virtual TPU: XLA's CPU PJRT plugin, made acceptable to torch_tpu as if it were libtpu.
 *
 * Exports: GetPjrtApi, the PJRT C API's entry point; NULL if the plugin cannot be used.
 *          torchtpu_shim_error, one sentence that says why, or NULL.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt.h"

#ifndef TORCHTPU_CPU_PLUGIN
#error "define TORCHTPU_CPU_PLUGIN as the path of XLA's CPU PJRT plugin"
#endif

#define EXPORT __attribute__((visibility("default")))

static const char DROPPED_OPTION[] = "premapped_buffer_size";
static const char DEVICE_COUNT_OPTION[] = "cpu_device_count";
static const char MEMORY_KIND[] = "device";
enum { MAX_OUTPUTS = 65536, UNIMPLEMENTED = 12 };

const Api *plugin;
static Api api; /* the table given out */
static TpuTopology topology;
static const char *memory_kinds[MAX_OUTPUTS];
static size_t memory_kind_sizes[MAX_OUTPUTS];
static char failure[1024];

/* Makes an error that the plugin's own functions can read and free: errors are opaque, but the
 * plugin makes one of any text out of an event that failed. */
static Error *unimplemented(const char *message) {
  EventArgs event = {sizeof event, NULL, NULL};
  Error *error = plugin->entries[EVENT_CREATE](&event);
  if (error != NULL) return error;
  EventSetArgs set = {sizeof set, NULL, event.event, UNIMPLEMENTED, message, strlen(message)};
  error = plugin->entries[EVENT_SET](&set);
  if (error == NULL) error = plugin->entries[EVENT_ERROR](&event);
  plugin->entries[EVENT_DESTROY](&event);
  return error;
}

static int is_named(const Option *option, const char *name) {
  return option->name_size == strlen(name) && memcmp(option->name, name, option->name_size) == 0;
}

/* Drops the option that only libtpu knows, and asks for one device instead of the plugin's four: a
 * process has one virtual TPU. */
static Error *client_create(void *args) {
  ClientCreateArgs *create = args;
  const Option *given = create->options;
  const size_t num_given = create->num_options;
  Option *kept = calloc(num_given + 1, sizeof *kept);
  if (kept == NULL) return unimplemented("virtual TPU: out of memory");
  size_t num_kept = 0;
  for (size_t i = 0; i < num_given; i++)
    if (!is_named(&given[i], DROPPED_OPTION)) kept[num_kept++] = given[i];
  kept[num_kept++] = (Option){sizeof(Option), NULL, DEVICE_COUNT_OPTION, strlen(DEVICE_COUNT_OPTION), INT64, 1, 1};
  create->options = kept;
  create->num_options = num_kept;
  Error *error = plugin->entries[CLIENT_CREATE](args);
  create->options = given;
  create->num_options = num_given;
  free(kept);
  return error;
}

/* The CPU plugin does not implement this; every output lies in the device's one memory. */
static Error *output_memory_kinds(void *args) {
  OutputMemoryKindsArgs *kinds = args;
  NumOutputsArgs count = {sizeof count, NULL, kinds->executable, 0};
  Error *error = plugin->entries[EXECUTABLE_NUM_OUTPUTS](&count);
  if (error != NULL) return error;
  if (count.num_outputs > MAX_OUTPUTS) return unimplemented("virtual TPU: a program has more than 65536 outputs");
  kinds->num_outputs = count.num_outputs;
  kinds->kinds = memory_kinds;
  kinds->kind_sizes = memory_kind_sizes;
  return NULL;
}

static Error *chip_count(void *args) {
  ((ChipCountArgs *)args)->chip_count = 1;
  return NULL;
}

static Error *no_topology(void *args) {
  (void)args;
  return unimplemented("virtual TPU: it has no topology beyond its one chip");
}

static void open_plugin(void) {
  void *library = dlopen(TORCHTPU_CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    snprintf(failure, sizeof failure, "cannot load XLA's CPU PJRT plugin: %s", dlerror());
    return;
  }
  const Api *(*get)(void);
  *(void **)&get = dlsym(library, "GetPjrtApi");
  const Api *table = get == NULL ? NULL : get();
  if (table == NULL) {
    snprintf(failure, sizeof failure, "%s is not a PJRT plugin", TORCHTPU_CPU_PLUGIN);
    return;
  }
  if (table->struct_size != sizeof api || table->version.major_version != API_MAJOR) {
    snprintf(failure, sizeof failure,
             "%s has PJRT API %d.%d with a table of %zu bytes, this build needs API %d with %zu bytes",
             TORCHTPU_CPU_PLUGIN, table->version.major_version, table->version.minor_version,
             table->struct_size, API_MAJOR, sizeof api);
    return;
  }
  plugin = table;
  api = *table;
  for (size_t i = 0; i < MAX_OUTPUTS; i++) {
    memory_kinds[i] = MEMORY_KIND;
    memory_kind_sizes[i] = strlen(MEMORY_KIND);
  }
  topology.base = (Extension){sizeof topology, TPU_TOPOLOGY, api.extensions};
  for (size_t i = 0; i < TPU_TOPOLOGY_ENTRIES; i++) topology.entries[i] = no_topology;
  topology.entries[CHIP_COUNT] = chip_count;
  api.extensions = &topology.base;
  api.entries[CLIENT_CREATE] = client_create;
  api.entries[EXECUTABLE_OUTPUT_MEMORY_KINDS] = output_memory_kinds;
  keep_serialized_executables(&api);
}

static pthread_once_t opened = PTHREAD_ONCE_INIT;

EXPORT const void *GetPjrtApi(void) {
  pthread_once(&opened, open_plugin);
  return plugin == NULL ? NULL : &api;
}

EXPORT const char *torchtpu_shim_error(void) {
  pthread_once(&opened, open_plugin);
  return plugin == NULL ? failure : NULL;
}
