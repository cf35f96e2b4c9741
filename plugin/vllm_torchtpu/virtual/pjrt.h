/* The part of the PJRT C API that the virtual TPU calls or replaces.
 *
 * No installed package carries pjrt_c_api.h, so the few structs needed are declared here after
 * xla/pjrt/c/pjrt_c_api.h and pjrt_c_api_tpu_topology_extension.h (API 0.115). Of PJRT_Api only the
 * entries in use have names; API_ENTRIES pins the size of the table they were read from, and a
 * plugin of another size or major version is refused.
 */
#ifndef VLLM_TORCHTPU_PJRT_H_
#define VLLM_TORCHTPU_PJRT_H_

#include <stddef.h>
#include <stdint.h>

typedef struct Error Error; /* PJRT_Error: opaque, made and freed by the plugin. */

/* PJRT_Extension_Base. */
typedef struct Extension {
  size_t struct_size;
  int type;
  struct Extension *next;
} Extension;

typedef Error *(*Function)(void *args);

/* PJRT_Api. */
enum {
  API_MAJOR = 0,
  API_ENTRIES = 138,
  EVENT_DESTROY = 5,
  EVENT_ERROR = 7,
  CLIENT_CREATE = 10,
  EXECUTABLE_DESTROY = 40,
  EXECUTABLE_NUM_OUTPUTS = 44,
  EXECUTABLE_OUTPUT_MEMORY_KINDS = 47,
  EXECUTABLE_SERIALIZE = 49,
  LOADED_EXECUTABLE_DESTROY = 50,
  LOADED_EXECUTABLE_GET_EXECUTABLE = 51,
  EXECUTABLE_DESERIALIZE_AND_LOAD = 56,
  EVENT_CREATE = 126,
  EVENT_SET = 127,
};
typedef struct {
  size_t struct_size;
  Extension *extensions;
  struct {
    size_t struct_size;
    Extension *extensions;
    int major_version;
    int minor_version;
  } version;
  Function entries[API_ENTRIES];
} Api;

/* PJRT_Event_Create_Args, PJRT_Event_Error_Args and PJRT_Event_Destroy_Args. */
typedef struct {
  size_t struct_size;
  Extension *extensions;
  void *event;
} EventArgs;

/* PJRT_Event_Set_Args. */
typedef struct {
  size_t struct_size;
  Extension *extensions;
  void *event;
  int code;
  const char *message;
  size_t message_size;
} EventSetArgs;

/* PJRT_NamedValue: an option of the client, here with the integer member of its union. */
enum { INT64 = 1 };
typedef struct {
  size_t struct_size;
  Extension *extensions;
  const char *name;
  size_t name_size;
  int type;
  int64_t value;
  size_t value_size;
} Option;

/* PJRT_Client_Create_Args, as far as the options. */
typedef struct {
  size_t struct_size;
  Extension *extensions;
  const Option *options;
  size_t num_options;
} ClientCreateArgs;

/* PJRT_Executable_NumOutputs_Args. */
typedef struct {
  size_t struct_size;
  Extension *extensions;
  void *executable;
  size_t num_outputs;
} NumOutputsArgs;

/* PJRT_Executable_OutputMemoryKinds_Args. */
typedef struct {
  size_t struct_size;
  Extension *extensions;
  void *executable;
  size_t num_outputs;
  const char *const *kinds;
  const size_t *kind_sizes;
} OutputMemoryKindsArgs;

/* PJRT_TpuTopology_Extension. */
enum { TPU_TOPOLOGY = 16, TPU_TOPOLOGY_ENTRIES = 32, CHIP_COUNT = 10 };
typedef struct {
  Extension base;
  Function entries[TPU_TOPOLOGY_ENTRIES];
} TpuTopology;

/* PJRT_TpuTopology_ChipCount_Args. */
typedef struct {
  size_t struct_size;
  const void *topology;
  int32_t chip_count;
} ChipCountArgs;

/* PJRT_Executable_Destroy_Args and PJRT_LoadedExecutable_Destroy_Args. */
typedef struct {
  size_t struct_size;
  Extension *extensions;
  void *executable;
} DestroyArgs;

/* PJRT_LoadedExecutable_GetExecutable_Args. */
typedef struct {
  size_t struct_size;
  Extension *extensions;
  void *loaded_executable;
  void *executable;
} GetExecutableArgs;

/* PJRT_Executable_DeserializeAndLoad_Args, as far as the result. */
typedef struct {
  size_t struct_size;
  Extension *extensions;
  void *client;
  const char *bytes;
  size_t num_bytes;
  void *loaded_executable;
} DeserializeArgs;

/* PJRT_Executable_Serialize_Args. */
typedef struct {
  size_t struct_size;
  Extension *extensions;
  void *executable;
  const char *bytes;
  size_t num_bytes;
  void *owner;
  void (*free_owner)(void *owner);
} SerializeArgs;

/* The CPU plugin's own table; NULL until it is open. */
extern const Api *plugin;

/* serialize.c: makes executables that were read from a file serialisable in the table given out. */
void keep_serialized_executables(Api *api);

#endif /* VLLM_TORCHTPU_PJRT_H_ */
