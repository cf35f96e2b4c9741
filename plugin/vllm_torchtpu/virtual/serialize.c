/* Serialisation of executables that were themselves deserialised.
 *
 * The CPU plugin serialises such an executable without its machine code ("function ... not found"
 * when that is loaded). torch_tpu does so whenever it copies an executable from one level of its
 * cache to another, so the bytes an executable came from are kept, and given out again.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt.h"

/* One handle of a deserialised executable: the loaded executable, or an executable made of it. */
typedef struct Handle {
  const void *key;
  char *bytes;
  size_t num_bytes;
  struct Handle *next;
} Handle;

static Handle *handles;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static char *copy(const char *bytes, size_t num_bytes) {
  char *copied = malloc(num_bytes + 1);
  if (copied != NULL) memcpy(copied, bytes, num_bytes);
  return copied;
}

/* Remembers what a handle came from. Out of memory, it is as if it had been compiled. */
static void remember(const void *key, const char *bytes, size_t num_bytes) {
  Handle *handle = malloc(sizeof *handle);
  char *kept = copy(bytes, num_bytes);
  if (handle == NULL || kept == NULL) {
    free(handle);
    free(kept);
    return;
  }
  pthread_mutex_lock(&lock);
  *handle = (Handle){key, kept, num_bytes, handles};
  handles = handle;
  pthread_mutex_unlock(&lock);
}

static void forget(const void *key) {
  pthread_mutex_lock(&lock);
  for (Handle **at = &handles; *at != NULL; at = &(*at)->next) {
    if ((*at)->key != key) continue;
    Handle *found = *at;
    *at = found->next;
    free(found->bytes);
    free(found);
    break;
  }
  pthread_mutex_unlock(&lock);
}

/* Copies what a handle came from; NULL if it was compiled in this process. */
static char *recall(const void *key, size_t *num_bytes) {
  char *bytes = NULL;
  pthread_mutex_lock(&lock);
  for (const Handle *handle = handles; handle != NULL; handle = handle->next) {
    if (handle->key != key) continue;
    bytes = copy(handle->bytes, handle->num_bytes);
    *num_bytes = handle->num_bytes;
    break;
  }
  pthread_mutex_unlock(&lock);
  return bytes;
}

static Error *deserialize(void *args) {
  Error *error = plugin->entries[EXECUTABLE_DESERIALIZE_AND_LOAD](args);
  const DeserializeArgs *done = args;
  if (error == NULL) remember(done->loaded_executable, done->bytes, done->num_bytes);
  return error;
}

static Error *get_executable(void *args) {
  Error *error = plugin->entries[LOADED_EXECUTABLE_GET_EXECUTABLE](args);
  if (error != NULL) return error;
  const GetExecutableArgs *done = args;
  size_t num_bytes;
  char *bytes = recall(done->loaded_executable, &num_bytes);
  if (bytes != NULL) remember(done->executable, bytes, num_bytes);
  free(bytes);
  return NULL;
}

static Error *serialize(void *args) {
  SerializeArgs *asked = args;
  size_t num_bytes;
  char *bytes = recall(asked->executable, &num_bytes);
  if (bytes == NULL) return plugin->entries[EXECUTABLE_SERIALIZE](args);
  asked->bytes = bytes;
  asked->num_bytes = num_bytes;
  asked->owner = bytes;
  asked->free_owner = free;
  return NULL;
}

static Error *destroy(void *args) {
  forget(((DestroyArgs *)args)->executable);
  return plugin->entries[EXECUTABLE_DESTROY](args);
}

static Error *destroy_loaded(void *args) {
  forget(((DestroyArgs *)args)->executable);
  return plugin->entries[LOADED_EXECUTABLE_DESTROY](args);
}

void keep_serialized_executables(Api *api) {
  api->entries[EXECUTABLE_DESERIALIZE_AND_LOAD] = deserialize;
  api->entries[LOADED_EXECUTABLE_GET_EXECUTABLE] = get_executable;
  api->entries[EXECUTABLE_SERIALIZE] = serialize;
  api->entries[EXECUTABLE_DESTROY] = destroy;
  api->entries[LOADED_EXECUTABLE_DESTROY] = destroy_loaded;
}
