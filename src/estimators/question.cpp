#include "deeptail/question.h"

namespace deeptail {

Question::Question(const LoadedModel& of, const InputLaw& inputs, const Event& what)
    : Question(of.transformer, inputs, what) {
  provenance = provenance_of(of, inputs);
}

Question::Question(const Transformer& of, const InputLaw& inputs, const Event& what)
    : model(&of), law(&inputs), event(&what), head(&of.head()) {}

Question::Question(const Head& vocabulary, const Activations& cloud, const Event& what)
    : event(&what), head(&vocabulary), activations(&cloud) {}

}  // namespace deeptail
