# Writes tasks/published.json into published_text.cc, a source of the build folder, for comparisons.
set(HLAT_PUBLISHED ${PROJECT_SOURCE_DIR}/tasks/published.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${HLAT_PUBLISHED})
set(HLAT_PUBLISHED_TEXT ${PROJECT_BINARY_DIR}/generated/published_text.cc)
file(READ ${HLAT_PUBLISHED} text)
file(WRITE ${HLAT_PUBLISHED_TEXT}.new "#include \"eval/published.h\"\n\nnamespace hlat {\n
std::string_view published_text() {\n  return R\"json(${text})json\";\n}\n\n}  // namespace hlat\n")
configure_file(${HLAT_PUBLISHED_TEXT}.new ${HLAT_PUBLISHED_TEXT} COPYONLY)  # which leaves a source alone that did not change
