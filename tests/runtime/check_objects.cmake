# cmake -DNM=PROGRAM "-DOBJECTS=FILE;..." -P check_objects.cmake
#
# Fails if an object of kernels defines any symbol besides its one table. The linker could take such
# a function for the whole program, and it would crash on a machine without the instruction set of
# the object.
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
