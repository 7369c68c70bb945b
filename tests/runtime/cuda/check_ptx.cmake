# cmake -DNVCC=... -DSOURCE=... -DBINARY=... -DLOG=... -P check_ptx.cmake: checks the code that nvcc
# makes of kernels.cu.
#
# - One entry for each body and type of bodies.inc, and no other. Its parameters are an FxCall, a
#   phase and a first unit.
# - No approximate instruction. A product and a sum are fused only by an fma() of the source. A
#   kernel without fma() has none.
# - No spills in any kernel, by the log of the plugin's build. The registers are listed.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND "${NVCC}" -std=c++20 -O3 --fmad=false -arch=compute_90 "-I${SOURCE}" -ptx "${SOURCE}/runtime/cuda/kernels.cu"
  -o "${BINARY}/kernels.ptx" RESULT_VARIABLE status ERROR_VARIABLE error)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${error}")
endif()
file(READ "${BINARY}/kernels.ptx" ptx)
set(faults "")

# The kernels that bodies.inc asks for.
file(READ "${SOURCE}/runtime/ops/kernels/bodies.inc" bodies)
string(REGEX MATCHALL "FX_(BODY|POINTWISE|REDUCTION)\\(([a-z_]+), (all|real)" rows "${bodies}")
set(wanted "")
foreach(row IN LISTS rows)
  string(REGEX MATCH "\\(([a-z_]+), (all|real)" match "${row}")
  set(body "${CMAKE_MATCH_1}")
  if(body STREQUAL "name")
    continue()
  endif()
  list(APPEND wanted "fx_${body}_f32" "fx_${body}_f64")
  if(CMAKE_MATCH_2 STREQUAL "all")
    list(APPEND wanted "fx_${body}_i64")
  endif()
endforeach()
string(REPLACE ";" "," ptx "${ptx}")
string(REPLACE "[" "(" ptx "${ptx}")
string(REPLACE "]" ")" ptx "${ptx}")
string(REGEX MATCHALL "\\.visible \\.entry ([a-z0-9_]+)\\(" entries "${ptx}")
set(found "")
foreach(entry IN LISTS entries)
  string(REGEX REPLACE "\\.visible \\.entry ([a-z0-9_]+)\\(" "\\1" name "${entry}")
  list(APPEND found "${name}")
endforeach()
list(SORT wanted)
list(SORT found)
if(NOT wanted STREQUAL found)
  string(APPEND faults "kernels are\n${found}\nand should be\n${wanted}\n")
endif()

# Each kernel.
string(REGEX REPLACE "\\.visible \\.entry " ";" parts "${ptx}")
list(POP_FRONT parts)
foreach(part IN LISTS parts)
  string(REGEX MATCH "^[a-z0-9_]+" name "${part}")
  string(REGEX REPLACE "\n\\{.*" "" head "${part}")
  string(REGEX MATCHALL "\\.param [^,\n]*" parameters "${head}")
  if(NOT parameters MATCHES "\\.param \\.align 8 \\.b8 [a-z0-9_]+\\(64\\).\\.param \\.u32 [a-z0-9_]+.\\.param \\.u64 [a-z0-9_]+$")
    string(APPEND faults "${name}: its parameters are ${parameters}\n")
  endif()
  # Without .rn, the assembler may fuse them.
  if(part MATCHES "[ \t](add|sub|mul)\\.f(32|64)")
    string(APPEND faults "${name}: ${CMAKE_MATCH_0} without .rn\n")
  endif()
  if(part MATCHES "\\.approx")
    string(APPEND faults "${name}: an approximate instruction\n")
  endif()
  if(name MATCHES "^fx_(add|sub|mul|le|where|copy|cat|fill|sum|amax|slice_backward|gather_rows|add_rows|masked_scale|dropout|nll_loss|nll_loss_backward)_" AND
      part MATCHES "fma\\.rn\\.f(32|64)[^\n]*")
    # A division is IEEE-correct and is div.rn in PTX. Only the assembler makes fma of it.
    string(APPEND faults "${name}: ${CMAKE_MATCH_0}, which the source does not say\n")
  endif()
endforeach()

# Registers and spills.
file(STRINGS "${LOG}" lines)
set(table "")
foreach(line IN LISTS lines)
  if(line MATCHES "Compiling entry function '([a-z0-9_]+)' for '(sm_[0-9]+)'")
    set(name "${CMAKE_MATCH_1}")
    set(target "${CMAKE_MATCH_2}")
  elseif(line MATCHES "([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads")
    if(NOT CMAKE_MATCH_1 EQUAL 0 OR NOT CMAKE_MATCH_2 EQUAL 0)
      string(APPEND faults "${name} ${target}: ${line}\n")
    endif()
  elseif(line MATCHES "Used ([0-9]+) registers")
    string(APPEND table "${name} ${target} ${CMAKE_MATCH_1}\n")
  endif()
endforeach()
file(WRITE "${BINARY}/registers.txt" "${table}")
list(LENGTH found count)
if(faults)
  message(FATAL_ERROR "${faults}")
endif()
message(STATUS "${count} kernels: nothing approximate, nothing joined that the source does not join, no spills; registers in ${BINARY}/registers.txt")
