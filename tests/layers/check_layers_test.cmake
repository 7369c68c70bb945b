# Runs check_layers.cmake over bad/, where every line that ends in '// forbidden' must be reported and no other.
cmake_minimum_required(VERSION 3.25)

set(root "${CMAKE_CURRENT_LIST_DIR}/bad")
execute_process(
  COMMAND "${CMAKE_COMMAND}" "-DROOT=${root}" -P "${CMAKE_CURRENT_LIST_DIR}/check_layers.cmake"
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)

set(expected "")
file(GLOB_RECURSE files LIST_DIRECTORIES false RELATIVE "${root}" "${root}/*.h" "${root}/*.cpp")
foreach(file IN LISTS files)
  file(STRINGS "${root}/${file}" lines)
  set(line_number 0)
  foreach(line IN LISTS lines)
    math(EXPR line_number "${line_number} + 1")
    if(line MATCHES "// forbidden$")
      list(APPEND expected "${file}:${line_number}:")
    endif()
  endforeach()
endforeach()

string(REGEX MATCHALL "[a-z_/]+\\.(h|cpp):[0-9]+:" reported "${output}")
list(FILTER reported EXCLUDE REGEX "check_layers")
list(SORT expected)
list(SORT reported)
if(status EQUAL 0 OR NOT expected OR NOT reported STREQUAL expected)
  message(FATAL_ERROR "expected: ${expected}\nreported: ${reported}\nstatus: ${status}\noutput:\n${output}")
endif()
list(LENGTH expected count)
message(STATUS "${count} forbidden lines, all reported, nothing else was")
