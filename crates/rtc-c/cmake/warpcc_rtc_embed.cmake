# warpcc_rtc_embed: puts headers and LTO-IR into a target, for kernels that are compiled while the program runs.
#
#   warpcc_rtc_embed(app mylib::kernels
#     HEADERS include/mylib/a.cuh include/mylib/b.cuh     # included as <mylib/a.cuh>
#     BASE_DIR include                                    # default: the source folder
#     LTO functions.cu                                    # device functions; or a .fatbin or .ltoir
#     ARCHITECTURES 80 90                                 # default: CMAKE_CUDA_ARCHITECTURES
#     OPTIONS -std=c++20 -Iinclude)                       # for nvcc; -I and -isystem are relative to the source folder
#
# The target then has the header mylib_kernels.h with mylib::kernels(), a warpcc::rtc::bundle, for C++, and
# mylib_kernels_open() for C. The rule runs `warpcc rtc embed`, which compiles through warpcc's cache.
#
# WARPCC_EXECUTABLE names warpcc; WARPCC_RTC_NVCC, or CMAKE_CUDA_COMPILER if that is an nvcc, names the compiler.

function(_warpcc_rtc_find_embedder)
  if(WARPCC_EXECUTABLE)
    return()
  endif()
  find_program(WARPCC_EXECUTABLE warpcc HINTS "${WARPCC_RTC_PREFIX}/bin"
    DOC "warpcc, which makes embedded bundles (warpcc rtc embed)")
  if(NOT WARPCC_EXECUTABLE)
    message(FATAL_ERROR "warpcc_rtc_embed needs the program warpcc: put it into PATH, or set WARPCC_EXECUTABLE")
  endif()
endfunction()

cmake_policy(PUSH)
if(POLICY CMP0116)
  # Depfiles with absolute paths, for Ninja.
  cmake_policy(SET CMP0116 NEW)
endif()

function(warpcc_rtc_embed target name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "HEADERS;BASE_DIR;LTO;ARCHITECTURES;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "warpcc_rtc_embed: what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  if(NOT TARGET "${target}")
    message(FATAL_ERROR "warpcc_rtc_embed: ${target} is no target")
  endif()
  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)*$")
    message(FATAL_ERROR "warpcc_rtc_embed: ${name} is no name: write an identifier, or one in namespaces (mylib::kernels)")
  endif()
  if(NOT arg_HEADERS AND NOT arg_LTO)
    message(FATAL_ERROR "warpcc_rtc_embed: name HEADERS, or sources of device functions in LTO")
  endif()
  if(CMAKE_VERSION VERSION_LESS 3.20)
    message(FATAL_ERROR "warpcc_rtc_embed needs CMake 3.20: older ones do not know what the rule has read")
  endif()
  _warpcc_rtc_find_embedder()

  string(REPLACE "::" "_" symbol "${name}")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/warpcc_rtc_embed/${target}")
  set(bundle "${folder}/${symbol}.warpcc-bundle")
  set(header "${folder}/${symbol}.h")
  # The language that the project has.
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("C" IN_LIST languages)
    set(source "${folder}/${symbol}.c")
  elseif("CXX" IN_LIST languages)
    set(source "${folder}/${symbol}.cpp")
  else()
    message(FATAL_ERROR "warpcc_rtc_embed: the project has neither C nor CXX among its languages")
  endif()

  set(words)
  set(inputs)
  if(NOT arg_BASE_DIR)
    set(arg_BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  endif()
  foreach(base IN LISTS arg_BASE_DIR)
    get_filename_component(base "${base}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND words --base-dir "${base}")
  endforeach()
  if(arg_HEADERS)
    # Thousands of names would be too many for a command line.
    set(listed)
    foreach(file IN LISTS arg_HEADERS)
      get_filename_component(file "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
      list(APPEND inputs "${file}")
      string(APPEND listed "${file}\n")
    endforeach()
    set(list "${folder}/${symbol}.headers")
    # Written only if it changes: it is an input of the rule.
    set(known)
    if(EXISTS "${list}")
      file(READ "${list}" known)
    endif()
    if(NOT known STREQUAL listed)
      file(WRITE "${list}" "${listed}")
    endif()
    list(APPEND words --headers-from "${list}")
    list(APPEND inputs "${list}")
  endif()
  foreach(file IN LISTS arg_LTO)
    get_filename_component(file "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND inputs "${file}")
    list(APPEND words --lto "${file}")
  endforeach()
  if(arg_LTO)
    if(NOT arg_ARCHITECTURES)
      set(arg_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES})
    endif()
    foreach(architecture IN LISTS arg_ARCHITECTURES)
      list(APPEND words --arch "${architecture}")
    endforeach()
    foreach(option IN LISTS arg_OPTIONS)
      list(APPEND words "--option=${option}")
    endforeach()
    if(WARPCC_RTC_NVCC)
      list(APPEND words --nvcc "${WARPCC_RTC_NVCC}")
    elseif(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA")
      list(APPEND words --nvcc "${CMAKE_CUDA_COMPILER}")
    endif()
  endif()

  # What nvcc reads. Without a source to compile there would be an empty file, and ninja would ask for it for ever.
  set(depfile)
  list(FILTER arg_LTO EXCLUDE REGEX "\\.(fatbin|ltoir)$")
  if(arg_LTO)
    list(APPEND words --depfile "${bundle}.d")
    set(depfile DEPFILE "${bundle}.d")
  endif()

  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(
    OUTPUT "${bundle}" "${source}" "${header}"
    COMMAND "${WARPCC_EXECUTABLE}" rtc embed ${words} --output "${bundle}"
      --accessor "${name}" --c-source "${source}" --c-header "${header}"
    DEPENDS ${inputs} "${WARPCC_EXECUTABLE}" ${WARPCC_RTC_EMBEDDER_TARGET}
    ${depfile}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMENT "Embedding ${name}"
    VERBATIM)
  # The assembler's text is not seen by link-time optimization.
  set_source_files_properties("${source}" PROPERTIES
    OBJECT_DEPENDS "${bundle}" COMPILE_OPTIONS "-fno-lto" SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources("${target}" PRIVATE "${source}" "${header}")
  target_include_directories("${target}" PRIVATE "${folder}")
endfunction()

cmake_policy(POP)
