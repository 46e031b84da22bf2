# Writes tasks/*.yaml into embedded_tasks.cc, a source of the build folder: `hlat eval` has its tasks wherever it runs.
file(GLOB HLAT_TASK_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tasks/*.yaml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${HLAT_TASK_FILES})
set(HLAT_EMBEDDED_TASKS ${PROJECT_BINARY_DIR}/generated/embedded_tasks.cc)
list(LENGTH HLAT_TASK_FILES count)
file(WRITE ${HLAT_EMBEDDED_TASKS}.new "#include \"task/embedded_tasks.h\"\n\n#include <array>\n\nnamespace hlat {\n
std::span<const EmbeddedTask> embedded_tasks() {\n  static constexpr std::array<EmbeddedTask, ${count}> tasks = {{\n")
foreach(path ${HLAT_TASK_FILES})
  get_filename_component(name ${path} NAME_WE)
  file(READ ${path} text)
  file(APPEND ${HLAT_EMBEDDED_TASKS}.new "{\"${name}\", R\"yaml(")
  file(APPEND ${HLAT_EMBEDDED_TASKS}.new "${text}")
  file(APPEND ${HLAT_EMBEDDED_TASKS}.new ")yaml\"},\n")
endforeach()
file(APPEND ${HLAT_EMBEDDED_TASKS}.new "  }};\n  return tasks;\n}\n\n}  // namespace hlat\n")
configure_file(${HLAT_EMBEDDED_TASKS}.new ${HLAT_EMBEDDED_TASKS} COPYONLY)  # which leaves a source alone that did not change
