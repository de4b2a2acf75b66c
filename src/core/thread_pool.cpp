#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "deeptail/core.h"

namespace deeptail {

// One job at a time: workers wake, take block numbers from a counter until none is left, and report back.
struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable wake, done;
  const std::function<void(std::size_t, std::size_t)>* body = nullptr;
  std::size_t n_blocks = 0;
  std::atomic<std::size_t> next_block{0};
  std::size_t job = 0;      // counts jobs, so that a worker sees each one once
  std::size_t running = 0;  // workers still inside the job
  bool stop = false;
  std::exception_ptr error;
  std::vector<std::thread> workers;

  void take_blocks(std::size_t worker) {
    for (std::size_t block; (block = next_block.fetch_add(1)) < n_blocks;) {
      try {
        (*body)(block, worker);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next_block = n_blocks;
      }
    }
  }

  void work(std::size_t worker) {
    std::size_t seen = 0;
    for (std::unique_lock lock(mutex);;) {
      wake.wait(lock, [&] { return stop || job != seen; });
      if (stop) return;
      seen = job;
      lock.unlock();
      take_blocks(worker);
      lock.lock();
      if (--running == 0) done.notify_one();
    }
  }

  void join() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (auto& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(std::size_t n_threads) : state_(std::make_unique<State>()) {
  if (n_threads > kMostThreads)
    throw InputError("{} threads: expected at most {}; 0 takes one per core", n_threads, kMostThreads);
  if (n_threads == 0) n_threads = std::max(1u, std::thread::hardware_concurrency());
  // The calling thread is worker 0.
  try {
    for (std::size_t worker = 1; worker < n_threads; ++worker)
      state_->workers.emplace_back([this, worker] { state_->work(worker); });
  } catch (const std::system_error& e) {
    state_->join();
    throw InputError("{} threads: the system gave only {} ({}); ask for fewer", n_threads,
                     state_->workers.size() + 1, e.code().message());
  }
}

ThreadPool::~ThreadPool() { state_->join(); }

std::size_t ThreadPool::size() const { return state_->workers.size() + 1; }

void ThreadPool::for_each_block(std::size_t n_blocks,
                                const std::function<void(std::size_t, std::size_t)>& body) {
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    s.body = &body;
    s.n_blocks = n_blocks;
    s.next_block = 0;
    s.error = nullptr;
    s.running = s.workers.size();
    ++s.job;
  }
  s.wake.notify_all();
  s.take_blocks(0);
  std::unique_lock lock(s.mutex);
  s.done.wait(lock, [&] { return s.running == 0; });
  if (s.error) std::rethrow_exception(s.error);
}

}  // namespace deeptail
