#include "backend/cuda/cuda_backend.h"

#include <unistd.h>

#include <fstream>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_ops.h"
#include "base/format.h"

namespace hlat {

namespace {

// The kernel module's own version; the runtime knows only which CUDA the driver supports.
std::string driver_version() {
  std::string version;
  if (std::ifstream("/sys/module/nvidia/version") >> version) return version;
  int supported = 0;
  HLAT_CUDA(cudaDriverGetVersion(&supported));
  return fmt::format("for CUDA {}.{}", supported / 1000, supported % 1000 / 10);
}

}  // namespace

int cuda_device_count() { return ask_cuda().count; }

CudaAnswer ask_cuda() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return {.count = count};
  using Start = CudaAnswer::Start;
  CudaAnswer answer{.start = status == cudaErrorNoDevice             ? Start::no_gpu
                             : status == cudaErrorInsufficientDriver ? Start::old_driver
                                                                     : Start::failed};
  answer.error = fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
  if (status == cudaErrorSystemNotReady) answer.error += "; where GPUs are joined by NVSwitch, nvidia-fabricmanager has to run";
  if (cudaDriverGetVersion(&answer.driver_cuda) != cudaSuccess) answer.driver_cuda = 0;
  if (cudaRuntimeGetVersion(&answer.program_cuda) != cudaSuccess) answer.program_cuda = 0;
  answer.kernel_module = access("/dev/nvidiactl", F_OK) == 0;
  cudaGetLastError();
  return answer;
}

GpuFacts gpu_facts(int device) {
  cudaDeviceProp properties{};
  HLAT_CUDA(cudaGetDeviceProperties(&properties, device));
  return {.name = properties.name, .major = properties.major, .minor = properties.minor, .shared_bytes = properties.sharedMemPerBlockOptin};
}

GpuCode cuda_code() { return parse_architectures(HLAT_CUDA_ARCHITECTURES); }

CudaBackend::CudaBackend(const CudaOptions& options)
    : device_(std::make_unique<CudaDevice>(options.device, options.host_visible, options.spare_bytes)),
      context_(std::make_shared<CudaContext>(options.device, gpu_facts(options.device), device_->stream(), options.cache_dir,
                                             options.deterministic)) {}

CudaBackend::~CudaBackend() = default;

Device& CudaBackend::device() { return *device_; }

std::unique_ptr<Ops> CudaBackend::make_ops(Region& temp) {
  device_->use();
  return std::make_unique<CudaOps>(temp, context_, context_->matmul);
}

std::unique_ptr<Ops> CudaBackend::make_inference_ops(Region& temp) {
  device_->use();
  if (context_->inference_matmul == nullptr)
    context_->inference_matmul = std::make_unique<CudaMatmul>(context_->stream, "", CudaMatmul::Use::inference);
  return std::make_unique<CudaOps>(temp, context_, *context_->inference_matmul);
}

std::string CudaBackend::describe() const {
  cudaDeviceProp properties{};
  HLAT_CUDA(cudaGetDeviceProperties(&properties, context_->device));
  int runtime = 0;
  HLAT_CUDA(cudaRuntimeGetVersion(&runtime));
  return fmt::format("{}, CUDA {}.{}, driver {}, {}; {}, {}", static_cast<const char*>(properties.name), runtime / 1000,
                     runtime % 1000 / 10, driver_version(), format_bytes(properties.totalGlobalMem), context_->matmul.describe(),
                     context_->attention.describe());
}

CudaOps::~CudaOps() {
  for (const cudaEvent_t mark : events_) cudaEventDestroy(mark);
}

size_t CudaOps::mark_time() {
  if (marked_ == events_.size()) HLAT_CUDA(cudaEventCreate(&events_.emplace_back()));
  HLAT_CUDA(cudaEventRecord(events_[marked_], stream()));
  return marked_++;
}

double CudaOps::seconds_between(size_t from, size_t to) {
  float milliseconds = 0;
  HLAT_CUDA(cudaEventElapsedTime(&milliseconds, events_[from], events_[to]));
  return 1e-3 * static_cast<double>(milliseconds);
}

std::string CudaBackend::device_id() const {
  cudaDeviceProp properties{};
  HLAT_CUDA(cudaGetDeviceProperties(&properties, context_->device));
  std::string id = "GPU-";
  for (const char byte : properties.uuid.bytes) id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return id;
}

std::string CudaBackend::kernel_choices() const {
  KernelsByLibrary kernels = context_->matmul.kernels();
  kernels.merge(context_->attention.kernels());
  return kernel_choices_text({{context_->matmul.gpu(), std::move(kernels)}});
}

std::vector<std::string> CudaBackend::use_kernel_choices(const std::string& json) {
  std::vector<std::string> libraries = context_->attention.libraries();
  libraries.insert(libraries.begin(), context_->matmul.library());
  FittingChoices fitting = fitting_choices(parse_kernel_choices(json), context_->matmul.gpu(), libraries);
  context_->matmul.use(fitting.kernels);
  for (std::string& line : context_->attention.use(fitting.kernels)) fitting.lines.push_back(std::move(line));
  return fitting.lines;
}

std::vector<std::string> CudaBackend::take_kernel_notes() {
  std::vector<std::string> notes = context_->matmul.take_notes();
  for (std::string& note : context_->attention.take_notes()) notes.push_back(std::move(note));
  for (std::string& note : device_->take_notes()) notes.push_back(std::move(note));
  if (context_->inference_matmul != nullptr)
    for (std::string& note : context_->inference_matmul->take_notes()) notes.push_back(std::move(note));
  return notes;
}

int CudaBackend::index() const { return device_->index(); }

void* CudaBackend::stream() const { return device_->stream(); }

void CudaOps::finish() { HLAT_CUDA(cudaStreamSynchronize(stream())); }

}  // namespace hlat
