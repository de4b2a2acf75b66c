/* The same question through the C interface: a model, a law, an event as JSON; the answer is JSON, too.
 *
 *   cc 06_from_c.c $(pkg-config --cflags --libs deeptail-c)
 */
#include <deeptail/c_api.h>
#include <stdio.h>
#include <string.h>

static int keep_going(void* user, const dt_progress* progress) {
  *(double*)user = progress->share;
  return 1; /* 0 would stop it, with what is finished */
}

/* The number, or the array, that follows a key: enough for an example. */
static void print_value(const char* json, const char* key) {
  const char* at = strstr(json, key);
  if (at == NULL) return;
  at += strlen(key);
  const size_t n = *at == '[' ? strcspn(at, "]") + 1 : strcspn(at, ",}");
  for (size_t i = 0; i < n; ++i) {
    putchar(at[i]);
    if (at[i] == ',') putchar(' ');
  }
}

static int fail(void) {
  fprintf(stderr, "%s\n", dt_last_error());
  return 1;
}

int main(void) {
  dt_model* model = NULL;
  dt_law* law = NULL;
  dt_text answer = {0};
  double share = 0.0;
  if (dt_model_load("dt-1l", &model) || dt_law_load("hex", model, "", &law)) return fail();

  const dt_question question = {
      .size = sizeof question, .model = model, .law = law, .events = "[{\"target\": \"ly\"}]"};
  const dt_hooks hooks = {.size = sizeof hooks, .user = &share, .keep_going = keep_going};
  if (dt_estimate(&question, "{\"budget\": 2e4, \"seed\": 1}", &hooks, &answer)) return fail();
  printf("Pr[dt-1l on hex says \"ly\"] = ");
  print_value(answer.data, "\"p\":");
  printf(" ");
  print_value(answer.data, "\"ci95\":");
  printf("\n");

  dt_text_free(&answer);
  dt_law_free(law);
  dt_model_free(model);
  return 0;
}
