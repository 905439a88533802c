# CUDA kernels to fatbins, fatbins into the program. Without nvcc (or with NW_CUDA=OFF) nothing here does anything and
# nw_cuda_built is false: the program is whole without.
#
#   nw_cuda_built   true when the kernels can be compiled here
#   nw_nvcc         the compiler; may be set beforehand
#   nw_cuda_about   one line for the table of what was found
#   nw_fatbins(target SOURCES x.cu …)   compiles each for every chip and embeds all of them into `target`: one object
#                   with `struct nw_fatbin nw_fatbins[]` (kernels/fatbin.h)

include_guard(GLOBAL) # the top CMakeLists.txt and kernels/ both want it

# Machine code for these chips, as far as this nvcc knows them (CUDA 12.0 has no sm_100, sm_120; 13.0 nothing before
# sm_75), and PTX of compute_80 for every other one from 8.0 on: the driver compiles it at start.
set(NW_CUDA_CHIPS "75;80;86;89;90;100;120" CACHE STRING "compute capabilities to build machine code for")
set(nw_cuda_ptx 80)

set(nw_cuda_built FALSE)
set(nw_cuda_about "off (NW_CUDA=OFF)")
if(NOT NW_CUDA STREQUAL "OFF")
  if(NOT nw_nvcc)
    find_program(nw_nvcc nvcc HINTS ${CUDAToolkit_ROOT} ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
                 PATH_SUFFIXES bin)
  endif()
  set(nw_cuda_about "no nvcc: the GPU kernels are not built")
  if(nw_nvcc)
    execute_process(COMMAND ${nw_nvcc} --list-gpu-code OUTPUT_VARIABLE nw_nvcc_chips RESULT_VARIABLE nw_nvcc_rc
                    ERROR_VARIABLE nw_nvcc_error)
    # nvcc needs a C++ compiler beside it, of a version that it accepts: try once, remember the answer.
    if(nw_nvcc_rc EQUAL 0 AND NOT "${nw_nvcc_works}" STREQUAL "${nw_nvcc}")
      file(WRITE ${CMAKE_BINARY_DIR}/nvcc-try.cu "extern \"C\" __global__ void k(int *p) { *p = 1; }\n")
      execute_process(COMMAND ${nw_nvcc} -fatbin -std=c++17 -o ${CMAKE_BINARY_DIR}/nvcc-try.fatbin
                              ${CMAKE_BINARY_DIR}/nvcc-try.cu
                      RESULT_VARIABLE nw_nvcc_rc OUTPUT_VARIABLE nw_nvcc_error ERROR_VARIABLE nw_nvcc_error)
      if(nw_nvcc_rc EQUAL 0)
        set(nw_nvcc_works "${nw_nvcc}" CACHE INTERNAL "this nvcc compiled something")
      endif()
    endif()
    if(nw_nvcc_rc EQUAL 0)
      set(nw_cuda_built TRUE)
    else()
      string(STRIP "${nw_nvcc_error}" nw_nvcc_error)
      string(REGEX REPLACE "\n.*" "" nw_nvcc_error "${nw_nvcc_error}")
      set(nw_cuda_about "${nw_nvcc} does not work (${nw_nvcc_error}): the GPU kernels are not built")
    endif()
  endif()
  if(NW_CUDA STREQUAL "ON" AND NOT nw_cuda_built)
    message(FATAL_ERROR "NW_CUDA=ON: ${nw_cuda_about}; give -Dnw_nvcc=/path/to/nvcc, or NW_CUDA=AUTO")
  endif()
endif()

if(nw_cuda_built)
  execute_process(COMMAND ${nw_nvcc} --version OUTPUT_VARIABLE nw_nvcc_version)
  string(REGEX MATCH "release [0-9.]+" nw_nvcc_version "${nw_nvcc_version}")
  string(REPLACE "release " "" nw_nvcc_version "${nw_nvcc_version}")
  set(nw_cuda_codes "")
  set(nw_cuda_chips "")
  foreach(chip ${NW_CUDA_CHIPS})
    if("${nw_nvcc_chips}\n" MATCHES "sm_${chip}\n")
      list(APPEND nw_cuda_codes -gencode=arch=compute_${chip},code=sm_${chip})
      list(APPEND nw_cuda_chips sm_${chip})
    endif()
  endforeach()
  list(APPEND nw_cuda_codes -gencode=arch=compute_${nw_cuda_ptx},code=compute_${nw_cuda_ptx})
  string(REPLACE ";" " " nw_cuda_chip_text "${nw_cuda_chips}")
  set(nw_cuda_about "nvcc ${nw_nvcc_version}, kernels for ${nw_cuda_chip_text} and PTX")
endif()

function(nw_fatbins target)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  set(rows "")
  set(objects "")
  foreach(source ${arg_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    set(in ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    set(out ${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin)
    # -Xptxas -v: the compiler's own account of registers and spills, which a test reads. Not compressed: drivers older
    # than the toolkit do not know its newest compression.
    add_custom_command(
      OUTPUT ${out}
      COMMAND ${CMAKE_SOURCE_DIR}/cmake/nvcc-fatbin ${out}.ptxas ${nw_nvcc} -fatbin -std=c++17 -O3 --no-compress
              -I${CMAKE_SOURCE_DIR} ${nw_cuda_codes} -Xptxas -v -MD -MF ${out}.d -o ${out} ${in}
      MAIN_DEPENDENCY ${in} DEPENDS ${CMAKE_SOURCE_DIR}/cmake/nvcc-fatbin DEPFILE ${out}.d
      COMMENT "nvcc ${source}" VERBATIM)
    list(APPEND objects ${out})
    string(APPEND rows "NW_FATBIN(${name}, \"${out}\")\n")
  endforeach()
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/fatbins.inc CONTENT "${rows}")
  set_property(SOURCE fatbin.c APPEND PROPERTY OBJECT_DEPENDS "${objects};${CMAKE_CURRENT_BINARY_DIR}/fatbins.inc")
  set_property(SOURCE fatbin.c APPEND PROPERTY COMPILE_DEFINITIONS
               NW_FATBINS_INC="${CMAKE_CURRENT_BINARY_DIR}/fatbins.inc" NW_NVCC_VERSION="${nw_nvcc_version}"
               NW_CUDA_CHIPS="${nw_cuda_chip_text}")
endfunction()
