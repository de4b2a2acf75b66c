// The thread that called in, and serves the caller's functions while the work runs on another: so signals reach
// Python between two bytecodes of its own thread, and a user's functions see one thread only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>

#include "c_api/guard.h"
#include "deeptail/watch.h"

namespace deeptail::c_api {

class Caller {
 public:
  explicit Caller(const dt_hooks* hooks) : hooks_(sized_copy(hooks)) {}

  // Runs the work, which may tell and ask the watch, and returns when it is done; throws what it threw. Once in a
  // Caller's life.
  void run(const std::function<void(const Watch&)>& work);
  bool stopped() const { return stop_.load(); }
  void stop() { stop_.store(true); }

  // From the work's threads: runs it on the thread that called in, and returns when that is done; throws what it threw.
  void on_caller(const std::function<void()>& call);
  void tell_result(std::size_t number, const std::string& json);

 private:
  struct Call {
    const std::function<void()>& function;
    bool done = false;
    std::exception_ptr error = {};
  };
  bool watch(const Progress& progress);
  void serve();
  void ask();
  void answer(Call& call);

  dt_hooks hooks_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable for_caller_, for_workers_;
  std::deque<Call*> calls_;
  bool finished_ = false;
  Progress progress_ = {};
  std::string note_;
};

}  // namespace deeptail::c_api
