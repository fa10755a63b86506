# Read by find_package(warpcc). warpcc.cmake, in the same folder, says what it does.
include("${CMAKE_CURRENT_LIST_DIR}/warpcc.cmake")
if(NOT WARPCC_PROGRAM)
  set(warpcc_FOUND FALSE)
  set(warpcc_NOT_FOUND_MESSAGE "There is no program warpcc beside ${CMAKE_CURRENT_LIST_DIR} or in PATH.")
endif()
