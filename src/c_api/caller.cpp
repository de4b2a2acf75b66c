#include "c_api/caller.h"

#include <chrono>
#include <thread>

namespace deeptail::c_api {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenQuestions = std::chrono::milliseconds(50);

}  // namespace

bool Caller::watch(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  progress_ = progress;
  note_ = progress.note;
  return !stopped();
}

// On the calling thread, without the lock: a user's function may take its time.
void Caller::ask() {
  if (hooks_.keep_going == nullptr) return;
  std::string note;
  dt_progress told = {};
  told.size = sizeof told;
  {
    const std::lock_guard lock(mutex_);
    note = note_;
    told.share = progress_.share;
    told.done = progress_.done;
    told.total = progress_.total;
    told.seconds_left = progress_.seconds_left;
  }
  told.note = note.c_str();
  if (hooks_.keep_going(hooks_.user, &told) == 0) stop();
}

void Caller::answer(Call& call) {
  try {
    call.function();
  } catch (...) {
    call.error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    call.done = true;
  }
  for_workers_.notify_all();
}

void Caller::serve() {
  Clock::time_point next = Clock::now();
  std::unique_lock lock(mutex_);
  while (!finished_) {
    if (!calls_.empty()) {
      Call& call = *calls_.front();
      calls_.pop_front();
      lock.unlock();
      answer(call);
      lock.lock();
    }
    if (const Clock::time_point now = Clock::now(); now >= next) {
      lock.unlock();
      ask();
      lock.lock();
      next = Clock::now() + kBetweenQuestions;
    }
    for_caller_.wait_until(lock, next, [&] { return finished_ || !calls_.empty(); });
  }
}

void Caller::run(const std::function<void(const Watch&)>& work) {
  std::exception_ptr error;
  std::thread worker([&] {
    try {
      work([this](const Progress& progress) { return watch(progress); });
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      finished_ = true;
    }
    for_caller_.notify_all();
  });
  serve();
  worker.join();
  if (error) std::rethrow_exception(error);
}

void Caller::on_caller(const std::function<void()>& function) {
  Call call{function};
  std::unique_lock lock(mutex_);
  calls_.push_back(&call);
  for_caller_.notify_all();
  for_workers_.wait(lock, [&] { return call.done; });
  lock.unlock();
  if (call.error) std::rethrow_exception(call.error);
}

void Caller::tell_result(std::size_t number, const std::string& json) {
  if (hooks_.on_result == nullptr) return;
  on_caller([&] { hooks_.on_result(hooks_.user, number, json.c_str()); });
}

}  // namespace deeptail::c_api
