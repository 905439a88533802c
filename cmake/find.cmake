# What the build found, and what a missing library turns off. Needed: jansson, smartcols, inih, hwloc, MPI, libxml2.
# Optional: CUDA (nvcc: kernels as fatbins), NCCL (headers only: the library is opened at run time), verbs.
find_package(PkgConfig REQUIRED)
foreach(pair jansson:jansson smartcols:smartcols inih:inih hwloc:hwloc xml2:libxml-2.0)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 module)
  pkg_check_modules(${name} IMPORTED_TARGET ${module})
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "${module} was not found; ./ci/setup installs what the build needs (as root), "
                        "or: apt-get install ${module}")
  endif()
  list(APPEND nw_found "${name} ${${name}_VERSION}")
endforeach()
find_package(MPI COMPONENTS C)
if(NOT MPI_C_FOUND)
  message(FATAL_ERROR "MPI was not found; ./ci/setup installs what the build needs, or: apt-get install libopenmpi-dev openmpi-bin")
endif()
find_package(Threads REQUIRED)
