# What the build needs and what it can use; nw_print_found() at the end of the configure step prints one table of what
# was found and what a missing thing turns off.
#
# Needed: jansson, libsmartcols, inih, hwloc, libxml2 (PkgConfig::<name>) and MPI (MPI::MPI_C). All that are missing are
# named at once, with the one line that installs them.
# NW_MPI: openmpi or mpich chooses among several that are installed side by side; AUTO takes what mpicc is.
# NW_CUDA, NW_NCCL, NW_VERBS: AUTO takes it when it is there; ON fails without it; OFF does not look.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

set(nw_missing "")
set(nw_needed "")
foreach(row "jansson jansson libjansson-dev" "smartcols smartcols libsmartcols-dev" "inih inih libinih-dev"
            "hwloc hwloc libhwloc-dev" "xml2 libxml-2.0 libxml2-dev")
  string(REPLACE " " ";" row ${row})
  list(GET row 0 name)
  list(GET row 1 module)
  list(GET row 2 package)
  pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
  if(${name}_FOUND)
    list(APPEND nw_needed "${module} ${${name}_VERSION}")
  else()
    list(APPEND nw_missing ${package})
  endif()
endforeach()
set(NW_MPI AUTO CACHE STRING "AUTO, openmpi or mpich")
set_property(CACHE NW_MPI PROPERTY STRINGS AUTO openmpi mpich)
if(NOT NW_MPI MATCHES "^(AUTO|openmpi|mpich)$")
  message(FATAL_ERROR "NW_MPI is \"${NW_MPI}\"; accepted: AUTO, openmpi, mpich")
endif()
if(NOT NW_MPI STREQUAL "AUTO") # Debian's names where both are there
  find_program(MPI_C_COMPILER NAMES mpicc.${NW_MPI})
  find_program(MPIEXEC_EXECUTABLE NAMES mpiexec.${NW_MPI})
endif()
find_package(MPI QUIET COMPONENTS C)
if(MPI_C_FOUND AND MPIEXEC_EXECUTABLE)
  execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE nw_mpi ERROR_QUIET)
  if(nw_mpi MATCHES "HYDRA.*Version: *([^ \n]+)")
    set(nw_mpi "MPICH ${CMAKE_MATCH_1}")
  endif()
  string(REGEX REPLACE "\n.*" "" nw_mpi "${nw_mpi}") # mpiexec (OpenRTE) 4.1.4
  string(REGEX REPLACE "^.*(OpenRTE|Open MPI)\\) *" "Open MPI " nw_mpi "${nw_mpi}")
  list(APPEND nw_needed "${nw_mpi}")
endif()
set(nw_mpi_wanted "${NW_MPI}")
if(NW_MPI STREQUAL "AUTO")
  set(nw_mpi_wanted openmpi)
endif()
if(NOT MPI_C_FOUND OR NOT MPIEXEC_EXECUTABLE)
  list(APPEND nw_missing lib${nw_mpi_wanted}-dev)
elseif(NW_MPI STREQUAL "mpich" AND NOT nw_mpi MATCHES "^MPICH" OR NW_MPI STREQUAL "openmpi" AND NOT nw_mpi MATCHES "^Open MPI")
  message(FATAL_ERROR "NW_MPI=${NW_MPI}, but ${MPI_C_COMPILER} and ${MPIEXEC_EXECUTABLE} are ${nw_mpi}; give "
                      "-DMPI_C_COMPILER=/path/to/mpicc -DMPIEXEC_EXECUTABLE=/path/to/mpiexec")
endif()
# A program with the property NW_OTHER_MPI is built with that library instead (tests/launch).
add_library(nw_mpi INTERFACE)
target_link_libraries(nw_mpi INTERFACE
                      $<IF:$<BOOL:$<TARGET_PROPERTY:NW_OTHER_MPI>>,$<TARGET_PROPERTY:NW_OTHER_MPI>,MPI::MPI_C>)
if(nw_missing)
  list(JOIN nw_missing " " nw_missing)
  message(FATAL_ERROR "nodeworth needs libraries that are not here. As root: ./ci/setup --build, or\n"
                      "  apt-get install ${nw_missing}")
endif()

# nw_optional(FEATURE FOUND about how): settles AUTO | ON | OFF for a library; nw_<feature>_about is its table line.
function(nw_optional feature found about without how)
  string(TOLOWER ${feature} name)
  if(NW_${feature} STREQUAL "OFF")
    set(found FALSE)
    set(about "off (NW_${feature}=OFF): ${without}")
  elseif(NOT found)
    if(NW_${feature} STREQUAL "ON")
      message(FATAL_ERROR "NW_${feature}=ON, but it cannot be had here. ${how}; or NW_${feature}=AUTO to build without")
    endif()
    set(about "off: ${without}. ${how}")
  endif()
  set(nw_${name}_found ${found} PARENT_SCOPE)
  set(nw_${name}_about ${about} PARENT_SCOPE)
endfunction()

include(fatbin) # CUDA: nw_cuda_built, nw_cuda_about

# NCCL needs nothing here: it is opened at run time, over the device layer.
nw_optional(NCCL ${nw_cuda_built} "opened at run time (libnccl.so.2)" "no collectives between GPUs; logs of nccl-tests are still imported"
            "It works over the GPU kernels, which need nvcc (see CUDA)")

# Their headers alone: the libraries are opened at run time, so one binary starts everywhere.
pkg_check_modules(verbs QUIET libibverbs librdmacm)
nw_optional(VERBS "${verbs_FOUND}"
            "libibverbs ${verbs_libibverbs_VERSION}, opened at run time (libibverbs.so.1, librdmacm.so.1): RDMA below NCCL and MPI"
            "nothing is measured over RDMA verbs, and the MTU of RDMA ports is not read"
            "apt-get install libibverbs-dev librdmacm-dev")

# Called last, so that the tests' own libraries are in it.
function(nw_print_found)
  list(JOIN nw_needed ", " needed)
  set(tests "off (NW_TESTS=OFF)")
  if(NW_TESTS)
    set(tests "unit tests with Criterion ${criterion_VERSION}")
    if(NOT criterion_FOUND)
      set(tests "Criterion not found: no unit tests. apt-get install libcriterion-dev")
    endif()
    if(gsl_FOUND)
      string(APPEND tests ", statistics held against GSL ${gsl_VERSION}")
    else()
      string(APPEND tests "; GSL not found: statistics are not held against it. apt-get install libgsl-dev")
    endif()
  endif()
  set(sanitizers "none")
  if(NW_SANITIZE)
    list(JOIN NW_SANITIZE ", " sanitizers)
  endif()
  message(STATUS "nodeworth ${PROJECT_VERSION}: what was found")
  message(STATUS "  needed      ${needed}")
  message(STATUS "  CUDA        ${nw_cuda_about}")
  message(STATUS "  NCCL        ${nw_nccl_about}")
  message(STATUS "  verbs       ${nw_verbs_about}")
  message(STATUS "  tests       ${tests}")
  message(STATUS "  build       ${CMAKE_BUILD_TYPE}, ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}, sanitizers: ${sanitizers}")
endfunction()
