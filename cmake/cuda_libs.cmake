# cuDNN for the CUDA backend's attention: its headers and its header-only frontend, from the toolkit or from pip packages in .venv-build
# (tools/setup_cuda.sh). Without them attention runs on our own kernels. NCCL for ranks with a GPU each: its header, from the toolkit.
# Without it they exchange tensors through host memory. None of cuDNN, cuBLASLt and NCCL is linked: they are loaded when first used,
# so hlat starts without them.
# Sets HLAT_CUDNN_LEFT_OUT: of the two cudnn_attention files, the one not to build. Likewise HLAT_NCCL_LEFT_OUT, a pattern.
file(GLOB HLAT_CUDNN_PACKAGES ${PROJECT_SOURCE_DIR}/.venv-build/lib/python3*/site-packages)
find_path(HLAT_CUDNN_FRONTEND cudnn_frontend.h HINTS ${HLAT_CUDNN_PACKAGES} PATH_SUFFIXES include)
find_path(HLAT_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${HLAT_CUDNN_PACKAGES} PATH_SUFFIXES nvidia/cudnn/include)
if(HLAT_CUDNN_FRONTEND AND HLAT_CUDNN_INCLUDE)
  target_include_directories(hlat_cuda SYSTEM INTERFACE ${HLAT_CUDNN_FRONTEND} ${HLAT_CUDNN_INCLUDE})
  set(HLAT_CUDNN_LEFT_OUT cudnn_attention_none.cc)
else()
  message(STATUS "hlat: without cuDNN (tools/setup_cuda.sh installs its headers): attention on our own kernels")
  set(HLAT_CUDNN_LEFT_OUT cudnn_attention.cc)
endif()
find_path(HLAT_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${HLAT_CUDNN_PACKAGES} PATH_SUFFIXES nvidia/nccl/include)
if(HLAT_NCCL_INCLUDE)
  target_include_directories(hlat_cuda SYSTEM INTERFACE ${HLAT_NCCL_INCLUDE})
  target_compile_definitions(hlat_cuda INTERFACE HLAT_HAVE_NCCL)
  set(HLAT_NCCL_LEFT_OUT no_nccl.cc)
else()
  message(STATUS "hlat: without NCCL (no nccl.h): ranks on GPUs exchange tensors through host memory")
  set(HLAT_NCCL_LEFT_OUT "nccl_[a-z]*.cc")
endif()
