// Who waits for scores that a user's function computes, and the thread that asks it.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "deeptail/split.h"

namespace deeptail {

class CalledScores::Service {
 public:
  explicit Service(CalledScoresConfig config);
  ~Service();

  // A population that will ask: a batch waits for those that do not wait themselves.
  void join();
  void leave();
  // Scores of one event. out: [inputs]. Returns when they are there; false: they are not, and nothing will be any more.
  bool scores(const EventInputs& inputs, std::uint32_t event, bool exactly, std::span<double> out);

  const CalledScoresConfig& config() const { return config_; }
  Counts counts() const;
  void count_farther(std::uint64_t n);
  bool gave_up() const;
  std::exception_ptr error() const;

 private:
  struct Request;
  struct Batch;

  void work();
  std::size_t rows_waiting() const { return rows_[0] + rows_[1]; }
  bool full() const { return rows_[0] >= config_.batch || rows_[1] >= config_.batch; }
  bool worth_taking() const;
  bool wait_for_rows(std::unique_lock<std::mutex>& lock);
  bool call(Batch& batch);
  std::size_t size_for(std::size_t rows) const;
  void take(Batch& batch);
  static void add_rows(Batch& batch, Request& request, std::size_t count);
  static void add_copies(Batch& batch, std::size_t n);
  void finish(Batch& batch, bool good);
  void answer(Request& request);
  void answer_all();

  CalledScoresConfig config_;
  std::mutex calling_;  // before mutex_
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Request*> waiting_[2];  // by `exactly`: rows that are not in a batch yet
  std::size_t rows_[2] = {0, 0};     // of those
  std::size_t populations_ = 0, asking_ = 0;
  std::size_t running_ = 0;  // batches that were taken
  bool gave_up_ = false, stop_ = false;
  std::exception_ptr error_;
  Counts counts_;
  // Two: one takes rows and hands scores out while the other's batch is scored.
  std::vector<std::thread> threads_;
};

// score >= 0, computed by a CalledScores.
class CalledEvent final : public Event {
 public:
  // model: whose passes work is counted in; null: one a score. number: among events that share the scores.
  CalledEvent(CalledScores& scores, const Transformer* model, std::string text, std::uint32_t number = 0)
      : scores_(scores), model_(model), text_(std::move(text)), number_(number) {}
  std::string text() const override { return text_; }
  std::uint32_t number() const { return number_; }
  std::size_t n_parts() const override { return scores_.config().numbers; }
  std::unique_ptr<Scorer> scorer(const Transformer& model, const InputLaw& law, const ScorerOptions& options,
                                 ThreadPool& pool) const override;
  ScorerBytes bytes(const ModelConfig& config, const InputLaw& law) const override;
  bool runs_model() const override { return false; }
  double score_flops(const ModelConfig& config, const InputLaw& law) const override;
  double change_flops(const ModelConfig& config, const InputLaw& law, std::size_t part) const override;

 private:
  CalledScores& scores_;
  const Transformer* model_;
  std::string text_;
  std::uint32_t number_;
};

}  // namespace deeptail
