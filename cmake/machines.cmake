# Writes machines/*.yaml into embedded_machines.cc, a source of the build folder: `hlat plan` has its machines wherever it runs.
file(GLOB HLAT_MACHINE_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/machines/*.yaml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${HLAT_MACHINE_FILES})
set(HLAT_EMBEDDED_MACHINES ${PROJECT_BINARY_DIR}/generated/embedded_machines.cc)
list(LENGTH HLAT_MACHINE_FILES count)
file(WRITE ${HLAT_EMBEDDED_MACHINES}.new "#include <array>\n\n#include \"plan/machine_library.h\"\n\nnamespace hlat {\n
std::span<const EmbeddedMachine> embedded_machines() {\n  static constexpr std::array<EmbeddedMachine, ${count}> machines = {{\n")
foreach(path ${HLAT_MACHINE_FILES})
  get_filename_component(name ${path} NAME_WLE)
  file(READ ${path} text)
  # A compiler need not take literals of more than 64 KiB; a machine file is well below it.
  file(APPEND ${HLAT_EMBEDDED_MACHINES}.new "{\"${name}\", R\"yaml(")
  file(APPEND ${HLAT_EMBEDDED_MACHINES}.new "${text}")
  file(APPEND ${HLAT_EMBEDDED_MACHINES}.new ")yaml\"},\n")
endforeach()
file(APPEND ${HLAT_EMBEDDED_MACHINES}.new "  }};\n  return machines;\n}\n\n}  // namespace hlat\n")
configure_file(${HLAT_EMBEDDED_MACHINES}.new ${HLAT_EMBEDDED_MACHINES} COPYONLY)  # which leaves a source alone that did not change
