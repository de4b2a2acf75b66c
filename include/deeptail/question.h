// A question: how likely is an event, for a model, on inputs of a law? Methods answer questions (methods.h),
// and say in one sentence why they cannot.
//
//   const LoadedModel model = load_model("dt-1l");
//   const auto law = load_law("hex", model);
//   const NextToken says(Target({310}, model.head()));
//   const Estimate e = run_method(make_method("mc", {}), {model, *law, says}, 1, pool);
#pragma once

#include "deeptail/activations.h"
#include "deeptail/estimators.h"
#include "deeptail/event.h"
#include "deeptail/law.h"
#include "deeptail/load.h"

namespace [[gnu::visibility("default")]] deeptail {

// Refers to all that it is made from.
struct Question {
  Question(const LoadedModel& of, const InputLaw& inputs, const Event& what);
  // A model without a name: results do not say which it was.
  Question(const Transformer& of, const InputLaw& inputs, const Event& what);
  // Activations and an unembedding of unknown origin, such as a user's files: there is no model to run.
  Question(const Head& vocabulary, const Activations& cloud, const Event& what);

  const Transformer* model = nullptr;  // null, like the law, where activations are all there is
  const InputLaw* law = nullptr;
  const Event* event;
  const Head* head;                          // from activations to the vocabulary
  const Activations* activations = nullptr;  // what Method::calibration says; others need none
  Cost capture_cost = {};                    // of making the activations
  Provenance provenance = {};
  double likely_log_p = -16.0;  // where the answer is known, its log: progress of splitting is measured by it

  // The same about another event.
  Question about(const Event& other) const {
    Question question = *this;
    question.event = &other;
    return question;
  }
  // What only some questions have; else null.
  const Distribution* tables() const { return law == nullptr ? nullptr : law->tables(); }
  const Target* next_token() const { return event->next_token(); }
};

}  // namespace deeptail
