// Choosing an algorithm by time: all proposals briefly, then variations of the best, then those that came near the best for longer.
// A large GPU is limited by its power: under load its clock sinks, by a quarter on an H200, until it draws what it may. The order of
// algorithms then changes: what counts is the energy of a product. One that fetches less from memory may be slower when it runs alone
// for a moment and faster in a step. So the brief runs only exclude, and each finalist runs until its time no longer changes: until the
// clock is where its own power puts it.
#include <algorithm>
#include <cmath>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/matmul/matmul_problem.h"

namespace hlat {

namespace {

constexpr size_t kFinalists = 12, kVaried = 3;
constexpr double kNear = 1.08;                             // of the best brief time: who is a finalist
constexpr double kBrief = 500, kLong = 50e3, kLess = 5e3;  // microseconds
constexpr double kLarge = 100;      // microseconds of a product: what is done sooner seldom keeps a device busy for long, and runs for less
constexpr int kMost = 8;            // of those times until the last is taken as it is
constexpr double kSettled = 0.004;  // relative change
constexpr double kBetter = 0.995;   // what must be gained over the library's favourite

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {
    HLAT_CUDA(cudaEventCreate(&begin_));
    HLAT_CUDA(cudaEventCreate(&end_));
  }
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  template <class Work>
  double microseconds(int times, const Work& work) {
    HLAT_CUDA(cudaEventRecord(begin_, stream_));
    for (int i = 0; i < times; ++i) work();
    HLAT_CUDA(cudaEventRecord(end_, stream_));
    HLAT_CUDA(cudaEventSynchronize(end_));
    float milliseconds = 0;
    HLAT_CUDA(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return 1000.0 * static_cast<double>(milliseconds) / times;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// Memory for results that must not reach c.
class Spare {
 public:
  explicit Spare(size_t bytes) {
    if (cudaMalloc(&data_, bytes) == cudaSuccess) return;
    cudaGetLastError();
    data_ = nullptr;
  }
  ~Spare() { cudaFree(data_); }
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

class Race {
 public:
  Race(const MatmulProblem& problem, const MatmulOperands& x, void* d, cudaStream_t stream)
      : problem_(problem), x_(x), d_(d), watch_(stream) {}

  // Short runs of each; those that do not run are left out. Told: those that failed.
  void enter(const std::vector<MatmulChoice>& choices, Measured& told) {
    std::vector<MatmulChoice> running;
    for (MatmulChoice c : choices) {
      const cublasStatus_t status = problem_.call(algo_of(c), d_, x_);  // also loads the kernel
      if (status != CUBLAS_STATUS_SUCCESS) {
        if (!is_refusal(status) && told.failures++ == 0) told.failed = status;
        continue;
      }
      c.microseconds = time(c, 1);
      running.push_back(c);
    }
    for (auto c = running.rbegin(); c != running.rend(); ++c) c->microseconds = time(*c, times(*c, kBrief));
    for (MatmulChoice& c : running) c.microseconds += time(c, times(c, kBrief));
    for (MatmulChoice& c : running) c.microseconds /= 2;
    entered_.insert(entered_.end(), running.begin(), running.end());
    std::stable_sort(entered_.begin(), entered_.end(), faster);
  }

  const std::vector<MatmulChoice>& entered() const { return entered_; }

  // favourite: what is taken unless another is clearly faster.
  MatmulChoice finish(const MatmulChoice& favourite) {
    std::vector<MatmulChoice> best;
    for (const MatmulChoice& c : entered_)
      if (c.algo == favourite.algo || (best.size() < kFinalists && c.microseconds <= kNear * entered_[0].microseconds)) best.push_back(c);
    const double window = entered_[0].microseconds < kLarge ? kLess : kLong;
    for (MatmulChoice& c : best) c.microseconds = settled(c, window);
    const MatmulChoice winner = *std::min_element(best.begin(), best.end(), faster);
    const auto rival = std::find_if(best.begin(), best.end(), [&](const MatmulChoice& c) { return c.algo == favourite.algo; });
    return rival != best.end() && winner.microseconds > kBetter * rival->microseconds ? *rival : winner;
  }

 private:
  static bool faster(const MatmulChoice& x, const MatmulChoice& y) { return x.microseconds < y.microseconds; }
  // How many runs fill a time.
  static int times(const MatmulChoice& c, double microseconds) {
    return std::max(1, static_cast<int>(microseconds / std::max(c.microseconds, 1.0)));
  }
  // The time of one run when runs follow each other for long.
  double settled(const MatmulChoice& c, double window) {
    double last = time(c, times(c, window));
    for (int i = 1; i < kMost; ++i) {
      const double now = time(c, times(c, window)), change = std::abs(now - last) / last;
      last = now;
      if (change < kSettled) break;
    }
    return last;
  }
  double time(const MatmulChoice& c, int count) {
    const cublasLtMatmulAlgo_t algo = algo_of(c);
    return watch_.microseconds(count, [&] { HLAT_CUBLASLT(problem_.call(algo, d_, x_)); });
  }

  const MatmulProblem& problem_;
  const MatmulOperands& x_;
  void* d_;
  Stopwatch watch_;
  std::vector<MatmulChoice> entered_;
};

}  // namespace

Measured measure(const std::vector<MatmulChoice>& candidates, const MatmulProblem& problem, const MatmulOperands& x, bool accumulate,
                 cudaStream_t stream) {
  Measured m;
  const size_t extent = static_cast<size_t>((x.c.dim(0) - 1) * x.c.stride[0] + x.c.dim(1)) * size_of(x.c.dtype);
  const Spare spare(accumulate ? extent : 0);
  if (accumulate && spare.data() == nullptr) {  // memory is short: the library's favourite
    m.best = candidates.front();
    return m;
  }
  Race race(problem, x, accumulate ? spare.data() : x.c.data, stream);
  race.enter(candidates, m);
  if (race.entered().empty()) {
    if (m.failures > 0) m.best = candidates.front();  // its own call tells what is wrong, if it still is
    return m;
  }
  std::vector<MatmulChoice> more;
  for (size_t i = 0; i < std::min(kVaried, race.entered().size()); ++i)
    for (const MatmulChoice& c : problem.neighbours(race.entered()[i], x.workspace_bytes)) {
      const auto same = [&](const MatmulChoice& other) { return other.algo == c.algo; };
      if (std::none_of(candidates.begin(), candidates.end(), same) && std::none_of(more.begin(), more.end(), same)) more.push_back(c);
    }
  Measured varied;  // not proposed by the library: nobody misses them
  race.enter(more, varied);
  m.best = race.finish(candidates.front());
  return m;
}

}  // namespace hlat
