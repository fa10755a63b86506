# Lets CUDA compiles of this folder and those below go through warpcc, where there is a warpcc:
#
#   find_package(warpcc QUIET)   # installed with the program
#   include(warpcc)              # or this file, copied into a project; its folder in CMAKE_MODULE_PATH
#
# Before the targets, and before or after CUDA is enabled. -DWARPCC=OFF leaves warpcc out, and WARPCC_PROGRAM names another
# one. Where there is none, or the project has a launcher of its own, nothing changes. CMake 3.18 and newer.

option(WARPCC "Compile CUDA through warpcc, where there is one" ON)

# A program that is gone would fail every compile.
if(WARPCC_PROGRAM AND NOT EXISTS "${WARPCC_PROGRAM}")
  unset(WARPCC_PROGRAM CACHE)
endif()
# share/cmake/warpcc is three folders below the prefix that has bin/warpcc.
find_program(WARPCC_PROGRAM NAMES warpcc HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin" DOC "The program warpcc")
mark_as_advanced(WARPCC_PROGRAM)

if(NOT WARPCC)
  # It may stand in the cache from an earlier run, or in the environment, where CMake looks when CUDA is enabled.
  if(CMAKE_CUDA_COMPILER_LAUNCHER MATCHES "(^|/)warpcc$")
    unset(CMAKE_CUDA_COMPILER_LAUNCHER CACHE)
    unset(CMAKE_CUDA_COMPILER_LAUNCHER)
  endif()
  if("$ENV{CMAKE_CUDA_COMPILER_LAUNCHER}" MATCHES "(^|/)warpcc$")
    unset(ENV{CMAKE_CUDA_COMPILER_LAUNCHER})
  endif()
elseif(WARPCC_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${WARPCC_PROGRAM}")
endif()
