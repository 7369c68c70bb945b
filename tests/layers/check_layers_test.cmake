# Runs check_layers.cmake over bad/. It must report exactly the lines that end in '// forbidden'.
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
# A stray file at the top level and no other error.
set(stray "${CMAKE_CURRENT_BINARY_DIR}/stray_at_the_top")
file(REMOVE_RECURSE "${stray}")
file(WRITE "${stray}/core/empty.h" "")
foreach(name racy0.fxg "")
  if(name)
    file(WRITE "${stray}/${name}" "")
  else()
    file(REMOVE "${stray}/racy0.fxg")
  endif()
  execute_process(
    COMMAND "${CMAKE_COMMAND}" "-DROOT=${stray}" -P "${CMAKE_CURRENT_LIST_DIR}/check_layers.cmake"
    RESULT_VARIABLE status
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if((name AND (status EQUAL 0 OR NOT output MATCHES "racy0.fxg")) OR (NOT name AND NOT status EQUAL 0))
    message(FATAL_ERROR "a stray file '${name}' at the top level: status ${status}\n${output}")
  endif()
endforeach()
file(REMOVE_RECURSE "${stray}")
list(LENGTH expected count)
message(STATUS "${count} forbidden lines, all reported, nothing else was")
