# Compares the headers that expand to the most lines with the counts in headers.txt. Fails if one
# has grown by more than a tenth.
#
# cmake -DCXX=... -DROOT=... -DGENERATED=... [-DBLESS=ON] -P check_headers.cmake
# -DBLESS=ON measures all headers and writes the ten largest to headers.txt.
set(list "${CMAKE_CURRENT_LIST_DIR}/headers.txt")

function(count_lines header result)
  execute_process(COMMAND "${CXX}" -std=c++20 -E -P -x c++ "-I${ROOT}" "-I${GENERATED}" "${ROOT}/${header}"
    COMMAND wc -l OUTPUT_VARIABLE count ERROR_VARIABLE errors RESULTS_VARIABLE status)
  if(NOT status STREQUAL "0;0")
    message(FATAL_ERROR "${header} does not compile alone: ${errors}")
  endif()
  string(STRIP "${count}" count)
  set(${result} ${count} PARENT_SCOPE)
endfunction()

if(BLESS)
  set(rows "")
  foreach(room core ir passes runtime cli)
    file(GLOB_RECURSE headers RELATIVE "${ROOT}" "${ROOT}/${room}/*.h")
    list(FILTER headers EXCLUDE REGEX "^runtime/(cuda|ops/kernels)/")
    foreach(header IN LISTS headers)
      count_lines("${header}" count)
      math(EXPR sortable "1000000 + ${count}")
      list(APPEND rows "${sortable} ${header}")
    endforeach()
  endforeach()
  list(SORT rows ORDER DESCENDING)
  list(SUBLIST rows 0 10 rows)
  string(REGEX REPLACE "10*([0-9]+ [^;]*)" "\\1" rows "${rows}")
  string(REPLACE ";" "\n" rows "${rows}")
  file(WRITE "${list}" "${rows}\n")
endif()

file(STRINGS "${list}" rows)
set(grown "")
foreach(row IN LISTS rows)
  string(REGEX MATCH "^([0-9]+) (.*)$" row "${row}")
  set(allowed ${CMAKE_MATCH_1})
  set(header ${CMAKE_MATCH_2})
  count_lines("${header}" count)
  message(STATUS "${count} lines of ${allowed}: ${header}")
  math(EXPR most "${allowed} * 11 / 10")
  if(count GREATER most)
    string(APPEND grown "\n  ${header}: ${count} lines, ${allowed} before")
  endif()
endforeach()
if(grown)
  message(FATAL_ERROR "headers bring a tenth more lines into each file that includes them:${grown}\n"
    "Declare types forward, or include in the .cpp file. With a reason, write headers.txt anew (-DBLESS=ON).")
endif()
