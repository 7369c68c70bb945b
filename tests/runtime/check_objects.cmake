# cmake -DNM=PROGRAM "-DOBJECTS=FILE;..." -P check_objects.cmake: fails where an object of kernels defines more than its one table. A
# function that the linker took from the object of another instruction set would end the program on a machine without that.
cmake_minimum_required(VERSION 3.25)

foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND "${NM}" --defined-only --extern-only "${object}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(STRIP "${symbols}" symbols)
  string(REPLACE "\n" ";" symbols "${symbols}")
  list(LENGTH symbols count)
  if(NOT count EQUAL 1 OR NOT symbols MATCHES " T fxopt_cpu_kernels_[a-z0-9]+$")
    message(FATAL_ERROR "${object} defines ${count} symbols, not one table:\n${symbols}")
  endif()
endforeach()
list(LENGTH OBJECTS count)
message(STATUS "${count} objects, one symbol each")
