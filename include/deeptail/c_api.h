/* The C interface: libdeeptail.so, for Python and every other language that can call C. It exports the names
 * below and nothing else.
 *
 *   dt_model* model = NULL;
 *   dt_law* law = NULL;
 *   dt_text answer = {0};
 *   if (dt_model_load("dt-1l", &model) || dt_law_load("hex", model, "", &law)) ... dt_last_error()
 *   const dt_question question = {.size = sizeof question, .model = model, .law = law, .events = "[{\"target\": [395]}]"};
 *   dt_estimate(&question, "{\"method\": \"mc\", \"budget\": 1000}", NULL, &answer);
 *
 * Settings go in and results come out as JSON text, arrays as pointers. Every function returns a dt_status;
 * dt_last_error() has the sentence. Calls on different threads do not disturb each other. Handles may be used by
 * several calls at a time; they are freed by their own function, which takes NULL too.
 * Structures begin with their size, so that later versions can add fields at their ends. */
#ifndef DEEPTAIL_C_API_H
#define DEEPTAIL_C_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_API __attribute__((visibility("default")))

/* Grows by one where a program that was compiled with an older header would go wrong. */
#define DT_ABI_VERSION 1

typedef enum dt_status {
  DT_OK = 0,
  DT_INPUT_ERROR = 1,  /* the caller's mistake: file, setting, data */
  DT_DEVICE_ERROR = 2, /* the same, about a device that is not there or too small */
  DT_MEMORY_ERROR = 3,
  DT_STOPPED = 4, /* a callback asked for it before there was any result */
  DT_BUG = 5      /* should not happen */
} dt_status;

DT_API const char* dt_version(void); /* "0.1.0" */
DT_API int dt_abi_version(void);
/* The sentence of the last call of this thread that failed; "" before. Valid until the thread's next call. */
DT_API const char* dt_last_error(void);

/* Bytes that a call gives out, with a 0 after the last. Begin with {0}; what it held before is freed. */
typedef struct dt_text {
  char* data;
  size_t size;
} dt_text;
DT_API void dt_text_free(dt_text* text);

/* What a long call tells and asks. All functions are called on the thread that made the call, keep_going at
 * least every 100 ms while there is work. */
typedef struct dt_progress {
  size_t size;
  double share;         /* of the whole, from 0 to about 1 */
  uint64_t done, total; /* in the unit of the work; total 0: not known */
  double seconds_left;  /* negative: not known */
  const char* note;     /* what is being done; often "" */
} dt_progress;
typedef struct dt_hooks {
  size_t size;
  void* user;
  /* 0: stop, with what was done until then. May be NULL. */
  int (*keep_going)(void* user, const dt_progress* progress);
  /* Whenever a result of several is ready: its number and its JSON. May be NULL. */
  void (*on_result)(void* user, size_t number, const char* json);
} dt_hooks;

/* Where models, distributions and counts are looked for by name, besides $DEEPTAIL_HOME and the current folder. */
DT_API dt_status dt_add_data_folder(const char* folder);

/* --- models --- */
typedef struct dt_model dt_model;
/* A name, a folder, a GGUF file, or hf:ORG/NAME in the HuggingFace cache. */
DT_API dt_status dt_model_load(const char* name, dt_model** out);
DT_API void dt_model_free(dt_model* model);
/* {"name", "folder", "sha256", "d_model", "d_vocab", "n_layers", "n_heads", "n_ctx", "tokenizer": {"sha256", "bos",
 * "vocab_size"} or null} */
DT_API dt_status dt_model_info(const dt_model* model, dt_text* out);
/* logits after each sequence, [n, d_vocab], or final residuals before ln_final, [n, d_model]. tokens: [n, length];
 * lengths: [n], or NULL where all are `length` long. */
DT_API dt_status dt_logits(const dt_model* model, const int32_t* tokens, const uint32_t* lengths, size_t n,
                           size_t length, size_t threads, float* out);
DT_API dt_status dt_residuals(const dt_model* model, const int32_t* tokens, const uint32_t* lengths, size_t n,
                              size_t length, size_t threads, float* out);

/* --- tokenizers --- */
/* bos: "auto" (what the tokenizer's files say), "none", or an id. ids: room for `room`; n: how many there are, also
 * where that is more. */
DT_API dt_status dt_encode(const dt_model* model, const char* text, size_t size, const char* bos,
                           int32_t* ids, size_t room, size_t* n);
DT_API dt_status dt_decode(const dt_model* model, const int32_t* ids, size_t n, dt_text* out);

/* --- laws of inputs --- */
typedef struct dt_law dt_law;
/* A name, a file, or JSON text (it begins with a brace). model: the one that shall read its inputs; NULL: any.
 * folder: where files that the JSON names are looked for. */
DT_API dt_status dt_law_load(const char* name, const dt_model* model, const char* folder, dt_law** out);
DT_API void dt_law_free(dt_law* law);
/* {"name", "sha256", "d_vocab", "tokenizer_sha256", "n_parts", "max_length", "tables", "constant_prefix"} */
DT_API dt_status dt_law_info(const dt_law* law, dt_text* out);
/* Samples [first, first + n) of a seed. tokens: [n, max_length], 0 beyond an input's length; lengths: [n]. */
DT_API dt_status dt_law_sample(const dt_law* law, uint64_t seed, uint64_t first, size_t n, size_t threads,
                               int32_t* tokens, uint32_t* lengths);

/* --- activations --- */
/* Final residuals of inputs of a law: out [count, d_model]. last_tokens: [count], -1 where none is known; may be NULL.
 * captured: how many; fewer where keep_going said no. */
DT_API dt_status dt_capture(const dt_model* model, const dt_law* law, uint64_t count, uint64_t seed,
                            size_t threads, const dt_hooks* hooks, float* out, int32_t* last_tokens,
                            uint64_t* captured);
/* The way from activations to the vocabulary. It keeps a copy of these. */
typedef struct dt_head dt_head;
typedef struct dt_head_parts {
  size_t size;
  size_t d_model, d_vocab;
  const float* w_u;  /* [d_model, d_vocab] */
  const float* b_u;  /* [d_vocab], or NULL */
  const float* ln_w; /* [d_model], or NULL: no norm, or one without weights */
  const float* ln_b; /* [d_model], or NULL */
  const char* norm;  /* "layer", "rms" or "none" */
  double eps;
} dt_head_parts;
DT_API dt_status dt_head_make(const dt_head_parts* parts, dt_head** out);
DT_API void dt_head_free(dt_head* head);

/* --- questions --- */
typedef struct dt_question {
  size_t size;
  const dt_model* model; /* with a law; or NULL and a head with activations */
  const dt_law* law;
  const char* events; /* JSON: an array of events, {"target": [310]} */
  const dt_head* head;
  /* [n_activations, d_activations], read where they are; NULL: captured where a method needs them. */
  const float* activations;
  size_t n_activations, d_activations;
  const int32_t* last_tokens; /* [n_activations], or NULL */
} dt_question;
/* settings: {"method", "seed", "threads", "calibration_seed", and those of the method}; as strings or numbers. out: a
 * line for each event, as `deeptail estimate --json` prints it. Where it was stopped, those that are finished and the
 * one that was under way. */
DT_API dt_status dt_estimate(const dt_question* question, const char* settings, const dt_hooks* hooks,
                             dt_text* out);
/* Every token of the vocabulary at once, by draws that all of them share. law: of independent tokens. settings: {"budget",
 * "above", "below", "seed", "device", "threads"}. out: {"rows": the tokens between above and below, the likeliest first,
 * each as of dt_estimate, "rest": what `deeptail estimate --all --json` ends with}. Where it was stopped, rows are of what
 * was drawn until then, and rest.stopped is true. */
DT_API dt_status dt_estimate_all(const dt_model* model, const dt_law* law, const char* settings,
                                 const dt_hooks* hooks, dt_text* out);
/* The event's own score of inputs: out [n]; at least 0: it happens. tokens: [n, length]. The question has one event. */
DT_API dt_status dt_event_scores(const dt_question* question, const int32_t* tokens, const uint32_t* lengths,
                                 size_t n, size_t length, size_t threads, double* out);

/* --- scores of your own --- */
/* n is the same in every call, and so is length: rows that are missing are copies of the first. */
typedef struct dt_batch {
  size_t size;
  size_t n, length, n_numbers;
  const int32_t* tokens;   /* [n, length] */
  const uint32_t* lengths; /* [n] */
  const double* numbers;   /* [n, n_numbers]: uniform, from 0 up to 1 */
  const uint32_t* which;   /* [n]: the event that each row is asked about, of dt_split_many */
} dt_batch;
/* out: [n]; at least 0: the event. Minus infinity is allowed, NaN is an error. Must give a row the same score whenever
 * and in whatever batch it is asked. Returns 1 to go on; after anything else the run stops, and the caller knows why.
 * Called on the thread that called dt_split. */
typedef int (*dt_score)(void* user, const dt_batch* batch, double* out);
typedef struct dt_scores {
  size_t size;
  void* user;
  dt_score score;
  dt_score exact; /* decides where the score is within `near` of a level; NULL: none */
  double near;
  size_t batch;   /* rows of a batch; 0: 256 */
  size_t numbers; /* that a score takes besides the input, for answers that are drawn */
  /* [n_smaller]: batches that may be asked for where fewer rows wait; none: one shape always */
  const size_t* smaller;
  size_t n_smaller;
} dt_scores;
/* settings: those of tokensplit but "device", and "seed", "threads", "event" (its name), "max_triggers". model: whose
 * passes work is counted in, and the text of triggers; NULL: a score counts as one pass. out: as of dt_estimate. */
DT_API dt_status dt_split(const dt_law* law, const dt_model* model, const dt_scores* scores,
                          const char* settings, const dt_hooks* hooks, dt_text* out);
/* Several events that share batches: dt_batch.which counts them. settings: "events" has their names, the others are those
 * of dt_split. hooks: on_result is told each as it is there. out: a list, as many as events; null where nothing is known,
 * because it was stopped. */
DT_API dt_status dt_split_many(const dt_law* law, const dt_model* model, const dt_scores* scores,
                               const char* settings, const dt_hooks* hooks, dt_text* out);
/* States of your own, by number: the caller keeps them. Every function returns 1 to go on. */
typedef struct dt_states {
  size_t size;
  void* user;
  int (*sample)(void* user, uint64_t seed, size_t n, int64_t* states);
  /* proposals: [n], new numbers. */
  int (*mutate)(void* user, const int64_t* states, size_t n, uint64_t seed, int64_t* proposals);
  int (*score)(void* user, const int64_t* states, size_t n, double* out);
  /* These are not needed any more. May be NULL. */
  int (*drop)(void* user, const int64_t* states, size_t n);
} dt_states;
/* settings: {"budget", "replicas", "seed", "survive_fraction", "moves", "particles", "kept"}. out: as of dt_estimate, and
 * "states": numbers of some that have the event and were not dropped. */
DT_API dt_status dt_split_states(const dt_states* states, const char* settings, const dt_hooks* hooks,
                                 dt_text* out);

/* --- texts --- */
/* What the model says after prompts of the law: settings {"count", "first", "within", "temperature", "top_k", "top_p",
 * "greedy", "stop", "seed", "threads"}, as `deeptail model generate` has them. out: a list of {"prompt", "continuation",
 * "prompt_tokens", "tokens", "stopped"}, the texts where the model has a tokenizer; shorter where hooks said stop. */
DT_API dt_status dt_generate(const dt_model* model, const dt_law* law, const char* settings,
                             const dt_hooks* hooks, dt_text* out);

/* --- losses --- */
/* name: spb, spb_pointwise, squared, log_squared, itakura_saito; parameters: {"alpha", "gamma", "epsilon"}. truth,
 * estimate, out: [n]. */
DT_API dt_status dt_losses(const char* name, const char* parameters, const double* truth,
                           const double* estimate, size_t n, double* out);

/* --- everything else, as JSON in and JSON out --- */
/* what: list, spb, truth, bench, report, selftest, ... as docs/python.md tells. */
DT_API dt_status dt_call(const char* what, const char* arguments, const dt_hooks* hooks, dt_text* out);

#ifdef __cplusplus
}
#endif

#endif
