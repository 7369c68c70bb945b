# cmake -DROOT=FOLDER -P check_layers.cmake: fails, with file and line, on
# - every #include that the layers forbid;
# - every class that a second header defines in the same namespace: neither compiler nor linker
#   reports two classes of one name in one program;
# - every entry at the top level that is not in the fixed list.
#
# Only includes in the tables below are allowed. Headers of the C++ standard library, which have no
# '.' and no '/', are allowed everywhere, except <iostream>: only cli prints.
cmake_minimum_required(VERSION 3.25)

# The folders whose headers a folder may include.
set(allowed_core core)
set(allowed_ir ir core)
set(allowed_passes passes ir core)
set(allowed_runtime runtime ir core)
set(allowed_cli cli passes runtime ir core)
set(allowed_tests tests cli passes runtime ir core)
set(folders core schemas ir passes runtime cli tests)

# Rooms are the subfolders of a folder. Each row lists the rooms of the same folder whose headers a
# room may include, besides its own. A room without a row is an error. Rows are in bottom-up order,
# which is a good order to read the code in.
set(inner core ir passes runtime cli)
set(rooms_core "")
set(rooms_core/allocator core)
set(rooms_core/arena core)
set(rooms_ir/ops "")
set(rooms_ir/graph ir/ops)
set(rooms_ir/values ir/graph ${rooms_ir/graph})
set(rooms_ir/io ir/graph ir/cost ${rooms_ir/graph})         # from ir/cost only the measurement, a plain struct
set(rooms_ir/check ir/values ${rooms_ir/values})
set(rooms_ir/alias ir/values ${rooms_ir/values})       # shared memory, writes, order
set(rooms_ir/step ir/alias ${rooms_ir/alias})          # phase, role and tag of a node
set(rooms_ir/ranks ir/alias ${rooms_ir/alias})         # whether the collectives of several ranks match
set(rooms_ir/check/equivalence ir/step ${rooms_ir/step})  # whether two modules compute the same
set(rooms_ir/device ir/alias ${rooms_ir/alias})
set(rooms_ir/cost ir/device ${rooms_ir/device})           # work and seconds of calls
set(rooms_ir/memory ir/cost ir/step ${rooms_ir/cost} ${rooms_ir/step})
set(rooms_ir/summary ir/memory ${rooms_ir/memory})     # contents of reports
set(rooms_ir ir/check ir/io ${rooms_ir/check})           # prepare.h, the only entry point
set(rooms_passes/pass "")
set(rooms_passes/clean passes/pass)
set(rooms_passes/tag passes/pass)
set(rooms_passes/collective passes/pass passes/clean)  # equal gathers are merged as cse merges
set(rooms_passes/recompute passes/pass)
set(rooms_passes/partition passes/pass passes/clean passes/recompute)  # cuts the output of remat
set(rooms_passes/pipeline passes/pass passes/clean passes/tag passes/collective passes/recompute passes/partition)
set(rooms_passes/reduce passes/pipeline)
set(rooms_runtime/abi "")                                # C, shared with plugins of other compilers
set(rooms_runtime/plan runtime/abi)
set(rooms_runtime/ops runtime/plan runtime/abi)        # operator facts for all devices
set(rooms_runtime/ops/kernels runtime/abi)               # kernel bodies: no library, fit for devices
set(rooms_runtime/cpu runtime/ops/kernels runtime/abi)
set(rooms_runtime/cuda runtime/ops/kernels runtime/abi)  # not linked: a separate shared library
set(rooms_runtime/run runtime/cpu runtime/ops runtime/ops/kernels runtime/plan runtime/abi)
set(rooms_cli/print "")
set(rooms_cli/report/memory cli/print)
set(rooms_cli/report cli/print cli/report/memory)
set(rooms_cli cli/print cli/report/memory cli/report)

# External headers: a name, a regular expression for the headers, and another for the files that may
# include them.
set(outside protobuf json cli11 log boost xxhash zstd hash_table catch2 iostream posix allocator cuda c simd sanitizer)
set(headers_protobuf "^google/protobuf/|\\.pb\\.h$")
set(files_protobuf "^ir/io/.*\\.cpp$|^tests/.*\\.cpp$")
set(headers_json "^nlohmann/")
set(files_json "^ir/io/.*\\.cpp$|^cli/|^tests/.*\\.cpp$")
set(headers_cli11 "^CLI/")
set(files_cli11 "^cli/")
set(headers_log "^(spdlog|fmt)/")
set(files_log "^core/.*\\.cpp$")
set(headers_boost "^boost/")
set(files_boost "^core/min_cut\\.cpp$|^runtime/cpu/threads\\.cpp$|^tests/runtime/cuda/emulation\\.cpp$|^ir/graph/records\\.h$")
set(headers_xxhash "^xxhash\\.h$")
set(files_xxhash "^core/.*\\.cpp$")
set(headers_zstd "^zstd\\.h$")
set(files_zstd "^core/.*\\.cpp$")
set(headers_hash_table "^tsl/")
set(files_hash_table "^core/hash_table\\.h$")
set(headers_catch2 "^catch2/")
set(files_catch2 "^tests/catch\\.h$")
set(headers_iostream "^iostream$")
set(files_iostream "^(cli|tests)/")
set(headers_posix "^sys/|^(dirent|dlfcn|errno|fcntl|poll|pthread|sched|signal|spawn|termios|unistd)\\.h$")
set(files_posix "^(core|runtime|cli|tests)/.*\\.cpp$")
set(headers_allocator "^malloc\\.h$")  # libc: memory settings of the program
set(files_allocator "^cli/(main|crash_guard)\\.cpp$")

set(headers_cuda "^(cuda|nccl|cublas|cudnn|nvrtc|nvml|cupti)[A-Za-z_0-9]*\\.h$|^cub/|^thrust/")
set(files_cuda "^runtime/cuda/|^tests/runtime/cuda/fake_driver\\.cpp$")
set(headers_c "^stdint\\.h$")
set(files_c "^runtime/(abi|ops/kernels)/")
set(headers_simd "^immintrin\\.h$")
set(headers_sanitizer "^sanitizer/")
set(files_sanitizer "^tests/")
set(files_simd "^runtime/cpu/gemm\\.h$")

# reason(FILE HEADER RESULT): the reason why FILE may not include HEADER; empty if it may.
function(reason file header result)
  string(REGEX MATCH "^[^/]+" folder "${file}")
  string(REGEX MATCH "^[^/]+/" header_folder "${header}")
  string(REPLACE "/" "" header_folder "${header_folder}")
  set(why "")
  if(file MATCHES "^runtime/abi/" AND NOT header MATCHES "^(stdint\\.h|runtime/abi/.*)$")
    set(why "runtime/abi is C that every compiler reads: stdint.h and its own headers alone")
  elseif(header_folder IN_LIST folders AND NOT header MATCHES "\\.pb\\.h$")
    if(header MATCHES "(^|/)\\.\\.?/")
      set(why "paths have no '.' or '..'")
    elseif(NOT header_folder IN_LIST allowed_${folder})
      set(why "${folder} may include only: ${allowed_${folder}}")
    elseif(header_folder STREQUAL folder AND folder IN_LIST inner)
      get_filename_component(room "${file}" DIRECTORY)
      get_filename_component(header_room "${header}" DIRECTORY)
      if(NOT DEFINED rooms_${room})
        set(why "${room} has no row in the table of rooms")
      elseif(NOT header_room STREQUAL room AND NOT header_room IN_LIST rooms_${room})
        set(why "of ${folder}, ${room} may include only: ${room} ${rooms_${room}}")
      endif()
    endif()
  else()
    foreach(name IN LISTS outside)
      if(header MATCHES "${headers_${name}}")
        if(NOT file MATCHES "${files_${name}}")
          set(why "${name} is allowed only in ${files_${name}}")
        endif()
        set(${result} "${why}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
    if(header MATCHES "[./]")
      set(why "neither a path from the repository root nor a header that the table names")
    endif()
  endif()
  set(${result} "${why}" PARENT_SCOPE)
endfunction()

# check_definition(FILE LINE_NUMBER LINE NAMESPACE): reports a class definition at the beginning of
# a line if another header defines the same name. A line that ends in ';', masked as '?', is only a
# declaration.
function(check_definition file line_number line namespace)
  if(NOT line MATCHES "^(class|struct|union|enum|enum class|enum struct) ([A-Za-z_0-9]+)( final)?( *[:{].*)?$")
    return()
  endif()
  set(name "${namespace}::${CMAKE_MATCH_2}")
  get_property(first GLOBAL PROPERTY "definition_of_${name}")
  if(first)
    set(doubled "${doubled}  ${file}:${line_number}: ${name}: defined in ${first}, too\n" PARENT_SCOPE)
  else()
    set_property(GLOBAL PROPERTY "definition_of_${name}" "${file}")
  endif()
endfunction()

set(forbidden "")
set(doubled "")
set(count 0)
foreach(folder IN LISTS folders)
  file(GLOB_RECURSE files LIST_DIRECTORIES false RELATIVE "${ROOT}"
    "${ROOT}/${folder}/*.h" "${ROOT}/${folder}/*.hpp" "${ROOT}/${folder}/*.cpp" "${ROOT}/${folder}/*.cc"
    "${ROOT}/${folder}/*.cu" "${ROOT}/${folder}/*.cuh" "${ROOT}/${folder}/*.inc" "${ROOT}/${folder}/*.def")
  list(FILTER files EXCLUDE REGEX "^tests/layers/")
  foreach(file IN LISTS files)
    math(EXPR count "${count} + 1")
    file(READ "${ROOT}/${file}" text)
    # Split into a list of lines. Characters special to lists are masked first; header names have
    # none of these.
    string(REGEX REPLACE "[][;\\]" "?" text "${text}")
    string(REPLACE "\n" ";" lines "${text}")
    set(line_number 0)
    set(namespace "")
    foreach(line IN LISTS lines)
      math(EXPR line_number "${line_number} + 1")
      if(line MATCHES "^[ \t]*#[ \t]*(include|include_next|import)[ \t]*[<\"]([^>\"]*)[>\"]")
        set(header "${CMAKE_MATCH_2}")
        reason("${file}" "${header}" why)
        if(why)
          string(APPEND forbidden "  ${file}:${line_number}: ${header}: ${why}\n")
        endif()
      elseif(file MATCHES "\\.h$")
        if(line MATCHES "^namespace ([A-Za-z_0-9:]+)")
          set(namespace "${CMAKE_MATCH_1}")
        endif()
        check_definition("${file}" "${line_number}" "${line}" "${namespace}")
      endif()
    endforeach()
  endforeach()
endforeach()

# Entries at the top level; in a checkout only tracked ones.
set(top_level CMakeLists.txt CMakePresets.json README.md cli core ir passes runtime schemas scripts testdata tests)
set(entries "")
execute_process(COMMAND git -C "${ROOT}" ls-files OUTPUT_VARIABLE tracked ERROR_QUIET RESULT_VARIABLE status)
if(status EQUAL 0 AND EXISTS "${ROOT}/.git")
  string(REPLACE "\n" ";" tracked "${tracked}")
  foreach(path IN LISTS tracked)
    string(REGEX MATCH "^[^/]+" entry "${path}")
    list(APPEND entries "${entry}")
  endforeach()
  list(REMOVE_DUPLICATES entries)
else()
  file(GLOB entries RELATIVE "${ROOT}" "${ROOT}/*")
  list(REMOVE_ITEM entries build)
endif()
set(misplaced "")
foreach(entry IN LISTS entries)
  if(entry AND NOT entry IN_LIST top_level AND NOT entry MATCHES "^\\.")
    string(APPEND misplaced "  ${entry}\n")
  endif()
endforeach()

if(count EQUAL 0)
  message(FATAL_ERROR "no sources under '${ROOT}': pass the repository as -DROOT=FOLDER")
endif()
if(forbidden)
  message(SEND_ERROR "forbidden includes:\n${forbidden}")
endif()
if(doubled)
  message(SEND_ERROR "classes that two headers define:\n${doubled}")
endif()
if(misplaced)
  message(SEND_ERROR "at the top level, where it does not belong:\n${misplaced}")
endif()
if(NOT forbidden AND NOT doubled AND NOT misplaced)
  message(STATUS "${count} files, no forbidden include, no class defined twice, nothing misplaced")
endif()
