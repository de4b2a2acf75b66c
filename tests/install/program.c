/* Prints the name of a model that was installed with the library. */
#include <deeptail/c_api.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  dt_model* model = NULL;
  dt_text info = {0};
  if (dt_abi_version() != DT_ABI_VERSION || dt_model_load("dt-1l", &model) || dt_model_info(model, &info)) {
    fprintf(stderr, "%s\n", dt_last_error());
    return 1;
  }
  const char* name = strstr(info.data, "\"name\":\"") + strlen("\"name\":\"");
  printf("%.*s\n", (int)strcspn(name, "\""), name);
  dt_text_free(&info);
  dt_model_free(model);
  return 0;
}
