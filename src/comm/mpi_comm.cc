// A message is one or more MPI requests, each of at most max_message_bytes; MPI keeps the order of messages of one tag.
// Small values of the host go by MPI's own collectives, which know the machine; their requests are waited for like a message's.
// MPI_Test on any request moves all of them, so nothing depends on the order of finish(). MPI returns its errors; they
// become Errors with MPI's own text.
#include "comm/mpi_comm.h"

#define OMPI_SKIP_MPICXX 1  // the C interface only
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <map>
#include <thread>

#include "base/machine.h"

namespace hlat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxRequest = 1ull << 30;   // bytes: MPI counts in int
constexpr int kRollCallTag = 2 * kUserTags;  // above those of all messages and collectives
constexpr int kSpins = 100;                  // tests before the first pause: a message that is nearly there
// Long messages move only while somebody tests, so one who waits for them just offers the core to others for a while. Overlapped with a
// computation (Overlap::hurry) there are pauses from the start: it has the better use for the core.
constexpr std::chrono::microseconds kEager{1000}, kFirstPause{20}, kLongestPause{200};

void check_mpi(int code, const std::string& what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  fail<FaultError>("{} on {}: MPI error {}: {}", what, host_name(), code, std::string_view(text.data(), static_cast<size_t>(length)));
}

struct Fragment {
  MPI_Request request = MPI_REQUEST_NULL;
  int bytes = 0;
};

constexpr int kAllPeers = -1;

struct Pending {
  std::vector<Fragment> fragments;
  int peer = kAllPeers;
  bool receives = false;
};

class MpiComm final : public Comm, private Overlap {
 public:
  using TimeLimit = std::shared_ptr<const std::atomic<double>>;

  MpiComm(MPI_Comm comm, bool owned, const MpiOptions& options, TimeLimit time_limit_s, int rank, int size, std::string name)
      : Comm(rank, size, std::move(name)), comm_(comm), owned_(owned), options_(options), time_limit_s_(std::move(time_limit_s)) {}
  ~MpiComm() override {
    if (owned_ && pending_.empty() && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
  }

  static std::unique_ptr<Comm> make(MPI_Comm comm, bool owned, const MpiOptions& options, TimeLimit time_limit_s, std::string name);
  std::unique_ptr<Comm> split(int color, int key, std::string name) override;
  void cancel() override { cancelled_ = true; }
  Overlap& overlap() override { return *this; }

 protected:
  uint64_t start_send(const void* data, size_t bytes, int peer, int tag) override {
    return start(bytes, {.fragments = {}, .peer = peer, .receives = false}, [&](size_t offset, int count, MPI_Request* request) {
      return MPI_Isend(static_cast<const std::byte*>(data) + offset, count, MPI_BYTE, peer, tag, comm_, request);
    });
  }
  uint64_t start_recv(void* data, size_t bytes, int peer, int tag) override {
    return start(bytes, {.fragments = {}, .peer = peer, .receives = true}, [&](size_t offset, int count, MPI_Request* request) {
      return MPI_Irecv(static_cast<std::byte*>(data) + offset, count, MPI_BYTE, peer, tag, comm_, request);
    });
  }
  void finish(uint64_t id) override;
  void do_all_gather_bytes(std::byte* all, size_t bytes) override {
    collective(bytes, [&](int count, MPI_Request* request) {
      return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count, MPI_BYTE, comm_, request);
    });
  }
  void do_broadcast_bytes(void* data, size_t bytes, int root) override {
    collective(bytes, [&](int count, MPI_Request* request) { return MPI_Ibcast(data, count, MPI_BYTE, root, comm_, request); });
  }

 private:
  void hurry(bool on) override { hurried_ = on; }

  template <class Post>
  uint64_t start(size_t bytes, Pending pending, const Post& post);
  template <class Post>
  void collective(size_t bytes, const Post& post);
  uint64_t add(Pending pending);
  void wait_for(Fragment& fragment, const Pending& message);
  int world_rank(int peer) const;

  MPI_Comm comm_;
  bool owned_;
  MpiOptions options_;
  TimeLimit time_limit_s_;
  std::atomic<bool> cancelled_ = false, hurried_ = true;
  std::map<uint64_t, Pending> pending_;
  uint64_t next_id_ = 1;
};

std::unique_ptr<Comm> MpiComm::make(MPI_Comm comm, bool owned, const MpiOptions& options, TimeLimit time_limit_s, std::string name) {
  int rank = 0, size = 0;
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), name);
  check_mpi(MPI_Comm_rank(comm, &rank), name);
  check_mpi(MPI_Comm_size(comm, &size), name);
  return std::make_unique<MpiComm>(comm, owned, options, std::move(time_limit_s), rank, size, std::move(name));
}

template <class Post>
uint64_t MpiComm::start(size_t bytes, Pending pending, const Post& post) {
  size_t offset = 0;
  do {  // an empty message is a message too
    Fragment fragment{.bytes = static_cast<int>(std::min(bytes - offset, options_.max_message_bytes))};
    check_mpi(post(offset, fragment.bytes, &fragment.request), where());
    pending.fragments.push_back(fragment);
    offset += static_cast<size_t>(fragment.bytes);
  } while (offset < bytes);
  return add(std::move(pending));
}

template <class Post>
void MpiComm::collective(size_t bytes, const Post& post) {
  HLAT_CHECK(bytes <= kMaxRequest, "{}: {} bytes of a small value", where(), bytes);
  Fragment fragment{.bytes = static_cast<int>(bytes)};
  check_mpi(post(fragment.bytes, &fragment.request), where());
  finish(add({.fragments = {fragment}}));
}

uint64_t MpiComm::add(Pending pending) {
  pending_.emplace(next_id_, std::move(pending));
  return next_id_++;
}

void MpiComm::finish(uint64_t id) {
  const auto found = pending_.find(id);
  HLAT_CHECK(found != pending_.end(), "{}: no message {} is under way", where(), id);
  for (Fragment& fragment : found->second.fragments) wait_for(fragment, found->second);
  pending_.erase(found);
}

void MpiComm::wait_for(Fragment& fragment, const Pending& message) {
  const auto start = Clock::now();
  auto pause = kFirstPause;
  const int only = message.peer == kAllPeers && size() == 2 ? 1 - rank() : message.peer;  // a collective of two has one peer
  const bool all = only == kAllPeers;
  const auto peer = [&] { return all ? "its peers" : fmt::format("rank {}", only); };
  for (int64_t tries = 0;; ++tries) {
    int done = 0;
    MPI_Status status;
    const int code = MPI_Test(&fragment.request, &done, &status);
    if (code != MPI_SUCCESS) check_mpi(code, fmt::format("{}, waiting for {}", where(), peer()));
    if (done != 0) {
      int got = fragment.bytes;
      if (message.receives) check_mpi(MPI_Get_count(&status, MPI_BYTE, &got), where());
      HLAT_CHECK(got == fragment.bytes, "{}: recv of {} bytes, rank {} sent {}", where(), fragment.bytes, message.peer, got);
      if (tries > kSpins) note_message();
      return;
    }
    if (tries < kSpins) continue;
    if (tries == kSpins && only != kAllPeers) note_peer(only);
    if (cancelled_) fail<FaultError>("{}: stopped, with {} to hear from: this rank gave up", where(), peer());
    const std::chrono::duration<double> waited = Clock::now() - start;
    if (const double limit_s = *time_limit_s_; waited.count() > limit_s) {
      const std::string who = all ? "one of them" : fmt::format("rank {} of the job: it", world_rank(only));
      fail<FaultError>("{} ({}): waited {:g} s for {}, {} is stopped, cut off or much slower than its peers", where(), host_name(), limit_s,
                       peer(), who);
    }
    if (hurried_ && waited < kEager) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 5 / 4, kLongestPause);
    }
  }
}

// A rank of this group among all ranks, as mpirun numbers them.
int MpiComm::world_rank(int peer) const {
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  int rank = peer;
  check_mpi(MPI_Comm_group(comm_, &group), where());
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), where());
  check_mpi(MPI_Group_translate_ranks(group, 1, &peer, world, &rank), where());
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return rank;
}

std::unique_ptr<Comm> MpiComm::split(int color, int key, std::string name) {
  HLAT_CHECK(color >= 0, "{}: split of {} with color {}", this->name(), name, color);
  MPI_Comm group = MPI_COMM_NULL;
  record_enter();
  check_mpi(MPI_Comm_split(comm_, color, key, &group), fmt::format("{}: split of {}", this->name(), name));
  record_leave();
  return make(group, true, options_, time_limit_s_, std::move(name));
}

void check_tags() {
  int* limit = nullptr;
  int known = 0;
  check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&limit), &known), "tags");
  if (known == 0 || *limit < 2 * kUserTags)
    fail<UsageError>("this MPI has tags up to {}; hlat needs {}", known != 0 ? *limit : 0, 2 * kUserTags);
}

}  // namespace

MpiSession::MpiSession(const MpiOptions& options) : exceptions_(std::uncaught_exceptions()) {
  HLAT_CHECK(0 < options.max_message_bytes && options.max_message_bytes <= kMaxRequest, "messages of {} bytes", options.max_message_bytes);
  // Open MPI's own blocking calls (start, split) offer the core too, unless the user said otherwise.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  int threads = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads), "MPI_Init_thread");
  if (threads < MPI_THREAD_MULTIPLE)
    fail<UsageError>("this MPI cannot be used from several threads (level {} of {})", threads, MPI_THREAD_MULTIPLE);
  check_tags();
  set_time_limit(options.time_limit_s);
  world_ = MpiComm::make(MPI_COMM_WORLD, false, options, time_limit_s_, "world");
}

std::string MpiSession::library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return {};
  const std::string all(text.data(), static_cast<size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));  // Open MPI adds how it was built
}

void MpiSession::set_time_limit(double seconds) { *time_limit_s_ = seconds; }

void MpiSession::send_roll_call(const RollCall& message, int to) {
  sent_.push_back(message);
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Isend(&sent_.back(), 2, MPI_INT, to, kRollCallTag, MPI_COMM_WORLD, &request) == MPI_SUCCESS) MPI_Request_free(&request);
}

// Errors of MPI are left to those who wait for the peer: here they are one more rank that does not answer.
void MpiSession::answer_roll_call(int number) {
  int there = 0;
  MPI_Status status;
  while (MPI_Iprobe(MPI_ANY_SOURCE, kRollCallTag, MPI_COMM_WORLD, &there, &status) == MPI_SUCCESS && there != 0) {
    RollCall got;
    if (MPI_Recv(&got, 2, MPI_INT, status.MPI_SOURCE, kRollCallTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    if (got.asks != 0)
      send_roll_call({.asks = 0, .number = number}, status.MPI_SOURCE);
    else if (static_cast<size_t>(status.MPI_SOURCE) < answers_.size())
      answers_[static_cast<size_t>(status.MPI_SOURCE)] = got.number;
  }
}

std::vector<int> MpiSession::call_roll(int number, double wait_s) {
  answers_.assign(static_cast<size_t>(world_->size()), -1);
  answers_[static_cast<size_t>(world_->rank())] = number;
  for (int r = 0; r < world_->size(); ++r)
    if (r != world_->rank()) send_roll_call({.asks = 1, .number = number}, r);
  for (const auto end = Clock::now() + std::chrono::duration<double>(wait_s); Clock::now() < end;) {
    answer_roll_call(number);
    if (std::find(answers_.begin(), answers_.end(), -1) == answers_.end()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return answers_;
}

MpiSession::~MpiSession() {
  world_.reset();
  if (std::uncaught_exceptions() == exceptions_) MPI_Finalize();
}

void MpiSession::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::abort();  // not reached: MPI_Abort ends this process
}

}  // namespace hlat
