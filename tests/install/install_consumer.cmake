# cmake -DBUILD=... -DINPUT=... -DGENERATOR=... -DCXX=... -DSANITIZE=... -P install_consumer.cmake:
# installs BUILD, builds a program of another project with it, and compares the program's output
# with the installed command's.
cmake_minimum_required(VERSION 3.25)

set(work "${BUILD}/install_consumer")
set(prefix "${work}/prefix")
set(passes "canonicalize,cse,remat,dce")
file(REMOVE_RECURSE "${work}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nends with ${code}:\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

set(flags "")
if(SANITIZE)
  set(flags "-fsanitize=${SANITIZE}")
endif()
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/consumer" -B "${work}/build" -G "${GENERATOR}"
  "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_FLAGS=${flags}")
run("${CMAKE_COMMAND}" --build "${work}/build")

run("${prefix}/bin/fxopt" opt "${INPUT}" --passes "${passes}" -o "${work}/out.pb")
run("${prefix}/bin/fxopt" verify "${work}/out.pb")
string(REGEX MATCH "[0-9]+ nodes" expected "${output}")
run("${work}/build/consumer" "${INPUT}" "${passes}")
string(STRIP "${output}" output)
if(NOT expected OR NOT output STREQUAL expected)
  message(FATAL_ERROR "the program says '${output}', the command '${expected}'")
endif()

# Each header finds its includes among the installed ones, and none needs protobuf, nlohmann or
# spdlog.
file(GLOB_RECURSE headers RELATIVE "${prefix}/include/fxopt" "${prefix}/include/fxopt/*.h")
set(includes "")
foreach(header IN LISTS headers)
  file(STRINGS "${prefix}/include/fxopt/${header}" found REGEX "google::protobuf|#include.*(pb\\.h|nlohmann|spdlog)")
  if(found)
    message(FATAL_ERROR "${header} shows what its users may lack: ${found}")
  endif()
  string(APPEND includes "#include \"${header}\"\n")
endforeach()
file(WRITE "${work}/headers.cpp" "${includes}")
run("${CXX}" -std=c++20 -fsyntax-only "-I${prefix}/include/fxopt" "${work}/headers.cpp")
foreach(file share/fxopt/schemas/fxgraph.proto include/fxopt/core/version.h)
  if(NOT EXISTS "${prefix}/${file}")
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()
